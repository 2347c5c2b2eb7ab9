// Steps of a workflow, or links of a chain, on one axis of time. Thin: it waited; thick: it ran.
import { h } from "../lib/dom.js";
import { now } from "../lib/clock.js";
import { duration, label } from "../lib/format.js";
import { glyph, state } from "../lib/ui.js";
import { axis, laneBody, marksOf } from "../charts/timeline.js";

const OVER = new Set(["completed", "failed", "canceled", "dead_letter"]);

/** `rows`: [{key, name, href, note, state, segments: [{kind, state, from, to}], result, detail, isBad}], times in ms. */
export function lanes(rows, isOver) {
  const all = rows.flatMap((row) => row.segments);
  if (!all.length) return h("p.faint", "Nothing has started yet.");
  const from = Math.min(...all.map((one) => one.from));
  const life = { from, to: Math.max(from + 1, isOver ? 0 : now(), ...all.map((one) => one.to)), isOver };
  const place = (at) => ((at - life.from) / (life.to - life.from)) * 100;
  const marks = marksOf(life);
  return h("div.stack.tight", h("div.tl-grid", axis(life, marks), rows.map((row) => lane(row, place, marks, life))), legend(all));
}

function lane(row, place, marks, life) {
  const spoken = row.segments.map((one) => `${one.kind === "wait" ? label(one.state) : "ran"} ${duration((one.to - one.from) / 1000)}`).join(", ");
  return h("div.tl-row", { key: row.key },
    h("div", h("span.row", h("span.state", { "data-state": row.state }, glyph(row.state)), row.href ? h("a.name.cut", { href: row.href, title: row.name }, row.name) : h("span.medium.cut", { title: row.name }, row.name)), h("small", row.note)),
    laneBody(`${row.name}: ${spoken}`, row.segments, place, marks, life),
    h("div", h("span", { class: row.isBad ? "bad" : null }, row.result), h("small", { title: row.detail }, row.detail)));
}

function legend(segments) {
  const names = new Map();
  for (const { kind, state: name } of segments) names.set(kind === "wait" ? `wait ${name}` : name, [name, kind !== "wait" ? `ran, ${label(name)}` : OVER.has(name) ? `waited for a job, ${label(name)}` : name === "waiting" ? "waited" : `waited, ${label(name)}`]);
  return h("div.legend.tl-legend", [...names.values()].map(([name, text]) => h("span", state(name, text))));
}
