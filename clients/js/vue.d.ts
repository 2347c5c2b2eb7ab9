import type { ShallowRef } from "vue";
import type { Job, Tracker } from "./tenure.js";

/** The current state of a job. Follows it until its scope, such as a component, is disposed of. */
export function useJob<Output>(tracker: Tracker<Output>): Readonly<ShallowRef<Job<Output> | null>>;
