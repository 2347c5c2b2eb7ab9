// Failed jobs by their cause: one line for what has one reason, with the actions on all of them.
import { h } from "../lib/dom.js";
import { now, when } from "../lib/clock.js";
import { bulk } from "../lib/bulk.js";
import * as data from "../lib/data.js";
import { count, duration, plural, shortId } from "../lib/format.js";
import { inputPairs } from "../lib/jobs.js";
import { address, setParams } from "../lib/router.js";
import { traceback } from "../lib/traceback.js";
import { callout, empty, glyph, icon, panel, segments, skeleton, state, tone, waiting } from "../lib/ui.js";
import { stackedBars } from "../charts/charts.js";
import { key, share, sparkBars } from "../charts/marks.js";

const RANGES = [["1h", "1 h"], ["24h", "24 h"], ["7d", "7 d"]];
const SORTS = [["rising", "Rising"], ["jobs", "Most jobs"], ["newest", "Newest"]];
const COLOURS = ["c-bad", "c-3", "c-4", "c-2"];

export function start(view) {
  const list = view.slot(15);
  const detail = view.slot(15);
  const facts = {};
  const selected = new Set(); // ids of groups
  view.onPlace = () => {
    const last = view.params.get("last") ?? "24h";
    facts.list = list(`/failures?last=${last}`);
    const open = view.params.get("group");
    facts.detail = detail(open ? `/failures/${encodeURIComponent(open)}?last=${last}` : null);
    view.redraw();
  };
  view.onPlace();
  view.draw = () => {
    const reply = facts.list.value;
    if (!reply) return waiting(facts.list, 8);
    const found = chosen(reply.groups, view.params);
    return [bar(view, reply), facts.list.error && callout("warn", "These figures are not new.", facts.list.error.message), chart(reply, found), chosenBar(view, found, selected), table(view, reply, found, facts.detail, selected)];
  };
}

function chosen(groups, params) {
  const text = (params.get("q") ?? "").toLowerCase();
  const kind = params.get("kind");
  const fits = groups.filter((group) => (!kind || group.kind === kind) && (!text || [group.kind, group.error, group.message, ...group.queues].some((part) => part?.toLowerCase().includes(text))));
  const sort = params.get("sort") ?? "rising";
  if (sort === "jobs") return fits.toSorted((a, b) => b.jobs - a.jobs);
  return sort === "newest" ? fits.toSorted((a, b) => (a.last < b.last ? 1 : -1)) : fits;
}

function bar(view) {
  const kind = view.params.get("kind");
  return h("div.row.wrap", h("div.filter", { role: "search" }, h("svg.i.i-14.faint", { "aria-hidden": "true" }, h("use", { href: "#i-search" })),
    kind && h("span.chip", h("b", "kind"), kind, h("button", { type: "button", "aria-label": "Remove filter kind", onclick: () => setParams({ kind: null }) }, icon("x", 12))),
    h("input", { "aria-label": "Search failures", placeholder: "Filter by kind, error, message or queue", value: view.params.get("q") ?? "", oninput: (event) => setParams({ q: event.target.value }, { replace: true }) })),
    segments("Period", RANGES, view.params.get("last") ?? "24h", (value) => setParams({ last: value === "24h" ? null : value, group: null })),
    segments("Sort", SORTS, view.params.get("sort") ?? "rising", (value) => setParams({ sort: value === "rising" ? null : value }, { replace: true })));
}

const title = (group) => group.error ?? (group.states.dead_letter && !group.error ? "Quarantined" : "Fail");

function chart(reply, groups) {
  const top = [...groups].sort((a, b) => b.jobs - a.jobs).slice(0, 4);
  const steps = reply.groups[0]?.trend.length ?? 48;
  const rest = groups.filter((group) => !top.includes(group));
  const series = [...top.map((group, n) => ({ values: group.trend, name: COLOURS[n], label: `${title(group)}, ${group.kind}` })), ...(rest.length ? [{ values: Array.from({ length: steps }, (_, k) => rest.reduce((sum, group) => sum + group.trend[k], 0)), name: "c-mute", label: "other" }] : [])];
  const to = now();
  const from = to - reply.seconds * 1000;
  const step = reply.seconds / steps;
  const describe = (k) => ({ when: `${duration((steps - k) * step)} ago`, values: series.map((one) => [one.name, one.label, count(one.values[k])]) });
  return panel(`Failed jobs per ${step === 1800 ? "half hour" : duration(step).replace(" 00s", "")}`, { side: h("div.legend.shrink.p-1", series.map((one) => h("span", { title: one.label }, key(one.name), h("span.legend-name.long", one.label)))) },
    stackedBars(series.length ? series.toReversed() : [{ values: new Array(48).fill(0), name: "" }], { height: 120, from, to, label: `Failed jobs over time in ${plural(groups.length, "group")}`, hover: { columns: steps, describe } }));
}

/** Actions on all jobs of the groups that are selected. */
function chosenBar(view, groups, selected) {
  const meant = groups.filter((group) => selected.has(group.id));
  if (!meant.length) return null;
  const of = (name) => meant.reduce((sum, group) => sum + (group.states[name] ?? 0), 0);
  const run = async (action, states) => (await bulk(action, meant.map((group) => ({ failure: group.id, state: states })), `Jobs of ${plural(meant.length, "group")}: ${meant.map((group) => `${title(group)} in ${group.kind}`).slice(0, 5).join(", ")}${meant.length > 5 ? " and others" : ""}.`)) && selected.clear();
  const off = !data.may("operate");
  const button = (text, name, action, states) => h("button.btn.sm", { class: name, type: "button", disabled: off, title: off ? "Your access is read: you can look but not change" : null, onclick: () => run(action, states) }, text);
  const [dead, retry] = [of("dead_letter"), of("retry")];
  return h("div.bulk.on", { key: "bulk", role: "region", "aria-label": "Bulk actions" }, h("span.medium", `${plural(meant.length, "group")} selected`),
    dead ? button(`Replay ${plural(dead, "dead letter")}…`, "", "replay", ["dead_letter"]) : null, retry ? button(`Retry ${count(retry)} now…`, "", "retry", ["retry"]) : null, dead + retry ? button("Discard…", "danger", "cancel", ["dead_letter", "retry"]) : null,
    h("button.btn.sm.ghost.push", { type: "button", onclick: () => { selected.clear(); view.redraw(); } }, "Clear"));
}

function table(view, reply, groups, detail, selected) {
  if (!groups.length) {
    const nothing = reply.groups.length ? empty("No group matches", h("p", "Change the filter, or look at a longer period."), h("a.btn", { href: address("failures") }, "Clear the filter")) : empty("Nothing failed in this time", h("p", "Jobs whose last attempt failed appear here, grouped by kind, error and message without its numbers and ids: jobs that wait to be retried, dead letters, and jobs that ended with Fail."));
    return h("section.panel", nothing);
  }
  const open = view.params.get("group");
  return h("section.panel", h("table.table.two.cards.pick-rows", h("thead", h("tr", h("th.w-sel", h("span.sr", "Select")), h("th", "Error and kind"), h("th.p-2", "Trend"), h("th.n", "Jobs"), h("th.n.p-m", "Retrying"), h("th.n.p-m", "Dead letters"), h("th.n.p-2", "First seen"), h("th.n", "Last seen"))),
    h("tbody", groups.map((group, n) => [row(view, group, n, open, selected), group.id === open && h("tr.detail", { key: `d${group.id}` }, h("td", { colspan: "8" }, opened(group, detail)))]))),
    h("div.pager", h("span", `${plural(groups.length, "group")}, ${plural(groups.reduce((sum, group) => sum + group.jobs, 0), "job")}${reply.capped ? " or more" : ""}. Groups share a kind, an error type and a message with its numbers and ids removed.`)));
}

function row(view, group, n, open, selected) {
  const pick = () => {
    if (!selected.delete(group.id)) selected.add(group.id);
    view.redraw();
  };
  const number = (name) => (group.states[name] ? h("span.state.loud", { "data-state": name }, glyph(name), count(group.states[name])) : h("span.faint", "0"));
  const isOpen = group.id === open;
  return h("tr", { key: group.id, "data-row": true, tabindex: n ? "-1" : "0", class: isOpen ? "focus" : null },
    h("td.w-sel.a-sel", h("input.check", { type: "checkbox", "aria-label": `Select ${title(group)} in ${group.kind}`, checked: selected.has(group.id), onclick: pick })),
    h("td.grow.a-name", h("div.two-line", h("div.row", h("button.name.linkname.cut.first-part", { type: "button", "data-open": true, "aria-expanded": String(isOpen), onclick: () => setParams({ group: isOpen ? null : group.id }) }, title(group)), h("span.faint", "in"), h("span.medium.cut", group.kind), group.rising && tone("bad", "rising"), !group.error && group.states.failed && h("span.tag", { title: "The handler returned Fail: it is not retried" }, "expected")), h("div.cut", { title: group.sample }, group.sample || group.message))),
    h("td.sparkcell.wide.p-2", sparkBars(group.trend.slice(-32), { name: group.rising ? "c-bad" : "c-6" })),
    h("td.n.a-side.strong", { "data-unit": group.jobs === 1 ? "job" : "jobs" }, count(group.jobs)), h("td.n.p-m", number("retry")), h("td.n.p-m", number("dead_letter")), h("td.n.muted.p-2", when(group.first)), h("td.n.muted.a-meta", when(group.last)));
}

/** For one job of a group: whether the cause is gone shows on one job before all of them run. */
function single(job, off, title) {
  const [text, action] = { dead_letter: ["Replay", "replay"], retry: ["Retry", "retry"] }[job.state] ?? [];
  return text && h("button.btn.sm", { type: "button", disabled: off, title, "aria-label": `${text} ${shortId(job.id)}`, onclick: () => bulk(action, { ids: [job.id] }, "This job.") }, text);
}

function opened(group, detail) {
  const found = detail?.value?.group.id === group.id ? detail.value : null;
  const { dead_letter: dead = 0, retry = 0 } = group.states;
  const what = `Jobs of ${group.kind} that failed with ${title(group)}: ${group.message.slice(0, 80)}.`;
  const run = (action, states) => bulk(action, { failure: group.id, state: states }, what);
  const off = !data.may("operate");
  const reasonOff = off ? "Your access is read: you can look but not change" : null;
  const button = (text, name, action, states) => h("button.btn", { class: name, type: "button", disabled: off, title: reasonOff, onclick: () => run(action, states) }, text);
  return h("div.g-main.detail-grid", h("div.stack",
    h("div.row.wrap", dead ? button(`Replay ${plural(dead, "dead letter")}…`, "primary", "replay", ["dead_letter"]) : null, retry ? button(`Retry ${count(retry)} now…`, "", "retry", ["retry"]) : null, dead + retry ? button("Discard…", "danger", "cancel", ["dead_letter", "retry"]) : null, h("span.push.faint.p-1", dead + retry ? "All ask first and show the count" : "These jobs are over: nothing to retry")),
    found ? (found.newest[0]?.error ? traceback(found.newest[0].error, "framed") : null) : skeleton(3),
    found && h("table.table.sub", h("thead", h("tr", h("th", "Latest jobs"), h("th", "State"), h("th.n", "Attempt"), h("th.n", "Next"), h("th", h("span.sr", "Actions")))), h("tbody", found.newest.map((job) => h("tr", { key: job.id }, h("td.grow", h("div.row", h("a.name.mono", { href: address("jobs", [job.id]), title: job.kind }, shortId(job.id)), h("div.cut.p-1", inputPairs(job)))), h("td", state(job.state)), h("td.n.muted", `${job.attempt} / ${job.max_attempts}`), h("td.n.muted", job.state === "retry" && job.run_at ? when(job.run_at) : "never"), h("td.acts", single(job, off, reasonOff))))))),
  h("aside.stack", found && h("div", h("h3.mini", "What these jobs share"), found.shared.length ? h("dl.facts.share", found.shared.flatMap((one) => [h("dt", `Input ${one.field}`), h("dd", h("div.row", h("span.mono.cut", String(one.value)), h("span.push.muted.nowrap", `${one.jobs} of ${found.compared}`)), share(one.jobs, found.compared))])) : h("p.muted", `Nothing: the inputs of the newest ${plural(found.compared, "job")} differ in every field.`)),
    h("div", h("h3.mini", "All of them"), h("p", h("a.link", { href: address("jobs", [], { kind: group.kind, state: Object.keys(group.states).join(",") }) }, `Jobs of ${group.kind} in these states`)))));
}
