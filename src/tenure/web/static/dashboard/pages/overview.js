// Is work flowing? Are we keeping up? Is something failing? Is a worker or a leader gone? What do I do first?
import { h } from "../lib/dom.js";
import { now, when } from "../lib/clock.js";
import * as data from "../lib/data.js";
import { capped, count, duration, label, percent, perTime, plural, rate, words } from "../lib/format.js";
import { address, setParams } from "../lib/router.js";
import { callout, glyph, icon, link, panel, segments, skeleton, ticked, tone } from "../lib/ui.js";
import { heat, logLines, tiers } from "../charts/charts.js";
import { key, slots, spark } from "../charts/marks.js";
import { axis, counts, heatCells, HEAT_LABELS, measured, merged, percentile, percentiles, stepName, whole } from "../charts/series.js";

const RANGES = [["15m", "15 min"], ["1h", "1 h"], ["6h", "6 h"], ["24h", "24 h"], ["7d", "7 d"]];
const IN_WORDS = { "15m": "last 15 min", "1h": "last hour", "6h": "last 6 h", "24h": "last day", "7d": "last week" };
const FAILED = ["retry", "dead_letter", "failed"];
const SHOWN = 7; // rows of each table at the bottom: as many as there are duties, so that the panels end together
const ENDED = ["completed", ...FAILED];
export const isLate = (seconds) => (seconds > 600 ? "bad" : seconds > 60 ? "warn" : "");

export function start(view) {
  const last = () => (RANGES.some(([value]) => value === view.params.get("last")) ? view.params.get("last") : "1h");
  const series = view.slot(15);
  const histogram = view.slot(15);
  const queues = view.slot(20);
  const waits = view.slot(20);
  const history = view.slot(30);
  view.useFleet();
  const findings = data.isLimited() ? null : view.use("/findings", 30);
  const usual = data.isLimited() ? null : view.use("/stats/series?last=7d&step=1h", 600);
  const facts = {};
  view.onPlace = () => {
    const range = last();
    const every = range === "7d" ? "&step=3h" : "";
    facts.series = series(`/stats/series?last=${range}${every}`);
    facts.histogram = histogram(`/stats/histogram?last=${range}${every}`);
    facts.history = data.isLimited() ? { value: null } : history(`/stats/fleet?last=${range}${every}`);
    facts.queues = queues(`/stats/groups?by=queue&last=1h&step=2m`);
    facts.waits = waits(`/stats/latencies?by=queue&last=1h`);
    view.redraw();
  };
  view.onPlace();
  view.draw = () => {
    if (data.isLimited()) return limited();
    const fleet = data.fleet.now;
    const shown = { fleet, range: last(), findings: findings.value, usual: usual.value, series: facts.series.value, histogram: facts.histogram.value, history: facts.history.value, queues: facts.queues.value, waits: facts.waits.value };
    return [verdict(shown), vitals(shown), flow(shown),
      h("div.g-main.stretch", h("div.stack", finishedChart(shown), h("div.g-2", waitChart(shown), runChart(shown))), attention(shown)),
      h("div.g-3", queueTable(shown), workerTable(shown), leaderTable(shown))];
  };
}

const limited = () => callout("info", "Your token is limited to some queues or kinds.", "It shows their jobs, not the whole fleet.", link(address("jobs"), "Open jobs"));

function verdict({ fleet, findings, range }) {
  const [mood, title, text] = judged(fleet, findings);
  return h("section.verdict", { "data-tone": mood }, h("div.mark", icon(mood === "good" ? "check" : mood === "idle" ? "info" : mood === "bad" ? "stop" : "warn")),
    h("div", { "aria-live": "polite" }, h("h2", title), h("p", text)),
    h("div.push", segments("Time range", RANGES, range, (value) => setParams({ last: value === "1h" ? null : value }))));
}

function judged(fleet, found) {
  if (!fleet) return ["idle", "Looking at the fleet.", "One moment."];
  const pending = total(fleet, "pending");
  const perSecond = data.rateOf("completed", "failed", "canceled", "dead_letter") ?? 0;
  const attention = found?.findings.length ?? 0;
  const bad = found?.findings.some((one) => one.tone === "bad");
  const work = !fleet.workers && pending ? "Work stands still." : perSecond > 0 || fleet.held ? "Work is flowing." : pending ? "Jobs wait to be started." : "Nothing to do right now.";
  const needs = attention ? `${words[attention] ?? attention} ${attention === 1 ? "thing needs" : "things need"} attention.` : "Nothing needs attention.";
  const late = fleet.queues.filter((queue) => !queue.paused_at && (queue.oldest_pending_seconds ?? 0) > 60).length;
  const paused = fleet.queues.filter((queue) => queue.paused_at).length;
  const active = fleet.queues.length - paused;
  const parts = [
    perSecond > 0 ? `${perTime(perSecond).replace("/", " jobs/")} finish` : fleet.held ? `${plural(fleet.held, "job")} ${fleet.held === 1 ? "runs" : "run"}` : "No job runs",
    late ? `${late} of ${plural(fleet.queues.length, "queue")} ${late === 1 ? "falls" : "fall"} behind` : active ? `${plural(active, "queue")} ${active === 1 ? "keeps" : "keep"} up` : null,
    paused ? `${paused} ${paused === 1 ? "is" : "are"} paused` : null,
  ];
  const checked = found?.checked_at ? ["Checked by doctor ", when(found.checked_at), "."] : [];
  return [bad || (!fleet.workers && pending) ? "bad" : attention ? "warn" : "good", `${work} ${needs}`, [`${parts.filter(Boolean).join(", ")}. `, ...checked]];
}

const total = (fleet, name) => fleet.queues.reduce((sum, queue) => sum + (queue[name] ?? 0), 0);

function vital(name, value, unit, note, chart, { tone: mood, href }) {
  return h("a.vital", { href, "data-tone": mood || null }, h("span.k", name), h("span.v", value, unit && h("small", unit)), h("span.n", note), chart);
}

function vitals({ fleet, series, histogram, history, usual, range }) {
  if (!fleet || !series || !histogram) return h("section.vitals", { "aria-busy": "true" }, Array.from({ length: 6 }, () => h("div.vital", h("span.skel.w-2"), h("span.skel.tall.w-3"), h("span.skel.w-4"), h("span.spark"))));
  const done = counts(series, ...ENDED);
  const failed = counts(series, ...FAILED);
  const recent = Math.max(2, Math.ceil(done.length / 6));
  const share = (list, all) => (sum(all.slice(-recent)) ? sum(list.slice(-recent)) / sum(all.slice(-recent)) : 0);
  const failing = share(failed, done);
  const usually = usual && usualShare(usual);
  const perSecond = data.rateOf("completed", "failed", "canceled", "dead_letter", "retry") ?? (done.at(-2) ?? 0) / series.step;
  const waited = merged(histogram.points.slice(-recent), "waited");
  const oldest = oldestQueue(fleet);
  const p95 = percentile(waited, 0.95);
  const [amount, unit] = split(duration(p95 ?? 0));
  const dead = total(fleet, "dead_letter");
  const lost = fleet.fleet.filter((worker) => !worker.alive && worker.died_how !== "stopped").length;
  return h("section.vitals", { "aria-label": "Vital figures" },
    vital("Finished", rate(perSecond), perSecond > 0 && perSecond < 0.095 ? "/min" : "/s", `${count(done.at(-2) ?? 0)} ${series.step === 60 ? "last minute" : `last ${duration(series.step)}`}`, spark(done.slice(0, -1), { name: "c-ok" }), { href: address("jobs", [], { state: "completed" }) }),
    vital("Failed attempts", percent(failing), "%", usually === null || usually === undefined ? "of all attempts" : `usually ${percent(usually)} %`, spark(failed.slice(0, -1), { name: "c-bad" }), { tone: failing > Math.max(0.02, 3 * (usually ?? 0)) ? "bad" : "", href: address("failures") }),
    vital("Wait, p95", p95 === null ? "–" : amount, p95 === null ? "" : unit, p95 === null ? "nothing finished" : `median ${duration(percentile(waited, 0.5))}`, spark(percentiles(histogram, "waited", 0.95).map((value) => value ?? 0), { name: "c-1" }), { tone: p95 > 600 ? "bad" : "", href: address("queues") }),
    vital("Oldest pending", oldest ? duration(oldest.oldest_pending_seconds) : "–", "", oldest ? `in ${oldest.name}` : "nothing waits", spark(recorded(history, "oldest_pending_seconds"), { name: isLate(oldest?.oldest_pending_seconds) === "bad" ? "c-bad" : "c-1" }), { tone: isLate(oldest?.oldest_pending_seconds), href: address("queues") }),
    vital("Slots busy", count(fleet.held), `of ${count(fleet.slots)}`, `${plural(fleet.workers, "worker")}${lost ? `, ${lost} lost` : ""}`, spark(recorded(history, "busy"), { name: "c-1", max: Math.max(fleet.slots, 1) }), { tone: lost || (!fleet.workers && total(fleet, "pending")) ? "bad" : "", href: address("workers") }),
    vital("Dead letters", capped(dead, fleet.queues.some((queue) => queue.capped.includes("dead_letter"))), "", `${count(sum(counts(series, "dead_letter")))} new, ${IN_WORDS[range]}`, spark(counts(series, "dead_letter").slice(0, -1), { name: "c-5" }), { tone: dead ? "bad" : "", href: address("jobs", [], { state: "dead_letter" }) }));
}

const SEEN = { oldest_pending_seconds: "oldest", busy: "held" };
/** As the leader recorded it, with what is seen now; what was seen since this page was opened, while too little is recorded. */
function recorded(history, name) {
  const known = history && history.points.length > 2 ? measured(history, history.points, name).slice(0, -1) : [];
  const seen = data.fleet.past.map((one) => one[SEEN[name]]);
  return known.length ? [...known, seen.at(-1) ?? null] : seen.filter((_, n) => n % Math.ceil(seen.length / 60) === 0);
}

const sum = (list) => list.reduce((all, value) => all + value, 0);
const split = (text) => [text.replace(/ [a-z]+$/, ""), /^\d[\d.]* [a-z]+$/.test(text) ? text.split(" ")[1] : ""];
const oldestQueue = (fleet) => fleet.queues.filter((queue) => !queue.paused_at && queue.oldest_pending_seconds !== null).sort((a, b) => b.oldest_pending_seconds - a.oldest_pending_seconds)[0];

/** The share of failed attempts in the last week, without the last hours: what this fleet is used to. Null: too little is known. */
function usualShare(week) {
  const before = week.points.filter((point) => now() - Date.parse(point.at) > 2 * 3600e3);
  const all = sum(before.map((point) => sum(ENDED.map((what) => point.counts[what] ?? 0))));
  return all < 100 ? null : sum(before.map((point) => sum(FAILED.map((what) => point.counts[what] ?? 0)))) / all;
}

function flow({ fleet, series, range }) {
  const item = (state, text) => h("a", { key: state, href: address("jobs", [], { state }), "data-state": state }, h("span.state", { "data-state": state }, glyph(state), label(state)), h("span.v", text));
  const live = ["scheduled", "blocked", "waiting", "pending", "running", "retry", "dead_letter"].filter((state) => !fleet || fleet.queues.length === 0 || state in (fleet.queues[0] ?? {}));
  const isCapped = (state) => fleet.queues.some((queue) => queue.capped.includes(state));
  return h("nav.flow", { "aria-label": "Jobs by state", tabindex: "0" },
    live.map((state) => item(state, fleet ? capped(total(fleet, state), isCapped(state)) : "…")),
    h("span.between", IN_WORDS[range]),
    ["completed", "failed", "canceled"].map((state) => item(state, series ? count(sum(counts(series, state))) : "…")));
}

// Charts

function finishedChart({ series, fleet, history }) {
  const name = series && series.step !== 60 ? `Finished per ${duration(series.step).replace(" 00s", "").replace(" 00m", "")}` : "Finished per minute";
  if (!series) return panel(name, {}, h("div.skel.chartish.h-214"));
  const all = counts(series, ...ENDED);
  // The current minute is not over: its bar would look like a fall. It is shown only while it is all there is.
  const isCut = series.step === 60 && all.slice(0, -1).some(Boolean);
  const line = isCut ? whole(axis(series)) : axis(series);
  const [done, bad] = [["completed"], FAILED].map((whats) => counts(series, ...whats).slice(0, line.columns));
  const [lastDone, lastBad] = [done, bad].map((values) => values.at(isCut ? -1 : -2) ?? 0);
  const marks = deploys(fleet, history, line);
  const legend = h("div.legend", h("span", key("c-ok soft"), "completed ", h("b", count(lastDone))), h("span", key("c-bad"), "failed attempts ", h("b", count(lastBad))));
  const describe = (k) => ({ when: stepName(line, k), values: [["c-ok soft", "completed", count(done[k])], ["c-bad", "failed attempts", count(bad[k])]] });
  const label = `Completed jobs and failed attempts over time: ${count(sum(done))} completed, ${count(sum(bad))} failed attempts.`;
  return panel(name, { side: legend }, tiers({ values: done, name: "c-ok soft" }, { values: bad, name: "c-bad" }, { ...line, label, marks, hover: { columns: line.columns, describe } }));
}

/** When each version of the app was first seen. Those of the first recorded minute were there before: they are not deploys. */
function deploys(fleet, history, line) {
  if (!history?.points.length) return [];
  const first = new Map();
  for (const point of history.points) for (const version of point.app_versions) if (!first.has(version)) first.set(version, Date.parse(point.at));
  // Workers that were started after the last recorded minute.
  for (const worker of fleet?.fleet ?? []) if (worker.app_version && !first.has(worker.app_version)) first.set(worker.app_version, Date.parse(worker.started_at));
  const known = Date.parse(history.points[0].at);
  return [...first].filter(([, at]) => at > known && at > line.from && at < line.to).map(([version, at]) => [((at - line.from) / (line.to - line.from)) * 100, `deploy ${version.length > 16 ? `${version.slice(0, 12)}…` : version}`]);
}

function waitChart({ histogram }) {
  if (!histogram) return panel("Wait", {}, h("div.skel.chartish.h-150"));
  const line = axis(histogram);
  const all = merged(histogram.points, "waited");
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => percentiles(histogram, "waited", share));
  const legend = h("div.legend", h("span", key("c-1", ""), "p50 ", h("b", duration(percentile(all, 0.5)) || "–")), h("span", key("c-1", "5 3"), "p95 ", h("b", duration(percentile(all, 0.95)) || "–")), h("span", key("c-1", "1.5 3"), "p99 ", h("b", duration(percentile(all, 0.99)) || "–")));
  const describe = (k) => ({ when: stepName(line, k), values: [["c-1", "p50", duration(p50[k]) || "–", ""], ["c-1", "p95", duration(p95[k]) || "–", "5 3"], ["c-1", "p99", duration(p99[k]) || "–", "1.5 3"]] });
  return panel("Wait", { side: legend }, logLines([{ values: p95, name: "c-1", dash: "dash" }, { values: p50, name: "c-1", area: true }, { values: p99, name: "c-1", dash: "dots" }], { ...line, label: `Wait before start on a logarithmic scale: median ${duration(percentile(all, 0.5))}, p95 ${duration(percentile(all, 0.95))}.`, hover: { columns: line.columns, describe } }));
}

function runChart({ histogram }) {
  if (!histogram) return panel("Run time", {}, h("div.skel.chartish.h-150"));
  const line = axis(histogram);
  const all = merged(histogram.points, "ran");
  const cells = heatCells(histogram, "ran");
  const p95 = percentiles(histogram, "ran", 0.95);
  const p50 = percentiles(histogram, "ran", 0.5);
  const describe = (k) => ({ when: stepName(line, k), values: [["", "runs", count(sum(cells.map((row) => row[k])))], ["", "p50", duration(p50[k]) || "–"], ["", "p95", duration(p95[k]) || "–"]] });
  const legend = h("div.legend", h("span", "p50 ", h("b", duration(percentile(all, 0.5)) || "–")), h("span", "p95 ", h("b", duration(percentile(all, 0.95)) || "–")));
  return panel("Run time", { side: legend }, heat(cells, { ...line, rows: HEAT_LABELS, label: `Heat map of run times: median ${duration(percentile(all, 0.5))}, p95 ${duration(percentile(all, 0.95))}.`, hover: { columns: line.columns, describe } }));
}

// What needs attention

function attention({ findings }) {
  const list = findings?.findings;
  const bad = list?.filter((one) => one.tone === "bad").length ?? 0;
  const warn = (list?.length ?? 0) - bad;
  return h("section.panel.first", { "aria-labelledby": "attn", tabindex: "0" },
    h("header", h("h2", { id: "attn" }, "Needs attention"), h("span.sub", "worst first"), h("div.push", bad ? tone("bad", String(bad), "stop") : null, warn ? tone("warn", String(warn), "warn") : null)),
    !list ? skeleton(4) : list.length ? h("ul.attn", list.map((one) => h("li", { "data-tone": one.tone, key: one.code + one.title }, icon(one.tone === "bad" ? "stop" : "warn"), h("h3", one.title), one.since ? when(one.since) : h("span"), h("p", ticked(one.text)), h("div.do", Object.entries(one.links).map(([text, href]) => link(href, text))))))
      : h("div.good-news", h("div.row", h("span.state", { "data-state": "completed" }, glyph("completed")), h("span.medium", "Nothing needs attention.")), h("p.faint", "Lost workers, stuck duties, failing kinds, late queues and problems of the database appear here."), findings.checked_at && h("p.faint", "Checked by doctor ", when(findings.checked_at), ".")));
}

// Tables

function queueTable({ fleet, queues, waits }) {
  const list = [...(fleet?.queues ?? [])].sort((a, b) => Boolean(a.paused_at) - Boolean(b.paused_at) || (b.oldest_pending_seconds ?? -1) - (a.oldest_pending_seconds ?? -1) || a.name.localeCompare(b.name)).slice(0, SHOWN);
  const rows = list.map((queue) => {
    const mine = queues?.groups.find((group) => group.name === queue.name);
    const out = mine && counts({ ...queues, points: mine.points }, ...ENDED);
    const wait = waits?.latencies.find((one) => one.queue === queue.name && one.measure === "waited");
    const mood = queue.paused_at ? "faint" : isLate(queue.oldest_pending_seconds);
    return h("tr", { key: queue.name }, h("td.grow", h("div.row.roomy", h("a.name.cut", { href: address("queues", [], { q: queue.name }), title: queue.name }, queue.name), queue.paused_at && tone("warn", "paused", "pause"))), h("td.n", capped(queue.pending, queue.capped.includes("pending"))), h("td.n", { class: mood }, queue.oldest_pending_seconds === null ? "–" : duration(queue.oldest_pending_seconds)), h("td.n.muted.p-1", out ? perTime(sum(out.slice(-5)) / (queues.step * Math.min(5, out.length))) : "0"), h("td.n.muted", wait ? duration(wait.p95) : "–"), h("td.sparkcell.p-1", out && spark(out.slice(0, -1))));
  });
  return panel("Queues", { flush: true, side: link(address("queues"), `All ${fleet?.queues.length ?? ""}`) }, rows.length || !fleet ? h("table.table", h("thead", h("tr", h("th", "Queue"), h("th.n", "Pending"), h("th.n", "Oldest"), h("th.n.p-1", "Out"), h("th.n", "Wait p95"), h("th.p-1", "1 h"))), h("tbody", rows)) : h("p.empty.faint", "Queues appear here with their first job."));
}

function workerTable({ fleet }) {
  const list = [...(fleet?.fleet ?? [])].sort((a, b) => a.alive - b.alive || b.held / b.concurrency - a.held / a.concurrency).slice(0, SHOWN);
  const rows = list.map((worker) => h("tr", { key: worker.id, class: worker.alive ? null : "alarm" }, h("td", h("a.name.cut.worker-name", { href: address("workers"), title: worker.name }, worker.name)), h("td.grow", worker.alive ? slots(worker.held, worker.concurrency) : h("span.bad", "lost")), h("td.n.muted", worker.alive ? `${worker.held}/${worker.concurrency}` : "")));
  return panel("Workers", { flush: true, side: link(address("workers"), `All ${fleet?.fleet.length ?? ""}`) }, rows.length || !fleet ? h("table.table", h("thead", h("tr", h("th", "Worker"), h("th", "Slots"), h("th.n", "Busy"))), h("tbody", rows)) : h("div.empty", h("p", "No worker is running. Start one:"), h("pre.code", { tabindex: "0" }, "tenure worker --app your_module:app")));
}

function leaderTable({ fleet }) {
  const list = [...(fleet?.leaders ?? [])].filter((one) => !one.duty.startsWith("lease:")).sort((a, b) => (a.state === "holds") - (b.state === "holds") || a.duty.localeCompare(b.duty));
  const rows = list.map((one) => h("tr", { key: one.duty, class: one.state === "holds" ? null : "alarm" }, h("td.medium", one.duty), h("td.muted.grow", h("div.cut", one.worker ?? "–")), h("td.n", { class: one.state === "holds" ? "muted" : "bad" }, one.state === "holds" ? (one.last_run ? when(one.last_run) : "–") : one.state)));
  return panel("Leaders", { flush: true, side: link(address("leaders"), "All") }, fleet && !list.length ? h("p.empty.faint", "The first worker that starts takes over the duties.") : h("table.table", h("thead", h("tr", h("th", "Duty"), h("th", "Held by"), h("th.n", "Last round"))), h("tbody", rows)));
}

export { sum };
