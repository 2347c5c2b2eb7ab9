/** React: the current state of a job. Follows it while the component is mounted. */

import { useMemo, useState, useSyncExternalStore } from "react";

const none = () => null;
const never = () => () => {};

/** `const state = useJob(job)`, with a tracker of `createJob` or `track`, or null. */
export function useJob(tracker) {
  const get = tracker?.get ?? none;
  return useSyncExternalStore(tracker?.subscribe ?? never, get, get);
}

/** `const [state, job] = useNewJob(() => createExportUsersJob())`: one tracker for the life of the component. */
export function useNewJob(create) {
  const [tracker] = useState(create);
  return [useJob(tracker), tracker];
}

/** `const state = useTrackedJob(tenure, id, token)`: null while the id is null. */
export function useTrackedJob(tenure, id, token) {
  return useJob(useMemo(() => (id ? tenure.track(id, { token }) : null), [tenure, id, token]));
}
