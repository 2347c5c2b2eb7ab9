// Kinds: how often they run, how often they fail, how long they take, on one scale.
import { h } from "../lib/dom.js";
import * as data from "../lib/data.js";
import { count, duration, percent, plural } from "../lib/format.js";
import { priority } from "../lib/jobs.js";
import { address, setParams } from "../lib/router.js";
import { empty, segments, waiting } from "../lib/ui.js";
import { range, spark } from "../charts/marks.js";
import { counts } from "../charts/series.js";
import { sum } from "./overview.js";

const RANGES = [["15m", "15 min"], ["1h", "1 h"], ["24h", "24 h"], ["7d", "7 d"]];
const FAILED = ["retry", "dead_letter", "failed"];
const STEPS = { "15m": "1m", "1h": "2m", "24h": "1h", "7d": "6h" };

export function start(view) {
  const kinds = view.use("/kinds", 30);
  const series = view.slot(20);
  const latencies = view.slot(20);
  const facts = {};
  view.onPlace = () => {
    const last = view.params.get("last") ?? "1h";
    facts.series = data.isLimited() ? null : series(`/stats/groups?by=kind&last=${last}&step=${STEPS[last] ?? "2m"}`);
    facts.latencies = data.isLimited() ? null : latencies(`/stats/latencies?by=kind&last=${last}`);
    view.redraw();
  };
  view.onPlace();
  view.draw = () => {
    if (!kinds.value || (facts.series && !facts.series.value)) return waiting(kinds, 10);
    const rows = joined(kinds.value.kinds, facts.series?.value, facts.latencies?.value);
    return [bar(view, rows), table(view, rows, facts.series?.value)];
  };
}

function joined(published, series, latencies) {
  const names = new Set([...published.map((kind) => kind.name), ...(series?.groups.map((group) => group.name) ?? [])]);
  const ran = new Map();
  const waited = new Map();
  for (const one of latencies?.latencies ?? []) (one.measure === "ran" ? ran : waited).set(one.kind, one);
  const all = series ? sum(series.groups.flatMap((group) => group.points.map((point) => point.ran))) : 0;
  return [...names].map((name) => {
    const group = series?.groups.find((one) => one.name === name);
    const points = { ...series, points: group?.points ?? [] };
    const starts = series ? counts(points, "completed", "canceled", ...FAILED) : [];
    const failed = series ? sum(counts(points, ...FAILED)) : 0;
    const seconds = sum((group?.points ?? []).map((point) => point.ran));
    return { name, kind: published.find((kind) => kind.name === name), starts, runs: sum(starts), failed, ran: ran.get(name), waited: waited.get(name), share: all ? seconds / all : 0 };
  }).sort((a, b) => b.runs - a.runs || a.name.localeCompare(b.name));
}

function bar(view, rows) {
  return h("div.row.wrap", h("div.filter", { role: "search" }, h("svg.i.i-14.faint", { "aria-hidden": "true" }, h("use", { href: "#i-search" })), h("input", { "aria-label": "Search kinds", placeholder: `Filter ${plural(rows.length, "kind")}`, value: view.params.get("q") ?? "", oninput: (event) => setParams({ q: event.target.value }, { replace: true }) })),
    segments("Time range", RANGES, view.params.get("last") ?? "1h", (value) => setParams({ last: value === "1h" ? null : value })));
}

function table(view, rows) {
  const text = (view.params.get("q") ?? "").toLowerCase();
  const found = rows.filter((one) => one.name.toLowerCase().includes(text) || one.kind?.queue.toLowerCase().includes(text));
  if (!rows.length) return h("section.panel", empty("No kinds yet", h("p", "Workers publish their kinds when they start. Start one:"), h("pre.code", { tabindex: "0" }, "tenure worker --app your_module:app")));
  return h("section.panel", h("div.table-wrap", h("table.table.two.cards.tall", h("thead", h("tr", h("th", "Kind"), h("th.n", { "aria-sort": "descending" }, "Runs"), h("th.p-1", RANGES.find(([value]) => value === (view.params.get("last") ?? "1h"))?.[1] ?? ""), h("th.n", "Failed"), h("th.rangecell.p-m", h("div.range-head", h("span", "1 ms"), h("span", "100 ms"), h("span", "10 s"), h("span", "10 min"))), h("th.n.p-1", "Run p50"), h("th.n.p-2", "p95"), h("th.n.p-2", "Wait p95"), h("th.n.p-2", "Of all run time"))), h("tbody", found.map(row)))),
    h("div.pager", h("span", `${found.length} of ${plural(rows.length, "kind")}. Failed is the share of attempts, not of jobs. Bar: p50 to p95; line: to p99; one scale for all rows.`)));
}

function row(one, n) {
  const share = one.runs ? one.failed / one.runs : 0;
  const mood = share > 0.05 ? "bad" : share > 0.01 ? "warn" : share > 0 ? "muted" : "faint";
  const about = one.kind ? `${one.kind.queue}, ${priority(one.kind.priority).split(" ")[0]}${one.kind.workers ? "" : ", no worker runs it"}` : "no worker has published it";
  return h("tr", { key: one.name, "data-row": true, tabindex: n ? "-1" : "0", class: share > 0.05 && one.runs > 5 ? "alarm" : null },
    h("td.a-name.grow", h("div.two-line.roomy", h("div.row", h("a.name.cut", { href: address("jobs", [], { kind: one.name }), "data-open": true, title: one.kind?.description ?? null }, one.name)), h("div.cut", { title: about }, about))),
    h("td.n.a-side.strong", { "data-unit": one.runs === 1 ? "run" : "runs" }, count(one.runs)), h("td.sparkcell.p-1", one.starts.length ? spark(one.starts.slice(0, -1)) : null),
    h("td.n.a-meta", { class: mood, "data-unit": "failed" }, one.runs ? (one.failed ? h("a", { href: address("failures", [], { kind: one.name }) }, `${percent(share)} %`) : "0 %") : "–"),
    h("td.rangecell.p-m", one.ran && range(one.ran.p50, one.ran.p95, one.ran.p99, `run time: p50 ${duration(one.ran.p50)}, p95 ${duration(one.ran.p95)}, p99 ${duration(one.ran.p99)}`)),
    h("td.n.p-1", one.ran ? duration(one.ran.p50) : "–"), h("td.n.muted.p-2", one.ran ? duration(one.ran.p95) : "–"), h("td.n.muted.p-2", one.waited ? duration(one.waited.p95) : "–"), h("td.n.muted.p-2", one.share ? `${percent(one.share)} %` : "0 %"));
}
