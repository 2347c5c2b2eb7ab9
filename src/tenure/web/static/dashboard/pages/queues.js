// Queues: age before depth, what comes in and goes out, pauses and limits.
import { h } from "../lib/dom.js";
import { part, post, put, remove } from "../lib/api.js";
import { clockTime, when } from "../lib/clock.js";
import { confirm } from "../lib/dialogs.js";
import * as data from "../lib/data.js";
import { capped, count, duration, perMinute, perTime, plural } from "../lib/format.js";
import { address, setParams } from "../lib/router.js";
import { act, toast } from "../lib/toasts.js";
import { empty, icon, panel, tone, waiting } from "../lib/ui.js";
import { lines, logLines, niceMax } from "../charts/charts.js";
import { key, slots, spark } from "../charts/marks.js";
import { axis, counts, measuredOf, stepName, whole } from "../charts/series.js";
import { isLate, sum } from "./overview.js";

const OUT = ["completed", "failed", "canceled", "dead_letter"];
const SERIES = "/stats/groups?by=queue&last=1h&step=1m";

export function start(view) {
  view.useFleet();
  const queues = view.use("/queues", 30);
  const series = data.isLimited() ? { value: null } : view.use(SERIES, 20);
  const waits = data.isLimited() ? { value: null } : view.use("/stats/latencies?by=queue&last=1h", 20);
  const history = data.isLimited() ? { value: null } : view.use("/stats/fleet?last=1h&step=1m", 30);
  const limits = data.isLimited() ? { value: null } : view.use("/limits", 10);
  view.onPlace = () => view.redraw();
  view.draw = () => {
    const list = data.fleet.now?.queues ?? queues.value?.queues;
    if (!list) return waiting(queues, 8);
    return [!data.isLimited() && h("div.g-3e.charts", ageChart(history.value), depthChart(history.value), flowChart(series.value)), table(view, list, { series: series.value, waits: waits.value, history: history.value }), limits.value && limitTable(limits.value.limits)];
  };
}

const HUES = ["c-1", "c-3", "c-2"];

/** The queues with the largest values in the last hour, as many as can be told apart. */
function largest(history, name) {
  const found = history.queues.map((queue) => ({ queue: queue.name, values: measuredOf(history, queue.name, name).slice(0, -1) })).filter(({ values }) => values.some((value) => value > 0));
  return found.sort((a, b) => Math.max(...b.values) - Math.max(...a.values)).slice(0, HUES.length).map((one, n) => ({ ...one, name: HUES[n] }));
}

function perQueue(title, history, name, text, draw) {
  if (!history) return panel(title, {}, h("div.skel.chartish.h-120"));
  const line = whole(axis(history));
  const found = largest(history, name);
  const describe = (k) => ({ when: stepName(line, k), values: found.map((one) => [one.name, one.queue, one.values[k] === null ? "not recorded" : text(one.values[k]), ""]) });
  const side = found.length ? h("div.legend.shrink", found.map((one) => h("span", { key: one.queue, title: one.queue }, key(one.name, ""), h("span.legend-name", one.queue)))) : h("div.legend", h("span.faint", "nothing has waited for a minute"));
  const shown = found.length ? found : [{ values: new Array(line.columns).fill(null), name: HUES[0] }];
  const hover = found.length ? { columns: line.columns, describe } : null;
  return panel(title, { side }, draw(shown, { ...line, height: 120, hover, label: `${title} by queue over the last hour${found.length ? `: ${found.map((one) => one.queue).join(", ")}` : ""}` }));
}

const ageChart = (history) => perQueue("Oldest pending", history, "oldest_pending_seconds", duration, logLines);
const depthChart = (history) => perQueue("Pending", history, "pending", count, (found, options) => lines(found, { ...options, max: niceMax(Math.max(...found.flatMap((one) => one.values)), 4) }));

function flowChart(series) {
  if (!series) return panel("Jobs in and out", {}, h("div.skel.chartish.h-120"));
  const line = whole(axis(series));
  const add = (...whats) => series.groups.map((group) => counts({ ...series, points: group.points }, ...whats)).reduce((all, one) => all.map((value, k) => value + one[k]), new Array(line.columns).fill(0)).map((value) => value / series.step);
  const [into, out] = [add("enqueued"), add(...OUT)];
  const isSlow = Math.max(...into, ...out) < 0.95; // per minute, or the ticks would be fractions
  const shown = (values) => (isSlow ? values.map((value) => value * 60) : values);
  const max = niceMax(Math.max(...shown(into), ...shown(out)), 4);
  const per = isSlow ? perMinute : perTime;
  const describe = (k) => ({ when: stepName(line, k), values: [["c-a", "in", per(into[k]), "5 3"], ["c-ok", "out", per(out[k]), ""]] });
  return panel("Jobs in and out", { side: h("div.legend", h("span", key("c-a", "5 3"), "in ", h("b", per(into.at(-1) ?? 0))), h("span", key("c-ok", ""), "out ", h("b", per(out.at(-1) ?? 0)))) }, lines([{ values: shown(into), name: "c-a", dash: "dash" }, { values: shown(out), name: "c-ok", area: true }], { ...line, height: 120, max, unit: isSlow ? "/min" : "/s", label: "Jobs enqueued and finished per second", hover: { columns: line.columns, describe } }));
}

function table(view, list, facts) {
  const text = (view.params.get("q") ?? "").toLowerCase();
  const found = list.filter((queue) => queue.name.toLowerCase().includes(text)).sort((a, b) => Boolean(a.paused_at) - Boolean(b.paused_at) || (b.oldest_pending_seconds ?? -1) - (a.oldest_pending_seconds ?? -1) || a.name.localeCompare(b.name));
  if (!list.length) return h("section.panel", empty("No queues yet", h("p", "A queue exists as soon as a job or a worker names it. Give a job another one with @app.job(queue=\"mail\").")));
  return h("section.panel", h("header", h("h2", plural(list.length, "queue")), h("div.push", h("input.input.find", { "aria-label": "Filter queues", placeholder: "Filter", value: view.params.get("q") ?? "", oninput: (event) => setParams({ q: event.target.value }, { replace: true }) }))),
    h("div.table-wrap", h("table.table.two.cards.tall", h("thead", h("tr", h("th", "Queue"), h("th.n", "Pending"), h("th.p-1", { title: "Pending jobs in the last hour" }, "1 h"), h("th.n", "Oldest"), h("th.n.p-m", "In"), h("th.n.p-m", "Out"), h("th.n.p-2", "Net"), h("th.p-2", "Slots"), h("th.n.p-1", "Wait p95"), h("th", h("span.sr", "Actions")))),
      h("tbody", found.map((queue, n) => row(queue, n, facts))))));
}

function row(queue, n, { series, waits, history }) {
  const group = series?.groups.find((one) => one.name === queue.name);
  const points = series && { ...series, points: group?.points ?? [] };
  const recent = (...whats) => (points ? sum(counts(points, ...whats).slice(-6, -1)) / (5 * series.step) : 0);
  const [into, out] = [recent("enqueued"), recent(...OUT)];
  const net = into - out;
  const per = Math.max(into, out) < 0.95 ? perMinute : perTime; // one unit, so that the three can be compared
  const serving = (data.fleet.now?.fleet ?? []).filter((worker) => worker.alive && !worker.draining_at && worker.queues.includes(queue.name));
  const [busy, total] = [sum(serving.map((worker) => worker.held)), sum(serving.map((worker) => worker.concurrency))];
  const wait = waits?.latencies.find((one) => one.queue === queue.name && one.measure === "waited");
  const age = queue.oldest_pending_seconds;
  const mood = queue.paused_at ? "" : isLate(age ?? 0);
  const part = (state, words = state) => (queue[state] ? `${capped(queue[state], queue.capped.includes(state))} ${words}` : null);
  const note = queue.paused_at ? `since ${clockTime(queue.paused_at, { seconds: false })} by ${queue.paused_by ?? "someone"}${queue.pause_reason ? `: ${queue.pause_reason}` : ""}` : [serving.length ? plural(serving.length, "worker") : "no worker serves it", part("retry", "wait to retry"), part("scheduled"), part("blocked"), part("waiting")].filter(Boolean).join(", ");
  return h("tr", { key: queue.name, "data-row": true, tabindex: n ? "-1" : "0", class: queue.paused_at ? "paused" : mood === "bad" ? "alarm" : null },
    h("td.keep.a-name.grow", h("div.two-line.roomy", h("div.row", h("a.name.cut", { title: queue.name, href: address("jobs", [], { queue: queue.name, state: "pending" }), "data-open": true }, queue.name), queue.paused_at && tone("warn", "paused", "pause")), h("div.cut.note", { title: note }, note))),
    h("td.n.a-side.strong", { "data-unit": "pending" }, capped(queue.pending, queue.capped.includes("pending"))),
    h("td.sparkcell.p-1", history?.points.length > 1 && spark(measuredOf(history, queue.name, "pending").slice(0, -1), { name: mood === "bad" ? "c-bad" : "" })),
    h("td.n.a-meta", { class: mood, "data-lead": "oldest" }, age === null ? "–" : duration(age)),
    h("td.n.muted.p-m", per(into)), h("td.n.muted.p-m", per(out)),
    h("td.n.p-2", { class: net > Math.max(0.1, out * 0.05) ? "warn" : "faint" }, Math.abs(net) < Math.max(0.005, out * 0.02) ? "0" : `${net > 0 ? "+" : "−"}${per(Math.abs(net))}`),
    h("td.p-2", total ? h("div.row", h("span.slotcell", slots(busy, total, busy >= total ? "c-warn" : "")), h("span.muted.num", `${busy}/${total}`)) : h("span.faint", "–")),
    h("td.n.muted.p-1", wait ? duration(wait.p95) : "–"),
    h("td.acts.keep", h("button.btn.sm", { class: queue.paused_at ? "loud" : null, type: "button", disabled: !data.may("operate"), "aria-label": `${queue.paused_at ? "Resume" : "Pause"} ${queue.name}`, onclick: () => (queue.paused_at ? resume(queue) : pause(queue)) }, icon(queue.paused_at ? "play" : "pause", 12), h("span.p-1", queue.paused_at ? "Resume" : "Pause"))));
}

async function pause(queue) {
  const answer = await confirm({ title: `Pause queue ${queue.name}?`, text: "No more of its jobs start. Running jobs continue, and new ones can be enqueued.", fields: [["reason", "Reason, shown on the queue", "optional"]], yes: "Pause it" });
  if (!answer) return;
  await act(() => post(`/queues/${part(queue.name)}/pause`, answer.reason ? { reason: answer.reason } : {}), ["info", `Queue ${queue.name} is paused.`, { symbol: "pause", action: "Undo", onaction: () => resume(queue) }]);
  data.refresh("/queues", "/findings");
}

async function resume(queue) {
  await act(() => post(`/queues/${part(queue.name)}/resume`), `Queue ${queue.name} runs again.`);
  data.refresh("/queues", "/findings");
}

// Limits

const inWords = ({ concurrency, concurrency_per_key: perKey, rate, rate_per_key: ratePerKey, key, fair }) => [
  concurrency !== undefined && `at most ${concurrency} running, all workers together`, perKey !== undefined && `at most ${perKey} running for each ${key}`,
  rate && `at most ${rate[0]} starts in ${duration(rate[1])}`, ratePerKey && `at most ${ratePerKey[0]} starts in ${duration(ratePerKey[1])} for each ${key}`, fair && "in fair turns",
].filter(Boolean).join("; ") || "no bound";

function limitTable(limits) {
  const add = h("button.btn.sm", { type: "button", disabled: !data.may("admin"), onclick: () => edit(null) }, "New limit");
  if (!limits.length) return panel("Limits", { sub: "what holds jobs back besides slots", side: add }, h("p.faint", "No limit is set. Declare one with @app.job(concurrency=5), or add one here for all workers at once."));
  return panel("Limits", { flush: true, sub: "what holds jobs back besides slots", side: add }, h("div.table-wrap", h("table.table.two.cards.tall", h("thead", h("tr", h("th", "Limit"), h("th.p-1", "Use"), h("th.n", "Now"), h("th.n", "Jobs wait"), h("th.n.p-2", "Set"), h("th", h("span.sr", "Actions")))), h("tbody", limits.map(limitRow)))));
}

function limitRow(limit) {
  const bound = limit.rules.concurrency ?? limit.rules.rate?.[0];
  const used = limit.rules.concurrency !== undefined ? limit.running : limit.started;
  const off = !data.may("admin");
  return h("tr", { key: limit.name }, h("td.grow.a-name", h("div.two-line", h("span.name.cut", limit.name), h("span.cut", { title: inWords(limit.rules) }, inWords(limit.rules)))),
    h("td.p-1", bound !== undefined && h("span.slotcell", slots(Math.min(used, bound), bound, used >= bound ? "c-warn" : ""))),
    h("td.n.a-side", bound === undefined ? count(used) : `${count(used)} of ${count(bound)}`), h("td.n.a-meta", { class: limit.waiting ? "warn" : "faint", "data-lead": "jobs wait:" }, limit.waiting ? "yes" : "no"),
    h("td.n.muted.p-2", limit.override ? ["by ", limit.override_by ?? "someone", " ", when(limit.override_at)] : "in code"),
    h("td.acts", h("div.row.end", h("button.btn.sm", { type: "button", disabled: off, "aria-label": `Edit ${limit.name}`, onclick: () => edit(limit) }, "Edit"), limit.override && h("button.btn.sm", { type: "button", disabled: off, "aria-label": `Reset ${limit.name}`, onclick: () => reset(limit) }, "Reset"))));
}

async function edit(limit) {
  const fields = [["concurrency", "At most this many running, all workers together", "a number", limit?.rules.concurrency], ["rate", "At most this many starts", "a number", limit?.rules.rate?.[0]], ["every", "in each", "1m", limit?.rules.rate ? `${limit.rules.rate[1]}s` : "1m"]];
  const answer = await confirm({ title: limit ? `Change ${limit.name}` : "New limit", text: "It applies to all workers at once, until it is reset.", fields: limit ? fields : [["name", "Name", "queue:mail or kind:send_email"], ...fields], yes: limit ? "Change it" : "Set it" });
  if (!answer) return;
  const body = {};
  if (answer.concurrency) body.concurrency = Number(answer.concurrency);
  if (answer.rate) body.rate = { most: Number(answer.rate), every: answer.every ?? "1m" };
  if (!Object.keys(body).length) return toast("warn", "Nothing was given: the limit stays as it is.");
  await act(() => put(`/limits/${part(limit?.name ?? answer.name ?? "")}`, body), "The limit applies now.");
  data.refresh("/limits");
}

async function reset(limit) {
  if (!(await confirm({ title: `Reset ${limit.name}?`, text: limit.declared ? `The rules of the code apply again: ${inWords(limit.declared)}.` : "No code declares it: it is removed.", yes: "Reset it" }))) return;
  await act(() => remove(`/limits/${part(limit.name)}`), "The limit is reset.");
  data.refresh("/limits");
}
