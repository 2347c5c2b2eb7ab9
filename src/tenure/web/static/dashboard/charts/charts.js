// Charts on a time axis. An <svg> without viewBox has positions in %, so that text and strokes never stretch; only the inner one with the
// path scales. A redraw replaces the `d` of a path.
import { h } from "../lib/dom.js";
import { clockTime, dayTime } from "../lib/clock.js";
import { duration, short } from "../lib/format.js";
import { line } from "./marks.js";
import { hoverable } from "./hover.js";

const r = (x) => +x.toFixed(2);
const GUTTER = 52;

/** Rounded up to 1, 2, 2.5 or 5 times a power of ten. */
export function niceMax(value, least = 1) {
  const top = Math.max(value, least);
  const power = 10 ** Math.floor(Math.log10(top));
  // Half of each can be written with one decimal, as the line in the middle is.
  const steps = power >= 100 ? [1, 1.5, 2, 3, 4, 6, 8, 10] : power >= 1 ? [1, 2, 3, 4, 6, 8, 10] : [1, 2, 4, 6, 8, 10];
  return steps.map((step) => +(step * power).toPrecision(3)).find((step) => step >= top * 0.999);
}

export function timeTicks(from, to, few = false) {
  const name = to - from > 86400e3 * 1.5 ? (at) => dayTime(at, { seconds: false }) : (at) => clockTime(at, { seconds: false });
  const steps = few ? [0, 50, 100] : [0, 25, 50, 75, 100];
  return steps.map((percent) => [percent, name(from + ((to - from) * percent) / 100)]);
}

const anchor = (percent) => (percent === 0 ? "start" : percent === 100 ? "end" : "middle");
const timeTexts = (list, y) => list.map(([percent, text], n) => h("text", { class: list.length > 3 && n % 2 ? "alt" : null, x: `${percent}%`, y, "text-anchor": anchor(percent) }, text));
const rule = (y, text, isBase) => [h("line", { class: isBase ? "base" : "grid", x1: 0, x2: "100%", y1: y + 0.5, y2: y + 0.5 }), text ? h("text", { x: "100%", dx: GUTTER, y: y + 4, "text-anchor": "end" }, text) : null];
const scaled = (y, height, columns, ...body) => h("svg", { y, width: "100%", height, viewBox: `0 0 ${columns} 100`, preserveAspectRatio: "none", overflow: "visible" }, body);

function framed(height, label, hover, name, ...body) {
  const svg = h("svg.chart", { class: `h-${height} ${name}`, role: "img", "aria-label": label, tabindex: "0" }, body, h("line.cursor", { y1: 0, y2: height - 22, "data-kept": true }));
  hoverable(svg, hover);
  return h("div.chart-frame", svg);
}

const barPath = (values, max, base) => values.map((v, k) => {
  if (!v) return "";
  const low = base ? base[k] : 0;
  return `M${r(k + 0.12)} ${r(100 - (low / max) * 100)}V${r(100 - (Math.min(low + v, max) / max) * 100)}h.76V${r(100 - (low / max) * 100)}Z`;
}).join("");

/** Volume above, trouble below on its own scale: two percent of a bar cannot be seen. */
export function tiers(upper, lower, { height = 214, from, to, label, marks = [], hover }) {
  const top = 16;
  const low = 40;
  const split = height - 22 - low - 12;
  const upperMax = niceMax(Math.max(...upper.values, 0), 4);
  const lowerMax = niceMax(Math.max(...lower.values, 0), 4);
  return framed(height, label, hover, "",
    rule(top, short(upperMax)), rule(Math.round((top + split) / 2), short(upperMax / 2)),
    scaled(top, split - top, upper.values.length, h("path.fill", { class: upper.name, d: barPath(upper.values, upperMax) })),
    rule(split, "", true), rule(split + 12, short(lowerMax)),
    scaled(split + 12, low, lower.values.length, h("path.fill", { class: lower.name, d: barPath(lower.values, lowerMax) })),
    rule(height - 22, "", true),
    marks.map(([percent, text]) => [h("line.mark", { x1: `${r(percent)}%`, x2: `${r(percent)}%`, y1: 12, y2: height - 22 }), h("text.lab", { x: `${r(percent)}%`, y: 8, "text-anchor": percent < 8 ? "start" : percent > 92 ? "end" : "middle" }, text)]),
    timeTexts(timeTicks(from, to), height - 4));
}

export function stackedBars(series, { height = 120, from, to, label, hover }) {
  const columns = series[0]?.values.length ?? 1;
  const sums = Array.from({ length: columns }, (_, k) => series.reduce((all, one) => all + one.values[k], 0));
  const max = niceMax(Math.max(...sums, 0), 4);
  const base = new Array(columns).fill(0);
  const plot = height - 28;
  const paths = series.map(({ values, name }) => {
    const d = barPath(values, max, [...base]);
    values.forEach((v, k) => (base[k] += v));
    return h("path.fill", { class: name, d });
  });
  return framed(height, label, hover, "", rule(6, short(max)), rule(Math.round(6 + plot / 2), short(max / 2)), rule(height - 22, "0", true), scaled(6, plot, columns, paths), timeTexts(timeTicks(from, to), height - 4));
}

/** Lines on a linear scale. `series`: {values, name, dash, area}. */
export function lines(series, { height = 150, max, unit = "", from, to, label, hover, few = true, text = (value) => (value ? short(value) + unit : "0") }) {
  const plot = height - 28;
  const columns = Math.max(1, (series[0]?.values.length ?? 2) - 1);
  return framed(height, label, hover, "",
    rule(6, text(max)), rule(Math.round(6 + plot / 2), text(max / 2)), rule(height - 22, text(0), true),
    scaled(6, plot, columns, series.map((one) => drawn(one, max, columns))),
    timeTexts(timeTicks(from, to, few), height - 4));
}

function drawn({ values, name, dash = "", area }, max, columns) {
  const d = line(values, max);
  const closed = area && d && values.every((value) => value !== null && value !== undefined);
  return [closed ? h("path.area", { class: name, d: `${d}L${columns} 100L0 100Z` }) : null, h("path.lineseg", { class: `${dash} ${name}`, d })];
}

/** Durations on a logarithmic scale, from 1 ms up. */
export function logLines(series, { height = 150, from, to, label, hover }) {
  const all = series.flatMap((one) => one.values).filter((value) => value > 0);
  const top = [1, 30, 600, 7200].find((seconds) => seconds >= Math.max(...all, 0.001)) ?? 86400 * 7;
  const low = 0.001;
  const place = (seconds) => (seconds === null || seconds === undefined ? null : Math.max(0, (Math.log10(Math.max(seconds, low) / low) / Math.log10(top / low)) * 100));
  const plot = height - 28;
  const steps = { 1: [1, 0.1, 0.01], 30: [30, 1, 0.03], 600: [600, 10, 0.1], 7200: [7200, 60, 0.3] }[top] ?? [top, 600, 1];
  return framed(height, label, hover, "",
    steps.map((seconds) => rule(Math.round(6 + plot * (1 - place(seconds) / 100)), tickTime(seconds))), rule(height - 22, "1 ms", true),
    scaled(6, plot, Math.max(1, series[0].values.length - 1), series.map((one) => drawn({ ...one, values: one.values.map(place) }, 100, Math.max(1, one.values.length - 1)))),
    timeTexts(timeTicks(from, to, true), height - 4));
}

const tickTime = (seconds) => (seconds >= 86400 ? `${Math.round(seconds / 86400)} d` : seconds >= 3600 ? `${Math.round(seconds / 3600)} h` : seconds >= 60 ? `${Math.round(seconds / 60)} min` : seconds >= 1 ? `${seconds} s` : duration(seconds));

/** cells[row][column] are counts; each intensity is one path, so that 600 cells are five elements. */
export function heat(cells, { height = 150, rows, from, to, label, hover }) {
  const most = Math.max(1, ...cells.flat());
  const level = (n) => (n ? Math.min(5, 1 + Math.floor((Math.log(n) / Math.log(most + 1)) * 5)) : 0);
  const d = ["", "", "", "", "", ""];
  cells.forEach((row, y) => row.forEach((n, x) => n && (d[level(n)] += `M${r(x + 0.05)} ${r(y + 0.06)}h.9v.88h-.9Z`)));
  const plot = height - 28;
  const columns = cells[0]?.length ?? 1;
  return framed(height, label, hover, "heat",
    h("svg", { y: 6, width: "100%", height: plot, viewBox: `0 0 ${columns} ${cells.length}`, preserveAspectRatio: "none" }, [1, 2, 3, 4, 5].map((n) => h("path", { class: `h${n}`, d: d[n] }))),
    rows.map(([row, text]) => h("text", { x: "100%", dx: GUTTER, y: r(6 + ((row + 0.5) / cells.length) * plot) + 4, "text-anchor": "end" }, text)),
    timeTexts(timeTicks(from, to, true), height - 4));
}
