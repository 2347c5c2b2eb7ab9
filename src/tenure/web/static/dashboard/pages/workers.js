// Workers: lost ones first, then what each runs.
import { h } from "../lib/dom.js";
import { part, post } from "../lib/api.js";
import { now, when } from "../lib/clock.js";
import { confirm } from "../lib/dialogs.js";
import * as data from "../lib/data.js";
import { count, duration, megabytes, plural } from "../lib/format.js";
import { address, setParams } from "../lib/router.js";
import { act } from "../lib/toasts.js";
import { callout, empty, link, panel, segments, tone, waiting } from "../lib/ui.js";
import { lines, niceMax } from "../charts/charts.js";
import { key, slots, ticks } from "../charts/marks.js";
import { axis, measured, stepName, whole } from "../charts/series.js";
import { sum } from "./overview.js";

const GROUPS = [["", "Flat"], ["host", "By machine"], ["version", "By version"]];
const beats = new Map(); // worker: times of its last heartbeats that were seen

export function start(view) {
  view.useFleet();
  const workers = view.use("/workers", 5);
  const running = view.use("/jobs?state=running&limit=200&max_age=2", 5);
  const history = view.use("/stats/fleet?last=1h&step=1m", 30);
  view.onPlace = () => view.redraw();
  view.draw = () => {
    if (!workers.value) return waiting(workers, 6);
    const list = workers.value.workers;
    for (const worker of list) seen(worker);
    if (!list.length) return h("section.panel", empty("No worker is running", h("p", "Jobs wait until one starts:"), h("pre.code", { tabindex: "0" }, "tenure worker --app your_module:app --concurrency 10")));
    const lost = list.filter((worker) => !worker.alive && worker.died_how !== "stopped");
    return [lost.map(lostCallout), h("div.g-2", slotChart(history.value, list), memoryChart(history.value, list)), table(view, list, running.value?.jobs ?? [])];
  };
}

/** Of the app's code, if it names one, else of Tenure. */
const versionOf = (worker) => worker.app_version ?? worker.version;
const groupOf = (worker, by) => (by === "version" ? versionOf(worker) : String(worker[by]));

function seen(worker) {
  const list = beats.get(worker.id) ?? [];
  if (list.at(-1) !== worker.heartbeat_at) list.push(worker.heartbeat_at);
  beats.set(worker.id, list.slice(-40));
}

function lostCallout(worker) {
  const at = worker.died_at ?? worker.expires_at;
  const how = worker.died_how === "crashed" ? "Its process crashed." : "It stopped renewing its lease: its machine, network or process is gone.";
  return callout("bad", [`${worker.name} is lost, `, when(at), "."], `${how} ${worker.held ? `${plural(worker.held, "job")} that it held will run elsewhere.` : "Its jobs were requeued and run elsewhere."} No result was lost.`, link(address("jobs", [], { state: "running" }), "Running jobs"));
}

function slotChart(history, list) {
  const alive = list.filter((worker) => worker.alive);
  const [held, slotsNow] = [sum(list.map((worker) => worker.held)), sum(alive.map((worker) => worker.concurrency))];
  if (!history) return panel("Slots", {}, h("div.skel.chartish.h-120"));
  const line = whole(axis(history));
  const [busy, all, workers] = ["busy", "slots", "workers"].map((name) => measured(history, history.points, name).slice(0, -1));
  const max = niceMax(Math.max(slotsNow, ...busy, ...all), 1);
  const describe = (k) => ({ when: stepName(line, k), values: [["c-1", "busy", inWords(busy[k]), ""], ["c-mute", "slots", inWords(all[k]), "5 3"], ["c-2", "workers", inWords(workers[k]), "1.5 3"]] });
  const legend = h("div.legend", h("span", key("c-1", ""), "busy ", h("b", count(held))), h("span", key("c-mute", "5 3"), "slots ", h("b", count(slotsNow))), h("span", key("c-2", "1.5 3"), "workers ", h("b", count(alive.length))));
  return panel("Slots", { side: legend }, lines([{ values: all, name: "c-mute", dash: "dash" }, { values: workers, name: "c-2", dash: "dots" }, { values: busy, name: "c-1", area: true }], { ...line, height: 120, max, label: `Busy slots, slots and workers over the last hour; ${held} of ${slotsNow} slots busy now`, hover: { columns: line.columns, describe } }));
}

const inWords = (value) => (value === null ? "not recorded" : count(value));

function memoryChart(history, list) {
  if (!history) return panel("Memory", {}, h("div.skel.chartish.h-120"));
  const line = whole(axis(history));
  const largest = measured(history, history.points, "memory_mb").slice(0, -1);
  const [top] = list.filter((worker) => worker.alive).sort((a, b) => (b.memory_mb ?? 0) - (a.memory_mb ?? 0));
  const current = top?.memory_mb ?? 0;
  const max = niceMax(Math.max(current, ...largest), 10);
  const describe = (k) => ({ when: stepName(line, k), values: [["c-2", "largest process", largest[k] === null ? "not recorded" : megabytes(largest[k]), ""]] });
  return panel("Memory", { sub: h("span.p-1", "largest process"), side: h("div.legend", h("span", key("c-2", ""), current ? [h("span.legend-name", top.name), h("b", megabytes(current))] : "not measured yet")) }, lines([{ values: largest, name: "c-2", area: true }], { ...line, height: 120, max, text: (value) => (value ? megabytes(value) : "0"), label: `Memory of the largest process over the last hour; ${megabytes(current)} now`, hover: { columns: line.columns, describe } }));
}

function summary(list) {
  const alive = list.filter((worker) => worker.alive);
  const [hosts, versions] = [new Set(alive.map((worker) => worker.host)).size, new Set(alive.map(versionOf)).size];
  const known = alive.filter((worker) => worker.memory_mb !== null);
  return `on ${plural(hosts, "machine")}, ${plural(versions, "version")}${known.length ? `, ${megabytes(sum(known.map((worker) => worker.memory_mb)))} in all` : ""}`;
}

function table(view, list, running) {
  const by = view.params.get("by") ?? "";
  const newest = versionOf(list.toSorted((a, b) => Date.parse(a.started_at) - Date.parse(b.started_at)).at(-1));
  const sorted = list.toSorted((a, b) => a.alive - b.alive || (by ? groupOf(a, by).localeCompare(groupOf(b, by)) : 0) || a.name.localeCompare(b.name));
  let group = null;
  const rows = sorted.flatMap((worker, n) => {
    const head = by && groupOf(worker, by) !== group ? [h("tr.group", { key: `g${groupOf(worker, by)}` }, h("th", { colspan: "9", scope: "rowgroup" }, groupOf(worker, by)))] : [];
    group = groupOf(worker, by);
    return [...head, row(worker, n, newest, running, list)];
  });
  return h("section.panel", h("header", h("h2", plural(list.length, "worker")), h("span.sub", summary(list)), h("div.push", segments("Group by", GROUPS, by, (value) => setParams({ by: value }, { replace: true })))),
    h("div.table-wrap", h("table.table.two.cards.tall", h("thead", h("tr", h("th", "Worker"), h("th.p-2", "Queues"), h("th", "Slots"), h("th.p-1", "Running now"), h("th.n.p-2", "Memory"), h("th.n.p-2", "Version"), h("th.n.p-3", "Up"), h("th.p-m", "Last beat"), h("th", h("span.sr", "Actions")))), h("tbody", rows))),
    h("div.pager", h("span", "A worker renews its lease every few seconds. When the lease ends, its jobs run elsewhere.")));
}

function row(worker, n, newest, running, list) {
  const mine = running.filter((job) => job.worker_id === worker.id);
  const kinds = new Map();
  for (const job of mine) kinds.set(job.kind, (kinds.get(job.kind) ?? 0) + 1);
  const told = [...kinds].sort((a, b) => b[1] - a[1]).map(([kind, jobs]) => (jobs > 1 ? `${kind} ×${jobs}` : kind)).join(", ");
  const longest = Math.max(0, ...mine.map((job) => now() - Date.parse(job.started_at))) / 1000;
  const isLost = !worker.alive;
  const full = worker.held >= worker.concurrency;
  return h("tr", { key: worker.id, "data-row": true, "data-id": worker.id, tabindex: n ? "-1" : "0", class: isLost && worker.died_how !== "stopped" ? "alarm" : null },
    h("td.a-name", h("div.two-line", h("div.row", h("span.name.cut", { title: worker.name }, worker.name), isLost ? tone(worker.died_how === "stopped" ? "idle" : "bad", worker.died_how === "stopped" ? "stopped" : "lost", "stop") : worker.draining_at && tone("warn", worker.held ? "draining" : "drained", "pause")), h("div", `${worker.host}, process ${worker.pid}`))),
    h("td.p-2", h("div.tags", worker.queues.slice(0, 3).map((queue) => h("span.tag", queue)), worker.queues.length > 3 && h("span.tag", `+${worker.queues.length - 3}`))),
    h("td.a-side", h("div.row", h("span.slotcell", slots(Math.min(worker.held, worker.concurrency), worker.concurrency, full ? "c-warn" : "")), h("span.muted.num", `${worker.held}/${worker.concurrency}`))),
    h("td.grow.p-1", h("div.cut.muted", { title: told }, isLost ? h("span", { class: worker.died_how === "stopped" ? "faint" : "bad" }, worker.died_how === "stopped" ? "stopped" : "lost. Its jobs run elsewhere") : told ? `${told}${longest > 5 ? `, longest ${duration(longest)}` : ""}` : h("span.faint", "idle"))),
    h("td.n.muted.p-2", worker.memory_mb === null ? "–" : megabytes(worker.memory_mb)),
    h("td.n.p-2", { class: versionOf(worker) === newest ? "muted" : "warn", title: `Tenure ${worker.version}` }, h("span.cut.version", versionOf(worker))), h("td.n.muted.p-3", duration((now() - Date.parse(worker.started_at)) / 1000)),
    h("td.p-m.a-meta", h("div.row", h("span.beatcell.p-3", { title: "Heartbeats in the last minute, since this page was opened" }, beatMarks(worker)), h("span.num.beat-t", { class: isLost ? "bad" : "muted" }, when(worker.heartbeat_at)))),
    h("td.acts", !isLost && h("button.btn.sm", { class: worker.draining_at ? "loud" : null, type: "button", disabled: !data.may("operate"), "aria-label": `${worker.draining_at ? "Resume" : "Drain"} ${worker.name}`, onclick: () => (worker.draining_at ? resume(worker) : drain(worker, list)) }, worker.draining_at ? "Resume" : "Drain…")));
}

async function drain(worker, list) {
  const others = list.filter((one) => one.alive && one.supervisor_id === worker.supervisor_id).length - 1;
  const answer = await confirm({ title: `Drain ${worker.name}?`, text: `It claims no more jobs; those it runs continue. ${others ? `The ${plural(others, "other process", "other processes")} of its supervisor ${others === 1 ? "drains" : "drain"} with it. ` : ""}It stays until it is stopped or resumed.`, yes: "Drain it" });
  if (!answer) return;
  await act(() => post(`/workers/${part(worker.id)}/drain`), ({ workers }) => ["info", `${plural(workers.length, "process claims", "processes claim")} no more jobs.`, { symbol: "pause", action: "Undo", onaction: () => resume(worker) }]);
  data.refresh("/workers", "/findings");
}

async function resume(worker) {
  await act(() => post(`/workers/${part(worker.id)}/resume`), `${worker.name} claims jobs again.`);
  data.refresh("/workers", "/findings");
}

/** Twelve parts of the last minute: a beat was seen, or none. Parts before this page was open are empty. */
function beatMarks(worker) {
  const known = (beats.get(worker.id) ?? []).map((at) => Date.parse(at));
  const part = 5000;
  const marks = Array.from({ length: 12 }, (_, k) => {
    const end = now() - (11 - k) * part;
    return known.some((at) => at > end - part * 1.2 && at <= end) ? "ok" : end < (known[0] ?? Infinity) ? "none" : worker.alive ? "none" : "late";
  });
  return ticks(marks, `last heartbeat ${duration((now() - Date.parse(worker.heartbeat_at)) / 1000)} ago`);
}
