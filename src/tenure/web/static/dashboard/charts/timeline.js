// The life of a job: the whole of it as one ribbon, then a lane for each run on the same axis. Thin: it waited; thick: it ran; hatched: the
// worker was lost, which is not an attempt.
import { h } from "../lib/dom.js";
import { clockTime, dayTime, now } from "../lib/clock.js";
import { duration, label } from "../lib/format.js";
import { glyph } from "../lib/ui.js";

const r = (x) => +x.toFixed(3);
const LOST = new Set(["crashed", "lease_lost"]);
const ENDS = { completed: "completed", canceled: "canceled", snoozed: "waiting", requeued: "scheduled", running: "running", unknown: "canceled" };
const ms = (text) => (text ? Date.parse(text) : null);

/** [{attempt, title, segments: [{state, from, to, kind}]}], from a report. Times in ms. */
export function lanesOf(report) {
  const { job } = report;
  const lanes = [];
  let end = ms(job.enqueued_at);
  let waitState = "scheduled";
  const isOver = Boolean(job.finished_at) || job.state === "dead_letter";
  const until = ms(job.finished_at) ?? (isOver ? end : now());
  for (const attempt of report.attempts) {
    const started = ms(attempt.started_at);
    const ended = ms(attempt.ended_at) ?? (attempt.outcome === "running" ? now() : started);
    const segments = [];
    if (started !== null) {
      const ready = attempt.waited === null ? end : Math.max(end, started - attempt.waited * 1000);
      if (ready - end > 1) segments.push({ kind: "wait", state: waitState, from: end, to: ready });
      if (started - ready > 1) segments.push({ kind: "wait", state: "pending", from: ready, to: started });
      const lost = LOST.has(attempt.outcome);
      segments.push({ kind: lost ? "lost" : "run", state: lost ? "failed" : ENDS[attempt.outcome] ?? "failed", from: started, to: Math.max(ended, started + 1) });
      end = ended;
    }
    waitState = attempt.outcome === "snoozed" ? "scheduled" : "retry";
    lanes.push({ attempt, segments });
  }
  const rest = [];
  if (!job.finished_at && job.state !== "running") {
    const due = ms(job.run_at);
    const isWaiting = ["pending", "scheduled", "retry", "blocked", "waiting"].includes(job.state);
    if (isWaiting) {
      if (job.state === "pending" && due && due > end) rest.push({ kind: "wait", state: waitState, from: end, to: due });
      rest.push({ kind: "wait", state: job.state, from: rest.at(-1)?.to ?? end, to: now() });
    }
    if (isWaiting && rest.length) lanes.push({ attempt: null, segments: rest });
  }
  return { lanes, from: ms(job.enqueued_at), to: Math.max(until, end, ms(job.enqueued_at) + 1), isOver };
}

/** Real time, or each phase with the same width: for jobs that waited for days. */
function scaleOf(life, isEqual) {
  if (!isEqual) return (at) => ((at - life.from) / (life.to - life.from)) * 100;
  const stops = [...new Set([life.from, life.to, ...life.lanes.flatMap((lane) => lane.segments.flatMap((one) => [one.from, one.to]))])].sort((a, b) => a - b);
  return (at) => {
    const k = stops.findLastIndex((stop) => stop <= at);
    const next = stops[k + 1] ?? stops[k];
    return ((k + (next > stops[k] ? (at - stops[k]) / (next - stops[k]) : 0)) / Math.max(1, stops.length - 1)) * 100;
  };
}

export function timeline(report, isEqual) {
  const life = lanesOf(report);
  const place = scaleOf(life, isEqual);
  const marks = isEqual ? [] : marksOf(life);
  const all = life.lanes.flatMap((lane) => lane.segments);
  return h("div.stack.tight",
    h("div.tl-grid",
      axis(life, marks, isEqual),
      h("div.tl-row.all", h("div", h("span.medium", "In all")), ribbon(all, place), h("div", h("span", duration((life.to - life.from) / 1000)))),
      life.lanes.map((lane, n) => laneRow(lane, n, place, marks, life, report))),
    legend(all));
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400, 172800, 604800, 1209600].map((seconds) => seconds * 1000)];

/** [percent, time in ms, text] of the lines that divide a life: its beginning, then round times. Below a second they count from the
 * beginning, because times of day with milliseconds are too long to stand side by side. */
export function marksOf({ from, to }) {
  const span = to - from;
  const step = STEPS.find((one) => span / one <= 6) ?? Math.ceil(span / 6);
  const isShort = step < 1000;
  const name = (at) => (span > 86400e3 ? dayTime(at, { seconds: false }) : clockTime(at, { seconds: step < 60e3 }));
  const marks = [[0, from, isShort ? clockTime(from, { millis: true }) : span > 86400e3 ? name(from) : clockTime(from)]];
  for (let at = isShort ? from + step : Math.ceil(from / step) * step; at < to; at += step) {
    const percent = ((at - from) / span) * 100;
    if (percent >= 18 && percent <= 80) marks.push([percent, at, isShort ? `+${Math.round(at - from)} ms` : name(at)]);
  }
  return marks;
}

/** Times above the lanes. `isBare`: without them, because the scale is not that of time. */
export function axis(life, marks, isBare = false) {
  const span = life.to - life.from;
  const end = span < 5000 ? `+${duration(span / 1000)}` : span > 86400e3 ? dayTime(life.to, { seconds: false }) : clockTime(life.to);
  return h("svg.tl.axis", { "aria-hidden": "true" },
    marks.map(([percent, , text], k) => h("text", { class: k % 2 ? "alt" : null, x: `${r(percent)}%`, y: 14, "text-anchor": percent ? "middle" : "start" }, text)),
    life.isOver ? h("text", { x: "100%", y: 14, "text-anchor": "end" }, isBare ? "" : end) : h("text.now-t", { x: "100%", y: 14, "text-anchor": "end" }, "now"));
}

/** The waits and runs of one lane. */
export function laneBody(text, segments, place, marks, life, percentOf = () => null) {
  return h("svg.tl", { role: "img", "aria-label": text },
    marks.map(([at]) => h("line.grid", { x1: `${r(at)}%`, x2: `${r(at)}%`, y1: 0, y2: "100%" })),
    life.isOver ? null : h("line.now", { x1: "100%", x2: "100%", y1: 0, y2: "100%" }),
    segments.map((one) => segment(one, place, percentOf(one))));
}

function ribbon(segments, place) {
  return h("svg.ribbon", { role: "img", "aria-label": "Time in each state" }, segments.map(({ state, kind, from, to }) => {
    const ran = kind !== "wait";
    return h("rect", { "data-state": ran && state !== "running" ? state : state, x: `${r(place(from))}%`, width: `${r(Math.max(0.15, place(to) - place(from)))}%`, y: ran ? 11 : 15, height: ran ? 12 : 4 }, h("title", `${ran ? "ran" : label(state)} ${duration((to - from) / 1000)}`));
  }));
}

function laneRow({ attempt, segments }, n, place, marks, life, report) {
  const title = attempt === null ? label(report.job.state) : titleOf(attempt, report.attempts);
  const run = segments.find((one) => one.kind !== "wait");
  const [result, detail, isBad] = attempt === null ? [label(report.job.state), "so far", false] : ended(attempt);
  const told = segments.map((one) => `${one.kind === "wait" ? label(one.state) : "ran"} ${duration((one.to - one.from) / 1000)}`).join(", ");
  const percent = attempt?.outcome === "running" && report.job.progress_percent > 0 ? report.job.progress_percent / 100 : null;
  return h("div.tl-row", { key: n },
    h("div", h("span.medium", title), h("small", attempt === null ? "not started" : attempt.worker ?? (attempt.worker_id ? `worker ${attempt.worker_id.slice(-8)}` : ""))),
    laneBody(`${title}: ${told}`, segments, place, marks, life, (one) => (one === run ? percent : null)),
    h("div", h("span", { class: isBad ? "bad" : null }, result), h("small", detail)));
}

function segment({ kind, state, from, to }, place, percent) {
  const [a, b] = [place(from), place(to)];
  const width = Math.max(0.2, b - a);
  const text = duration((to - from) / 1000);
  const title = h("title", `${kind === "wait" ? label(state) : kind === "lost" ? "lost after" : "ran"} ${text}`);
  if (kind === "wait")
    return h("g", { "data-state": state }, h("line.wait", { x1: `${r(a)}%`, x2: `${r(b)}%`, y1: "50%", y2: "50%" }), h("rect.wait-cap", { x: `${r(a)}%`, y: "50%", width: 2, height: 8, transform: "translate(0 -4)" }), width > 10 ? h("text.lab", { x: `${r((a + b) / 2)}%`, y: "50%", dy: -6, "text-anchor": "middle" }, text) : null, title);
  const bar = (name, part) => h("rect", { class: name, x: `${r(a)}%`, y: "50%", width: `${r(width * part)}%`, height: 18, rx: 3, transform: "translate(0 -9)" });
  const inside = width > 14;
  return h("g", { "data-state": state }, percent !== null ? bar("run-ghost", 1) : null, bar(kind === "lost" ? "lost" : "run", percent ?? 1),
    inside && kind !== "lost" ? h("text.on", { x: `${r(a)}%`, dx: 7, y: "50%", dy: 4 }, percent !== null ? `${Math.round(percent * 100)} %` : text) : b < 88 ? h("text.lab", { x: `${r(b)}%`, dx: 6, y: "50%", dy: 4 }, text) : null, title); // at the right end there is no room beside a wait; the last column has the figure
}

export function titleOf(attempt, attempts) {
  if (attempt.number === null) return "Run";
  const before = attempts.slice(0, attempts.indexOf(attempt)).filter((one) => one.number === attempt.number).length;
  return `Attempt ${attempt.number}${before ? ", again" : ""}`;
}

function ended(attempt) {
  const ran = attempt.ran === null ? "" : `ran ${duration(attempt.ran)}`;
  if (LOST.has(attempt.outcome)) return [attempt.outcome === "crashed" ? "crashed" : "lease lost", `${ran}, not counted`, true];
  if (attempt.outcome === "running") return ["running", `${duration(attempt.ran ?? 0)} so far`, false];
  if (["failed", "timed_out"].includes(attempt.outcome)) return [attempt.outcome === "timed_out" ? "timed out" : errorName(attempt.error) ?? "failed", ran, true];
  return [label(attempt.outcome), ran, false];
}

const errorName = (error) => error?.match(/^([\w.]+)(?=:|\n)/)?.[1].split(".").at(-1);

function legend(segments) {
  const sums = new Map();
  for (const { kind, state, from, to } of segments) {
    const name = kind === "wait" ? state : "running";
    sums.set(name, (sums.get(name) ?? 0) + to - from);
  }
  const hasLost = segments.some((one) => one.kind === "lost");
  return h("div.legend.tl-legend", [...sums].map(([state, took]) => h("span", h("span.state", { "data-state": state }, glyph(state), label(state)), " ", h("b", duration(took / 1000)))), hasLost && h("span", h("svg.key.c-bad.hatched", { "aria-hidden": "true" }, h("rect", { x: 2, width: 10, height: 8, rx: 2 })), "lost run, not an attempt"));
}
