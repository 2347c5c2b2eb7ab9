// Who did what, when, and to how many jobs.
import { h } from "../lib/dom.js";
import { get, part, post } from "../lib/api.js";
import { when } from "../lib/clock.js";
import * as data from "../lib/data.js";
import { count, plural, shortId } from "../lib/format.js";
import { address, setParams } from "../lib/router.js";
import { act } from "../lib/toasts.js";
import { callout, code, copyText, empty, json, problem, skeleton, tone } from "../lib/ui.js";

const WORDS = {
  cancel_job: "canceled job", retry_job: "retried job", replay_job: "replayed job", delete_job: "deleted job", create_tracker: "made a tracker token for job", dispatch_job: "dispatched job",
  pause_queue: "paused queue", resume_queue: "resumed queue", set_limit: "changed limit", reset_limit: "reset limit",
  create_schedule: "created schedule", change_schedule: "changed schedule", delete_schedule: "deleted schedule", run_schedule: "ran schedule", complete_chain: "completed chain", delete_chain: "deleted chain", signal_workflow: "sent a signal to workflow", cancel_workflow: "canceled workflow", resume_workflow: "resumed workflow", fork_workflow: "forked workflow", emit_event: "sent event", drain_worker: "drained worker", resume_worker: "resumed worker", pause_schedule: "paused schedule", resume_schedule: "resumed schedule", bulk: "changed many jobs", create_token: "created token", revoke_token: "revoked token",
};
// By action: the collection, the opposite action, and the words of the message.
const UNDO = { pause_queue: ["queues", "resume", "Queue", "resumed"], resume_queue: ["queues", "pause", "Queue", "paused"], pause_schedule: ["schedules", "resume", "Schedule", "resumed"], resume_schedule: ["schedules", "pause", "Schedule", "paused"], drain_worker: ["workers", "resume", "Worker", "resumed"], resume_worker: ["workers", "drain", "Worker", "drained"] };
const SOURCES = { dashboard: "in the dashboard", api: "with the REST API", tracker: "with a token of this one job", cli: "on the command line" };
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-/;

export function start(view) {
  const log = { entries: [], next: undefined, error: null };
  const load = async (more, age = 0) => {
    try {
      const reply = await get("/audit", { limit: 200, before: more ? log.next : null, max_age: age || null });
      log.entries = more ? [...log.entries, ...reply.entries] : reply.entries;
      log.next = reply.next;
      log.error = null;
    } catch (error) {
      log.error = error;
    }
    view.redraw();
  };
  if (data.may("admin")) {
    load(false);
    let last = Date.now();
    view.everySecond(() => {
      if (Date.now() - last < 10000 || data.status.paused || log.entries.length > 200) return;
      last = Date.now();
      load(false, 8);
    });
  }
  view.onPlace = () => view.redraw();
  view.draw = () => {
    if (!data.may("admin")) return callout("info", "The audit log needs the scope admin.", "Your access does not include it. A token with it: tenure tokens create NAME --scope admin.");
    if (log.error) return problem(log.error);
    if (log.next === undefined) return h("section.panel", skeleton(8));
    const calls = joined(log.entries);
    const text = (view.params.get("q") ?? "").toLowerCase();
    const found = calls.filter((one) => !text || JSON.stringify([one.actor, one.source, one.ip, one.action, WORDS[one.action], one.subject, one.request]).toLowerCase().includes(text));
    return [bar(view, found), table(view, found, () => load(true), log.next)];
  };
}

/** An action is in the log when it was asked for and when it ended: one line for both. */
function joined(entries) {
  const calls = new Map();
  for (const entry of entries) {
    const known = calls.get(entry.request_id);
    if (!known) calls.set(entry.request_id, { ...entry });
    else for (const [name, value] of Object.entries(entry)) if (known[name] === null && value !== null) known[name] = value;
  }
  return [...calls.values()];
}

function bar(view, found) {
  return h("div.row.wrap", h("div.filter", { role: "search" }, h("svg.i.i-14.faint", { "aria-hidden": "true" }, h("use", { href: "#i-search" })), h("input", { "aria-label": "Search audit log", placeholder: "Filter by person, action, queue, job or reason", value: view.params.get("q") ?? "", oninput: (event) => setParams({ q: event.target.value }, { replace: true }) })),
    h("button.btn", { type: "button", onclick: () => copyText(csv(found), "the list as CSV") }, "Copy as CSV"));
}

const cell = (value) => `"${String(value ?? "").replace(/"/g, '""').replace(/^[=+\-@]/, "'$&")}"`;
const csv = (list) => [["at", "actor", "source", "ip", "action", "subject", "status", "request"], ...list.map((one) => [one.at, one.actor, one.source, one.ip, one.action, one.subject, one.status, one.request && JSON.stringify(one.request)])].map((row) => row.map(cell).join(",")).join("\n");

function table(view, list, more, next) {
  if (!list.length) return h("section.panel", empty("Nothing in the audit log", h("p", "Every call that changes something is recorded here: who, from where, what, and the state before and after. Try it: pause a queue and resume it.")));
  const open = view.params.get("entry");
  return h("section.panel", h("div.table-wrap", h("table.table.cards", h("thead", h("tr", h("th", "When"), h("th", "Who"), h("th", "Did what"), h("th.p-2", "Reason given"), h("th.n", "Jobs"), h("th", h("span.sr", "Actions")))),
    h("tbody", list.map((one, n) => [row(one, n, open), one.request_id === open && h("tr.detail", { key: `d${one.request_id}` }, h("td", { colspan: "6" }, h("p.muted.origin", one.ip ? ["From ", h("span.mono", one.ip), one.source ? ` ${SOURCES[one.source]}` : "", ", request ", h("span.mono", one.request_id)] : ["Request ", h("span.mono", one.request_id)]), h("div.g-3e", part3("Request", one.request), part3("Before", one.before), part3("After", one.after))))])))),
    h("div.pager", h("span", `${plural(list.length, "entry", "entries")}. Entries cannot be changed or removed here.`), next && h("span.push-1", h("button.btn.sm", { type: "button", onclick: more }, "Older"))));
}

const part3 = (title, value) => h("div", h("h2.mini", title), value === null ? h("p.faint", "–") : code(json(value)));

/** How many jobs it was about. All that match a filter are changed by a job, which the number leads to. */
function jobsOf({ after }) {
  const number = after?.changed ?? after?.matched;
  if (number === undefined) return "";
  return after.job ? h("a.link", { href: address("jobs", [after.job]), title: "The job that changes them" }, count(number)) : count(number);
}

function row(one, n, open) {
  const what = WORDS[one.action] ?? one.action.replace(/_/g, " ");
  const filter = one.action === "bulk" ? `${one.request?.action ?? ""} where ${Object.entries(one.request?.filter ?? {}).filter(([, value]) => value !== null).map(([key, value]) => `${key} is ${Array.isArray(value) ? (value.length > 3 ? plural(value.length, "id") : value.join(", ")) : JSON.stringify(value)}`).join(" and ")}` : "";
  const subject = one.subject && one.action !== "bulk" ? (ID.test(one.subject) ? h("a.link.mono", { href: one.action.endsWith("_worker") ? address("workers") : address("jobs", [one.subject]) }, shortId(one.subject)) : h("span.medium", one.subject)) : filter;
  const failed = one.status !== null && one.status >= 400;
  const undo = UNDO[one.action];
  const isOpen = one.request_id === open;
  return h("tr", { key: one.request_id, "data-row": true, tabindex: n ? "-1" : "0", class: isOpen ? "focus" : null },
    h("td.muted.a-side", when(one.at)), h("td.a-sub", h("div.row", h("span.cut", { title: one.actor }, one.actor), one.source && h("span.tag", { title: SOURCES[one.source] }, one.source))),
    h("td.grow.a-name", h("div.row", h("button.linkname.cut", { type: "button", "data-open": true, "aria-expanded": String(isOpen), onclick: () => setParams({ entry: isOpen ? null : one.request_id }, { replace: true }) }, one.request?.dry_run !== false && one.action === "bulk" ? "counted jobs" : what), " ", h("span.cut", subject), one.status === null ? tone("warn", "not finished") : failed ? tone("bad", `refused, ${one.status}`) : null)),
    h("td.p-2.muted", h("div.cut.why-cell", one.request?.reason ?? "")), h("td.n.a-meta", jobsOf(one)),
    h("td.acts", undo && !failed && h("button.btn.sm", { type: "button", "aria-label": `Undo: ${what} ${one.subject}`, onclick: () => act(() => post(`/${undo[0]}/${part(one.subject)}/${undo[1]}`), `${undo[2]} ${ID.test(one.subject) ? shortId(one.subject) : one.subject} is ${undo[3]}.`) }, "Undo")));
}
