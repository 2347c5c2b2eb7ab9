// What can be said of a job in one line.
import { h } from "./dom.js";
import { dayTime, since, soon, when } from "./clock.js";
import { duration, pairs, plain } from "./format.js";

const FINAL = new Set(["completed", "failed", "canceled"]);
export const isFinal = (job) => FINAL.has(job.state);
export const isOver = (job) => isFinal(job) || job.state === "dead_letter";

export const changedAt = (job) => {
  if (job.finished_at) return job.finished_at;
  if (job.state === "running") return job.started_at ?? job.enqueued_at;
  return [job.failed_at, job.started_at, job.enqueued_at].filter(Boolean).sort().at(-1);
};

/** How long its last run took, or takes. */
export function ran(job) {
  if (!job.started_at) return "";
  if (job.state === "running") return since(job.started_at);
  const end = job.finished_at ?? job.failed_at;
  return end ? duration((Date.parse(end) - Date.parse(job.started_at)) / 1000) : "";
}

export const errorText = (job) => [job.error_type, job.error_message].filter(Boolean).join(": ") || job.last_error || "";

/** The reason and the next event. Times in it keep themselves up to date. */
export function reason(job) {
  const error = errorText(job);
  switch (job.state) {
    case "running":
      return ["running for ", since(job.started_at) ?? "a moment"];
    case "retry":
      return ["Retries ", soon(job.run_at) ?? "soon", `. ${error}`];
    case "dead_letter":
      return job.crashes >= 3 ? `Quarantined: its worker died ${job.crashes} times while running it. ${error}` : `No attempts left. ${error}`;
    case "pending":
      return job.crashes ? `waits for a slot, after ${job.crashes} ${job.crashes === 1 ? "crash" : "crashes"}` : "waits for a slot";
    case "scheduled":
      return job.run_at ? ["due ", soon(job.run_at), `, at ${dayTime(job.run_at)}`] : "due later";
    case "blocked":
      return "waits for other jobs";
    case "waiting":
      return "waits for an event, a time or another job";
    case "completed":
      return job.output === null || job.output === undefined ? "completed" : plain(job.output);
    default:
      return error || job.state;
  }
}

export const inputPairs = (job) => {
  const list = pairs(job.input);
  return h("div.kv.cut", { title: list.map(([key, value]) => `${key} ${value}`).join("  ") }, list.map(([key, value]) => [h("i", key), " ", value, " "]));
};

export const changed = (job) => when(changedAt(job));
export const PRIORITIES = { 0: "background", 25: "low", 50: "normal", 75: "high", 100: "critical" };
export const priority = (number) => (PRIORITIES[number] ? `${PRIORITIES[number]} (${number})` : String(number));
