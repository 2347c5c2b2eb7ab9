// Puts answers of the API, which leave out empty steps, on a regular time axis.
import { now, clockTime, dayTime } from "../lib/clock.js";

export function axis({ seconds, step }) {
  const width = step * 1000;
  const columns = Math.max(1, Math.round(seconds / step));
  const last = Math.floor(now() / width) * width;
  const from = last - (columns - 1) * width;
  return { from, to: last + width, columns, width, index: (at) => Math.round((Date.parse(at) - from) / width) };
}

/** Without the current step, which is not over: a line would fall at its end. */
export const whole = (line) => ({ ...line, columns: line.columns - 1, to: line.to - line.width });

/** The counts of each step. Whether a step has no data or nothing happened in it is the same to the counters. */
export function counts(reply, ...whats) {
  const line = axis(reply);
  const values = new Array(line.columns).fill(0);
  for (const point of reply.points) {
    const k = line.index(point.at);
    if (k >= 0 && k < line.columns) values[k] = whats.reduce((all, what) => all + (point.counts[what] ?? 0), 0);
  }
  return values;
}

/** One measurement of each step. `none`: for steps without one, which are unknown (null) or known to be 0. */
export function measured(reply, points, name, none = null) {
  const line = axis(reply);
  const values = new Array(line.columns).fill(none);
  for (const point of points) {
    const k = line.index(point.at);
    if (k >= 0 && k < line.columns) values[k] = point[name];
  }
  return values;
}

/** The pending jobs of a queue, or how long the first of them had waited. A step that was recorded without this queue is 0. */
export function measuredOf(history, queue, name) {
  const recorded = measured(history, history.points, "pending");
  const known = measured(history, history.queues.find((one) => one.name === queue)?.points ?? [], name, 0);
  return known.map((value, k) => (recorded[k] === null ? null : value));
}

const middle = (bucket) => 2 ** (bucket / 2 - 0.25) / 1000;

/** In seconds: the middle of the bucket in which this share of the jobs is reached. Null: there were none. */
export function percentile(buckets, share) {
  const entries = Object.entries(buckets).map(([bucket, jobs]) => [Number(bucket), jobs]).sort((a, b) => a[0] - b[0]);
  let left = share * entries.reduce((all, [, jobs]) => all + jobs, 0);
  if (!entries.length) return null;
  for (const [bucket, jobs] of entries) {
    left -= jobs;
    if (left <= 0) return middle(bucket);
  }
  return middle(entries.at(-1)[0]);
}

export function merged(points, measure) {
  const all = {};
  for (const point of points) for (const [bucket, jobs] of Object.entries(point[measure])) all[bucket] = (all[bucket] ?? 0) + jobs;
  return all;
}

export function percentiles(reply, measure, share) {
  const line = axis(reply);
  const values = new Array(line.columns).fill(null);
  for (const point of reply.points) {
    const k = line.index(point.at);
    if (k >= 0 && k < line.columns) values[k] = percentile(point[measure], share);
  }
  return values;
}

const HEAT_ROWS = 9;
/** Rows from over a minute down to under 10 ms: two buckets of the square root of ten each. */
export function heatCells(reply, measure) {
  const line = axis(reply);
  const cells = Array.from({ length: HEAT_ROWS }, () => new Array(line.columns).fill(0));
  for (const point of reply.points) {
    const k = line.index(point.at);
    if (k < 0 || k >= line.columns) continue;
    for (const [bucket, jobs] of Object.entries(point[measure])) {
      const step = Math.floor((Math.log10(middle(Number(bucket)) * 1000) - 0.75) * 2);
      cells[Math.min(HEAT_ROWS - 1, Math.max(0, HEAT_ROWS - 1 - step))][k] += jobs;
    }
  }
  return cells;
}
export const HEAT_LABELS = [[0, "1 min"], [2, "10 s"], [4, "1 s"], [6, "100 ms"], [8, "10 ms"]];

export function stepName(line, index) {
  const at = line.from + index * line.width;
  const name = line.width >= 3600e3 ? (time) => dayTime(time, { seconds: false }) : (time) => clockTime(time, { seconds: false });
  return `${name(at)} to ${clockTime(at + line.width, { seconds: false })}`;
}
