// Hover values: one cursor at the same time in all charts of the page, and a tip with the values of the chart under the pointer.
import { h, handle, render, $$ } from "../lib/dom.js";
import { dialog } from "../lib/dialogs.js";
import { key } from "./marks.js";

let tip = null;

/** `describe(index)` returns {when, values: [[class, label, text, dash]]}; `columns` is how many points there are. */
export function hoverable(svg, hover) {
  if (!hover) return;
  svg.__chart = hover;
  // The handlers may serve an element that was there before: they ask the event which one it is.
  handle(svg, "onpointermove", ({ currentTarget: chart, clientX }) => {
    const box = chart.getBoundingClientRect();
    const { columns } = chart.__chart;
    show(chart, Math.min(columns - 1, Math.max(0, Math.floor(((clientX - box.left) / box.width) * columns))));
  });
  handle(svg, "ondblclick", ({ currentTarget }) => asTable(currentTarget));
  handle(svg, "onpointerleave", hide);
  handle(svg, "onblur", hide);
  handle(svg, "onkeydown", (event) => {
    const chart = event.currentTarget;
    if (event.key === "Enter") {
      event.preventDefault(); // or it would also press the button of the dialog
      return asTable(chart);
    }
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const { columns } = chart.__chart;
    show(chart, Math.min(columns - 1, Math.max(0, (chart.__at ?? (step < 0 ? columns : -1)) + step)));
  });
}

function show(svg, index) {
  svg.__at = index;
  const chart = svg.__chart;
  const share = (index + 0.5) / chart.columns;
  for (const other of $$("#main svg.chart")) {
    if (!other.__chart) continue;
    const cursor = other.querySelector(".cursor");
    cursor.setAttribute("x1", `${share * 100}%`);
    cursor.setAttribute("x2", `${share * 100}%`);
    cursor.classList.add("on");
  }
  const { when, values } = chart.describe(index);
  tip ??= document.body.appendChild(h("div.tip.float", { role: "status" }));
  render(tip, h("div.when", when), values.map(([name, label, text, dash]) => h("div", name && key(name, dash), label, h("b", text))));
  tip.hidden = false;
  const box = svg.getBoundingClientRect();
  const x = box.left + box.width * share;
  const width = tip.offsetWidth;
  tip.style.left = `${Math.max(8, x + 14 + width > innerWidth - 8 ? x - width - 14 : x + 14)}px`;
  tip.style.top = `${Math.max(8, box.top + 8 - tip.offsetHeight / 4)}px`;
}

/** All values of a chart, for those who cannot see it or want to copy them. */
function asTable(svg) {
  hide();
  const { columns, describe } = svg.__chart;
  const rows = Array.from({ length: columns }, (_, k) => describe(k));
  dialog("Values", (close) => [
    h("div.in", h("h2", "Values"), h("p.muted", svg.getAttribute("aria-label")),
      h("div.table-wrap", { tabindex: "0", role: "region", "aria-label": "Values" }, h("table.table", h("thead", h("tr", h("th", "Time"), rows[0].values.map(([, label]) => h("th.n", label)))), h("tbody", rows.toReversed().map(({ when, values }) => h("tr", h("td", when), values.map(([, , text]) => h("td.n", text)))))))),
    h("footer", h("button.btn", { type: "button", autofocus: true, onclick: () => close() }, "Close")),
  ], { wide: true });
}

export function hide() {
  if (tip) tip.hidden = true;
  for (const cursor of $$("#main .chart .cursor.on")) cursor.classList.remove("on");
}
