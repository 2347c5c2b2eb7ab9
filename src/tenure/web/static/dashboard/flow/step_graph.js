// Where each step of a workflow is in its graph. What follows what is not recorded, but when each step began and ended is, and in which
// task: a step follows another one that had ended when it began, unless they are of tasks that ran beside each other.
import { address } from "../lib/router.js";
import { isShown, metaOf, nameOf, pathOf, stateOf } from "./steps.js";

const MOST = 60;
const CLOSE = 20; // ms: times that were written by one statement
const RUNS = new Set(["step", "transaction", "undo", "start"]);

/** {nodes, edges} as charts/graph.js takes them. */
export function stepGraph({ job, steps }, { chosen, children, now }) {
  const all = steps.filter(isShown);
  const shown = all.slice(-MOST).map((step) => ({ step, path: pathOf(step), from: Date.parse(step.started_at ?? step.ended_at), to: step.state === "done" || step.state === "failed" ? Date.parse(step.ended_at ?? step.due_at) : Infinity, runs: RUNS.has(step.what) }));
  const tasks = tasksOf(shown);
  const before = shown.map((one, n) => shown.slice(0, n).filter((other) => precedes(other, one, tasks)));
  const links = before.map((list) => list.filter((one) => !list.some((other) => before[shown.indexOf(other)].includes(one))));
  const first = all.length > shown.length ? 1 : 0;
  const depths = [];
  links.forEach((list) => depths.push(Math.max(first - 1, ...list.map((one) => depths[shown.indexOf(one)])) + 1));
  const nodes = shown.map(({ step, path }, n) => ({ id: step.name, path, name: nameOf(step), meta: metaOf(step, job, children, now), state: stateOf(step, children), depth: depths[n], href: address("workflows", [job.id], { step: step.name }), isChosen: step.name === chosen }));
  const edges = links.flatMap((list, n) => list.map((one) => [one.step.name, shown[n].step.name]));
  if (first) {
    edges.push(...nodes.filter((node) => node.depth === 1).map((node) => ["//earlier", node.id]));
    nodes.unshift({ id: "//earlier", path: "", name: `${all.length - shown.length} earlier steps`, meta: "in the list", state: "completed", depth: 0, href: address("workflows", [job.id], { as: "list" }) });
  }
  const next = upNext(job, shown);
  if (next) {
    const ends = nodes.filter((node) => !edges.some(([one]) => one === node.id));
    nodes.push({ ...next, path: "", depth: Math.max(-1, ...nodes.map((node) => node.depth)) + 1 });
    edges.push(...ends.map((node) => [node.id, next.id]));
  }
  return { nodes: nodes.toSorted((a, b) => a.path.localeCompare(b.path, "en", { numeric: true })), edges };
}

/** When each task began and ended, with the tasks that it started. */
function tasksOf(shown) {
  const of = (path) => shown.filter((one) => one.path.startsWith(path));
  return new Map(shown.map(({ path }) => [path, { from: Math.min(...of(path).map((one) => one.from)), to: Math.max(...of(path).map((one) => one.to)) }]));
}

/** `one` was recorded, or began to wait, after `other`. */
function precedes(other, one, tasks) {
  if (!one.path.startsWith(other.path) && !other.path.startsWith(one.path)) return false;
  if (one.path.length > other.path.length) return other.to <= tasks.get(one.path).from + CLOSE;
  if (other.path.length > one.path.length && tasks.get(other.path).to > one.to) return false;
  // A wait is found to be over when the workflow runs again, and that is written with the step that follows it.
  if (!other.runs && one.runs) return other.to <= one.to + CLOSE && other.to !== Infinity;
  return other.to <= one.from + (other.runs ? 0 : CLOSE);
}

/** What is not recorded yet: a run that is under way, or about to be. */
function upNext(job, shown) {
  const words = { running: ["runs now", "the next step"], pending: ["waits for a slot", "then the next step"], retry: ["is tried again", `attempt ${job.attempt + 1}`], scheduled: ["not started", "is due later"], blocked: ["not started", "waits for chains"] }[job.state];
  return words && !shown.some(({ step }) => step.state === "open") ? { id: "//next", name: words[0], meta: words[1], state: job.state, isTodo: job.state !== "running", href: address("jobs", [job.id]) } : null;
}
