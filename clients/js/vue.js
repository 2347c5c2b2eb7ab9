/** Vue: the current state of a job as a ref. Follows it until its scope, such as a component, is disposed of. */

import { getCurrentScope, onScopeDispose, shallowRef } from "vue";

/** `const state = useJob(job)`, with a tracker of `createJob` or `track`. */
export function useJob(tracker) {
  const state = shallowRef(tracker.get());
  const unsubscribe = tracker.subscribe((job) => {
    state.value = job;
  });
  if (getCurrentScope()) {
    onScopeDispose(unsubscribe);
  }
  return state;
}
