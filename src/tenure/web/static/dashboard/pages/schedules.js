// Schedules: in words first, when they run next, what happened at the last planned times.
import { h } from "../lib/dom.js";
import { get, part, patch, post, remove } from "../lib/api.js";
import { dayTime, exact, now, when, zoneName } from "../lib/clock.js";
import { confirm } from "../lib/dialogs.js";
import * as data from "../lib/data.js";
import { duration, shortId } from "../lib/format.js";
import { address, go, setParams } from "../lib/router.js";
import { act } from "../lib/toasts.js";
import { code, empty, icon, json, segments, skeleton, state, tone, waiting } from "../lib/ui.js";
import { ticks } from "../charts/marks.js";

const MOST_ASKED = 60;
const MISSED = { none: "left out", one: "runs once", all: "runs for each, up to a limit" };
const OVERLAP = { skip: "the time is skipped", queue: "it waits for the earlier one", allow: "both run" };

export function start(view) {
  const list = view.use("/schedules", 10);
  const past = new PastTimes(view);
  view.onPlace = () => view.redraw();
  view.draw = () => {
    if (!list.value) return waiting(list, 8);
    const all = list.value.schedules;
    past.load(all);
    if (!all.length) return h("section.panel", empty("No schedules yet", h("p", "Declare one beside a job, and a worker makes it known when it starts:"), h("pre.code", { tabindex: "0" }, '@app.cron("0 3 * * *", timezone="Europe/Berlin")\nasync def nightly(ctx) -> None: ...'), h("p", "Or create one here, for any kind."), h("button.btn.primary", { type: "button", disabled: !data.may("admin"), onclick: create }, "New schedule")));
    return [bar(view, all), table(view, chosen(all, view.params.get("show")), past)];
  };
}

/** The last planned times of each schedule, and the states of the jobs that they enqueued last, live. */
class PastTimes {
  constructor(view) {
    this.view = view;
    this.ticks = new Map(); // by schedule
    this.asked = new Map(); // schedule: for which last time
    this.states = new Map(); // by job
    this.follows = new Map();
    this.last = Promise.resolve();
  }

  load(schedules) {
    for (const one of schedules.slice(0, MOST_ASKED)) {
      if (this.asked.get(one.name) === one.last_at) continue;
      this.asked.set(one.name, one.last_at);
      this.refresh(one.name);
    }
  }

  /** One at a time: an older answer never replaces a newer one. */
  refresh(name) {
    this.last = this.last.then(() => this.ask(name));
  }

  async ask(name) {
    if (this.view.closed) return;
    try {
      this.ticks.set(name, (await get(`/schedules/${part(name)}/ticks`, { limit: 24 })).ticks);
    } catch {
      return this.asked.delete(name); // asked again when the list is
    }
    this.follow();
    this.view.redraw();
  }

  follow() {
    const wanted = new Set([...this.ticks.values()].map((ticks) => ticks[0]?.job_id).filter(Boolean));
    for (const [id, end] of this.follows) if (!wanted.has(id)) { end(); this.follows.delete(id); this.states.delete(id); }
    for (const id of wanted) if (!this.follows.has(id)) this.follows.set(id, this.view.follow(`job:${id}`, (message) => this.changed(id, message)));
  }

  changed(id, message) {
    if (message.type === "gone") this.states.delete(id);
    else if (message.type === "job") this.states.set(id, message.job.state);
    this.view.redraw();
  }
}

const isSoon = (one) => !one.paused_at && one.next_at && Date.parse(one.next_at) - now() < 3600e3;
const chosen = (all, show) => (show === "soon" ? all.filter(isSoon) : show === "paused" ? all.filter((one) => one.paused_at) : all);

function bar(view, all) {
  const show = [["", `All ${all.length}`], ["soon", `Due next hour ${all.filter(isSoon).length}`], ["paused", `Paused ${all.filter((one) => one.paused_at).length}`]];
  return h("div.row.wrap", segments("Show", show, view.params.get("show") ?? "", (value) => setParams({ show: value }, { replace: true })), h("span.push"), h("span.faint.p-1", `Times in ${zoneName()} unless a schedule names its zone`), h("button.btn", { type: "button", disabled: !data.may("admin"), onclick: create }, "New schedule"));
}

function table(view, list, past) {
  const open = view.params.get("name");
  return h("section.panel", h("table.table.two.cards", h("thead", h("tr", h("th", "Schedule"), h("th", "When"), h("th.n", "Next run"), h("th.p-3", "Then"), h("th.p-m", "Last run"), h("th.p-2", "Last 24"), h("th", h("span.sr", "Actions")))),
    h("tbody", list.map((one, n) => [row(one, n, open, past), one.name === open && h("tr.detail", { key: `d${one.name}` }, h("td", { colspan: "7" }, detail(one, past.ticks.get(one.name))))]))),
    h("div.pager", h("div.legend", legend("ok", "completed"), legend("bad", "failed"), legend("run", "not over"), legend("late", "enqueued late"), legend("skip", "skipped"), legend("no", "missed"))));
}

const legend = (name, text) => h("span", h("svg.ticks.k", { "aria-hidden": "true" }, h("rect", { class: name, x: name === "skip" ? 0.5 : 0, y: name === "no" ? 0 : name === "skip" ? 4.5 : 3, width: 6, height: name === "no" ? 16 : name === "skip" ? 8 : 10, rx: 1 })), text);
const FAILED = new Set(["failed", "dead_letter"]);
/** What became of a planned time, and of its job. A job that is no longer stored counts as completed. */
function mark(tick, states) {
  if (tick.outcome === "missed") return "no";
  if (!tick.job_id) return "skip";
  const now = states.get(tick.job_id) ?? tick.job_state ?? "completed";
  return FAILED.has(now) ? "bad" : now === "canceled" ? "skip" : now !== "completed" ? "run" : tick.is_late ? "late" : "ok";
}

function row(one, n, open, past) {
  const list = past.ticks.get(one.name) ?? [];
  const isOpen = one.name === open;
  const marks = [...new Array(Math.max(0, 24 - list.length)).fill("none"), ...list.toReversed().map((tick) => mark(tick, past.states))];
  const off = !data.may("operate");
  const last = list[0];
  return h("tr", { key: one.name, "data-row": true, tabindex: n ? "-1" : "0", class: [one.paused_at ? "paused" : "", isOpen ? "focus" : ""].join(" ").trim() || null },
    h("td.keep.a-name", h("div.two-line", h("div.row", h("button.name.linkname", { type: "button", "data-open": true, "aria-expanded": String(isOpen), onclick: () => setParams({ name: isOpen ? null : one.name }) }, one.name), one.paused_at && tone("warn", "paused", "pause")), h("div", "runs ", h("span.mono", one.kind)))),
    h("td.grow.a-sub", h("div.two-line", h("div.cut", { title: one.words }, one.words), h("div.mono.cut", one.cron ?? `every ${duration(one.every)}`))),
    h("td.n.a-side", h("div.two-line", one.paused_at ? [h("span.medium", "paused"), h("span", `by ${one.paused_by ?? "someone"}`)] : [h("span.medium", one.next_at ? when(one.next_at) : "–"), h("span", one.next_at ? dayTime(one.next_at) : "")])),
    h("td.p-3.muted", one.upcoming.slice(1, 3).map((at) => dayTime(at, { seconds: false })).join(", ")),
    h("td.p-m", h("div.two-line", last ? [last.job_id ? h("a.link", { href: address("jobs", [last.job_id]), title: last.job_id }, past.states.has(last.job_id) ? state(past.states.get(last.job_id)) : shortId(last.job_id)) : h("span", last.outcome), h("span", when(last.planned_at))] : [h("span.faint", "never"), h("span", "")])),
    h("td.tickcell.p-2", ticks(marks, `last ${list.length} planned times`)),
    h("td.acts.a-meta", h("div.row.end", h("button.btn.sm", { type: "button", disabled: off, onclick: () => run(one, past) }, "Run now"), h("button.btn.sm.icon", { type: "button", disabled: off, "aria-label": `${one.paused_at ? "Resume" : "Pause"} ${one.name}`, title: one.paused_at ? "Resume" : "Pause", onclick: () => (one.paused_at ? resume(one) : pause(one)) }, icon(one.paused_at ? "play" : "pause", 12)))));
}

function detail(one, ticks) {
  return h("div.g-3e",
    h("div", h("h2.mini", "What it does"), h("p", "Runs ", h("span.mono", one.kind), ` ${one.words}.`), one.pause_reason && h("p.warn", `Paused: ${one.pause_reason}`),
      h("dl.facts.gap", h("dt", "Queue"), h("dd", one.queue), h("dt", "If missed"), h("dd", MISSED[one.catch_up] ?? one.catch_up), h("dt", "If still running"), h("dd", OVERLAP[one.overlap] ?? one.overlap), h("dt", "Defined"), h("dd", one.owner ? ["in the code of ", h("span.mono", one.owner)] : `here, by ${one.changed_by ?? "someone"}`)),
      h("h2.mini.gap", "Input"), code(json(one.input)),
      !one.owner && h("div.row.gap", h("button.btn.sm", { type: "button", disabled: !data.may("admin"), onclick: () => edit(one) }, "Edit…"), h("button.btn.sm.danger", { type: "button", disabled: !data.may("admin"), onclick: () => drop(one) }, "Delete…"))),
    h("div", h("h2.mini", "Past times"), ticks ? h("ol.links.ticklist", ticks.slice(0, 10).map((tick) => h("li", { key: tick.planned_at }, h("span.mono.faint", { title: exact(tick.planned_at) }, dayTime(tick.planned_at)), tick.job_id ? h("a.link", { href: address("jobs", [tick.job_id]) }, tick.by ? `run by ${tick.by}` : "enqueued") : h("span", tick.times > 1 ? `${tick.outcome}, ${tick.times} times` : tick.outcome), h("span.push.faint", tick.is_late ? "late" : ""))), !ticks.length && h("li.faint", "No planned time has passed yet.")) : skeleton(3)),
    h("div", h("h2.mini", `Next times, ${one.timezone}`), h("ol.links.ticklist", one.upcoming.map((at) => h("li", { key: at }, h("span.mono.faint", { title: exact(at) }, `${at.slice(0, 10)} ${at.slice(11, 19)}${at.slice(19)}`), h("span.push.faint", when(at)))))));
}

async function run(one, past) {
  await act(() => post(`/schedules/${part(one.name)}/run`), ({ id }) => ["good", `${one.kind} will run now.`, { action: "Open", onaction: () => go(address("jobs", [id])) }]);
  past.refresh(one.name);
  data.refresh("/schedules");
}

async function pause(one) {
  const answer = await confirm({ title: `Pause schedule ${one.name}?`, text: "No more times are planned. Its jobs continue.", fields: [["reason", "Reason, shown on the schedule", "optional"]], yes: "Pause it" });
  if (!answer) return;
  await act(() => post(`/schedules/${part(one.name)}/pause`, answer.reason ? { reason: answer.reason } : {}), ["info", `Schedule ${one.name} is paused.`, { symbol: "pause", action: "Undo", onaction: () => resume(one) }]);
  data.refresh("/schedules");
}

async function resume(one) {
  await act(() => post(`/schedules/${part(one.name)}/resume`), `Schedule ${one.name} continues. Times that passed meanwhile are left out.`);
  data.refresh("/schedules");
}

async function drop(one) {
  if (!(await confirm({ title: `Delete schedule ${one.name}?`, text: "Its jobs continue. This cannot be undone.", yes: "Delete it", danger: true }))) return;
  await act(async () => (await remove(`/schedules/${part(one.name)}`), true), "The schedule is deleted.");
  setParams({ name: null });
  data.refresh("/schedules");
}

const FIELDS = [["cron", "When, as cron", "0 3 * * *"], ["every", "Or every, instead of cron", "10m"], ["timezone", "Time zone", "UTC"], ["queue", "Queue", "default of the kind"]];
const SKIP = { options: Object.entries(OVERLAP).map(([value, text]) => [value, `${value}: ${text}`]) };

/** Only what differs from `before` is sent: what is left out stays as it is. `cron` and `every` replace each other. */
function changesOf(answer, before) {
  const asked = { ...answer, input: answer.input ? JSON.parse(answer.input) : {} };
  if (answer.every && answer.cron) throw new Error("Give cron or every, not both: empty the one that does not apply.");
  return Object.fromEntries(Object.entries(asked).filter(([name, value]) => value !== null && JSON.stringify(value) !== JSON.stringify(before[name])));
}

async function create() {
  const answer = await confirm({ title: "New schedule", text: "For a kind that workers have published. Its input can be given as JSON.", fields: [["name", "Name", "nightly-report"], ["kind", "Kind", "export_report"], ...FIELDS, ["input", "Input, as JSON", "{}"]], yes: "Create it", no: "Not now" });
  if (!answer) return;
  await act(async () => post("/schedules", { name: "", kind: "", ...changesOf(answer, {}) }), (made) => `Schedule ${made.name} runs ${made.words}.`);
  data.refresh("/schedules");
}

async function edit(one) {
  const before = { cron: one.cron, every: one.every === null ? null : `${one.every}s`, timezone: one.timezone, queue: one.queue, overlap: one.overlap, input: one.input ?? {} };
  const answer = await confirm({ title: `Change schedule ${one.name}`, text: "It applies to the next planned time. Jobs that exist stay as they are.", fields: [...FIELDS.map(([name, label, hint]) => [name, label, hint, before[name]]), ["overlap", "If the earlier job still runs", "", one.overlap, SKIP], ["input", "Input, as JSON", "{}", JSON.stringify(before.input, null, 2), { isLong: true }]], yes: "Change it" });
  if (!answer) return;
  await act(async () => patch(`/schedules/${part(one.name)}`, changesOf(answer, before)), (made) => `Schedule ${made.name} runs ${made.words}.`);
  data.refresh("/schedules");
}
