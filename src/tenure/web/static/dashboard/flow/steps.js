// What a workflow has recorded, in states and words.
import { dayTime, soon, when } from "../lib/clock.js";
import { duration, shortId } from "../lib/format.js";

const QUIET = new Set(["value", "patch", "on_rollback"]); // recorded, but nothing is done in them
const STATES = { done: "completed", failed: "failed", retry: "retry", open: "waiting", dropped: "canceled" };
const WORDS = { step: "step", transaction: "transaction", value: "value", sleep: "sleep", wait: "event", event: "event", call: "job", start: "job, not waited for", patch: "patch", on_rollback: "to undo", rollback: "rollback", undo: "undo" };

export const isShown = (step) => !QUIET.has(step.what);

/** Tasks of a workflow have names of their own: "2/1/pack" is a step of the first task of the second one. */
export const pathOf = (step) => step.name.match(/^(\d+\/)*/)[0];
export const nameOf = (step) => step.name.slice(pathOf(step).length);

/** The last waits of a workflow may be open when it is over: what ended them is not written any more. */
export function settled({ job, steps, ...rest }) {
  if (!["completed", "failed", "canceled", "dead_letter"].includes(job.state)) return { job, steps, ...rest };
  const end = { state: job.state === "completed" ? "done" : "dropped", ended_at: job.finished_at };
  return { job, steps: steps.map((step) => (["open", "retry", "ended"].includes(step.state) ? { ...step, ...end } : step)), ...rest };
}

/** The job that a step has started. */
export const childOf = (step) => (["call", "start"].includes(step.what) && step.output && typeof step.output === "object" ? step.output.child ?? null : null);

/** `children`: what is known of jobs that are waited for, by id. */
export function stateOf(step, children) {
  const child = children.get(childOf(step));
  if (step.state === "open" && child) return child.state;
  if (step.what === "call" && step.state === "done") return step.output?.state === "deleted" ? "canceled" : step.output?.state ?? "completed";
  return STATES[step.state] ?? "completed";
}

export const whatOf = (step, job) => (isSignal(step, job) ? "signal" : WORDS[step.what] ?? step.what);

/** {event, key} of a step that waits for an event. */
export const awaited = (step) => (["wait", "event"].includes(step.what) && step.state === "open" && step.output ? step.output : null);
export const isSignal = (step, job) => awaited(step)?.key === job.id;

export function tookOf(step, now) {
  const start = Date.parse(step.started_at ?? step.ended_at);
  const end = step.ended_at ? Date.parse(step.ended_at) : step.due_at && step.state === "done" ? Date.parse(step.due_at) : now;
  return Number.isNaN(start) ? null : Math.max(0, end - start) / 1000;
}

/** One line below a name in the graph. Nothing in it changes by itself. */
export function metaOf(step, job, children, now) {
  const child = children.get(childOf(step));
  const tries = step.attempts > 1 ? `, ${step.attempts} attempts` : "";
  if (step.state === "done") return ["value", "patch"].includes(step.what) ? "recorded" : `${duration(tookOf(step, now)) || "recorded"}${tries}`;
  if (step.state === "failed") return `failed${tries}`;
  if (step.state === "dropped") return "not waited for";
  const left = step.due_at ? Math.max(0, Date.parse(step.due_at) - now) / 1000 : null;
  if (step.state === "retry") return `attempt ${step.attempts + 1} in ${duration(left ?? 0)}`;
  if (child) return `job, ${child.state.replace("_", " ")}`;
  return `${whatOf(step, job)}${left === null ? "" : `, ${duration(left)} left`}`;
}

/** What a workflow waits for, as part of a sentence. */
export function waitWords(step, job) {
  const name = nameOf(step);
  const asked = awaited(step);
  if (step.state === "retry") return [`tries ${name} again `, soon(step.due_at) ?? "soon"];
  if (step.what === "sleep") return step.due_at ? [`sleeps until ${dayTime(step.due_at)}, `, soon(step.due_at)] : "sleeps";
  if (isSignal(step, job)) return `waits for the signal ${asked.event}`;
  if (asked) return `waits for the event ${asked.event}${asked.key ? ` with key ${asked.key}` : ""}`;
  if (childOf(step)) return `waits for ${name.replace(/^(call|join start|start) /, "")} ${shortId(childOf(step))}`;
  return `waits for ${name}`;
}

export const endWords = (step) => (step.due_at && step.what !== "sleep" && step.state === "open" ? ["times out ", when(step.due_at), `, at ${dayTime(step.due_at)}`] : null);
