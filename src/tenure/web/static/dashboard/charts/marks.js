// Small marks inside tables and figures.
import { h } from "../lib/dom.js";

const r = (x) => +x.toFixed(2);

/** `wide`: how many units two points are apart. Less than one is drawn badly when few points fill a wide mark. */
export function line(values, max, wide = 1) {
  let d = "";
  let open = false;
  values.forEach((y, x) => {
    if (y === null || y === undefined) open = false; // a gap is a gap
    else {
      d += `${open ? "L" : "M"}${r(x * wide)} ${r(100 - (Math.min(y, max) / max) * 100)}`;
      open = true;
    }
  });
  return d;
}

export function spark(values, { name = "", max } = {}) {
  const known = values.filter((value) => value !== null && value !== undefined);
  const top = (max ?? Math.max(...known, 1e-9)) * 1.08 || 1;
  const d = known.length > 1 ? line(values, top, 300 / (values.length - 1)) : "";
  const area = d && known.length === values.length ? `${d}L300 100L0 100Z` : "";
  return h("svg.spark", { class: name, viewBox: "0 0 300 100", preserveAspectRatio: "none", "aria-hidden": "true" }, h("path.area", { d: area }), h("path", { d }));
}

export function sparkBars(values, { name = "", max } = {}) {
  const top = max ?? Math.max(...values, 1);
  const d = values.map((y, x) => (y ? `M${r(x + 0.12)} 100v${r(-Math.max((y / top) * 96, 6))}h.76V100Z` : `M${r(x + 0.12)} 100v-2h.76v2Z`)).join("");
  return h("svg.spark", { class: name, viewBox: `0 0 ${values.length} 100`, preserveAspectRatio: "none", "aria-hidden": "true" }, h("path.fill", { d }));
}

/** Up to 24 slots as single cells, more as one bar. */
export function slots(busy, total, name = "") {
  const label = `${busy} of ${total} slots busy`;
  if (total > 24 || total === 0)
    return h("svg.slots", { class: name, role: "img", "aria-label": label }, h("rect.t", { width: "100%", height: 8, rx: 2 }), h("rect.b", { width: `${total ? r((Math.min(busy, total) / total) * 100) : 0}%`, height: 8, rx: 2 }));
  const w = 100 / total;
  return h("svg.slots", { class: name, viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", "aria-label": label },
    Array.from({ length: total }, (_, k) => h("rect", { class: k < busy ? "b" : "t", x: r(k * w), width: r(w - Math.min(1.2, w * 0.18)), height: 8 })));
}

export function share(part, whole, name = "c-a") {
  return h("svg.slots", { class: name, role: "img", "aria-label": `${part} of ${whole}` }, h("rect.t", { width: "100%", height: 8, rx: 2 }), h("rect.b", { width: `${whole ? r((part / whole) * 100) : 0}%`, height: 8, rx: 2 }));
}

export function ticks(list, label) {
  const w = 100 / list.length;
  return h("svg.ticks", { role: "img", "aria-label": label }, list.map((name, k) =>
    h("rect", { class: name, x: `${r(k * w)}%`, width: `${r(w * 0.72)}%`, y: name === "skip" ? 4.5 : name === "no" ? 0 : 3, height: name === "skip" ? 8 : name === "no" ? 16 : 10, rx: 1 })));
}

// Run times of all rows on one logarithmic scale, 1 ms to 10 min, so that kinds compare by eye.
const place = (seconds) => Math.min(100, Math.max(0, (Math.log10(Math.max(seconds * 1000, 1)) / Math.log10(600000)) * 100));

export function range(p50, p95, p99, label) {
  const [a, b, c] = [place(p50), Math.max(place(p95), place(p50) + 1), place(p99)];
  return h("svg.range", { role: "img", "aria-label": label }, h("line.t", { x1: 0, x2: "100%", y1: 8, y2: 8 }), h("line.w", { x1: `${r(a)}%`, x2: `${r(Math.max(c, b))}%`, y1: 8, y2: 8 }), h("rect.b", { x: `${r(a)}%`, width: `${r(b - a)}%`, y: 4, height: 8, rx: 2 }));
}

export const key = (name, dash) =>
  h("svg.key", { class: name, "aria-hidden": "true" }, dash === undefined ? h("rect", { x: 2, width: 10, height: 8, rx: 2 }) : h("line", { x2: 14, y1: 4, y2: 4, "stroke-dasharray": dash || null }));
