import type { Job, Tenure, Token, Tracker } from "./tenure.js";

/** The current state of a job. Follows it while the component is mounted. */
export function useJob<Output>(tracker: Tracker<Output> | null | undefined): Job<Output> | null;

/** One tracker for the life of the component. */
export function useNewJob<Output, T extends Tracker<Output>>(create: () => T & Tracker<Output>): [Job<Output> | null, T];

/** Null while the id is null. A token that is a function must be the same one in every render. */
export function useTrackedJob<Output = unknown>(tenure: Tenure<any>, id: string | null | undefined, token?: Token): Job<Output> | null;
