// One workflow: what it waits for, its steps as a graph and over time, and what can be done with it.
import { h, $ } from "../lib/dom.js";
import { part, post } from "../lib/api.js";
import { dayTime, now, when } from "../lib/clock.js";
import { confirm } from "../lib/dialogs.js";
import * as data from "../lib/data.js";
import { duration, label, plural, sentence, shortId } from "../lib/format.js";
import { errorText, isFinal, isOver } from "../lib/jobs.js";
import { address, go, setParams } from "../lib/router.js";
import { act, toast } from "../lib/toasts.js";
import { traceback } from "../lib/traceback.js";
import { badge, callout, code, copy, copyText, glyph, icon, json, kbd, link, panel, problem, segments, skeleton, state } from "../lib/ui.js";
import { graph } from "../charts/graph.js";
import { Followed } from "../flow/followed.js";
import { lanes } from "../flow/lanes.js";
import { stepGraph } from "../flow/step_graph.js";
import { awaited, childOf, endWords, isShown, isSignal, nameOf, pathOf, settled, stateOf, tookOf, waitWords, whatOf } from "../flow/steps.js";
import { setTitle } from "../shell.js";

const MOST_CHILDREN = 50;
const MOST_LANES = 100;
const CANNOT = "Your access is read: you can look but not change";

export function start(view) {
  const page = new WorkflowPage(view, view.place.rest[0]);
  view.onPlace = () => view.redraw();
  view.draw = () => page.draw();
  view.keys = { c: () => page.isLive && data.may("operate") && page.cancel(), y: () => copyText(page.id, "the id") };
  view.afterDraw = () => page.showNewest();
  view.everySecond(() => {
    page.found.again();
    if (page.isLive) view.redraw();
  });
}

class WorkflowPage {
  constructor(view, id) {
    this.view = view;
    this.id = id;
    this.children = new Map(); // jobs that are waited for, by id
    this.follows = new Map();
    this.drafts = new Map(); // payloads that are being written, by step
    this.found = new Followed(view, "workflow", id);
  }

  get isLive() {
    return Boolean(this.found.value) && !isFinal(this.found.value.job);
  }

  draw() {
    const { error } = this.found;
    const value = this.found.value && settled(this.found.value);
    if (!value) {
      if (error) return error.status === 404 ? callout("warn", "There is no workflow with this id.", "It was deleted, its retention is over, or the id is not complete. An id has 36 characters.", link(address("workflows"), "Open workflows")) : problem(error);
      return h("section.panel", skeleton(12));
    }
    const { job, steps } = value;
    this.followChildren(steps);
    setTitle(`${job.kind} ${shortId(job.id)}`, crumbs(job));
    const open = job.state === "waiting" ? steps.filter((step) => ["open", "retry"].includes(step.state)) : [];
    const chosen = steps.find((step) => step.name === this.view.params.get("step"));
    return [error && problem(error), this.head(job), this.now(value, open), this.picture(value, chosen),
      h("div.g-main", h("div.stack", this.overTime(value), h("div.g-2", payload("Input", job.input), this.results(value))),
        h("aside.stack", chosen && this.chosen(chosen, job), open.filter(awaited).map((step) => this.sender(step, job)), this.said(value), this.facts(job)))];
  }

  /** A graph that is wider than the page begins at its end. */
  showNewest() {
    const box = $(".graph-wrap", this.view.root);
    if (!box || this.isScrolled) return;
    this.isScrolled = true;
    box.scrollLeft = box.scrollWidth;
  }

  /** Jobs that the workflow waits for are followed, so that their states in the graph are live. */
  followChildren(steps) {
    const wanted = new Set(steps.filter((step) => step.state === "open").map(childOf).filter(Boolean).slice(0, MOST_CHILDREN));
    for (const [id, end] of this.follows) if (!wanted.has(id)) { end(); this.follows.delete(id); }
    for (const id of wanted)
      if (!this.follows.has(id))
        this.follows.set(id, this.view.follow(`job:${id}`, (message) => {
          if (message.type === "job") this.children.set(id, message.job);
          this.view.redraw();
        }));
  }

  head(job) {
    const may = data.may("operate");
    const button = (text, on, action, name = "", ...more) => h("button.btn", { class: name, type: "button", disabled: !on, title: may ? null : CANNOT, onclick: action }, text, more);
    return h("div.row.wrap.job-head",
      h("div", h("div.row", h("h2.title", job.kind), badge(job.state, label(job.state), true)), h("div.row.faint.id-line", h("span.mono.cut", job.id), copy("id", job.id))),
      h("div.push.row.acts.wrap",
        h("a.btn.ghost.p-1", { href: address("jobs", [job.id]) }, "Open as job"),
        this.isLive && button([icon("bolt", 14), "Send signal…"], may, () => this.signal()),
        this.isLive && button("Resume…", may, () => this.resume(), this.found.value.held ? "primary" : ""),
        button("Fork…", may, () => this.fork(this.view.params.get("step"))),
        this.isLive && button("Cancel ", may, () => this.cancel(), "danger", kbd("c"))));
  }

  now({ job, held }, open) {
    if (held) return callout("warn", "It is held until a person decides.", held, link(address("jobs", [job.id]), "Open as job"));
    const told = (title, text) => h("section.callout", { key: "now", "data-state": job.state }, glyph(job.state), h("div.grow", h("h2", title), text && h("p", text)));
    if (open.length) {
      const [first, ...rest] = open.map((step) => waitWords(step, job));
      return told([sentenceOf(first), " No slot is used meanwhile."], [open.map(endWords).filter(Boolean).slice(0, 1).map((words) => ["It ", words, ". "]), rest.length ? ["At the same time it ", rest.slice(0, 3).map((words, n) => [n ? ", " : "", words]), rest.length > 3 ? `, and ${rest.length - 3} more` : "", "."] : null]);
    }
    if (job.state === "running") return told(["Running for ", duration((now() - Date.parse(job.started_at)) / 1000), `. Attempt ${job.attempt} of ${job.max_attempts}.`], "If the worker dies, another one continues after the last step that is recorded.");
    if (isOver(job)) return told([`${sentence(label(job.state))} `, when(job.finished_at ?? job.failed_at), ` after ${duration((Date.parse(job.finished_at ?? job.failed_at ?? job.enqueued_at) - Date.parse(job.enqueued_at)) / 1000)}.`], job.state === "completed" ? null : errorText(job));
    return told(`${sentence(label(job.state))}.`, job.state === "pending" ? "It runs as soon as a slot is free." : ["Due ", job.run_at ? when(job.run_at) : "later", ". ", errorText(job)]);
  }

  picture(value, chosen) {
    const { job } = value;
    const shown = value.steps.filter(isShown);
    const done = shown.filter((step) => step.state === "done").length;
    const asList = this.view.params.get("as") === "list";
    const version = job.capability?.startsWith(`${job.kind}@`) ? `, version ${job.capability.slice(job.kind.length + 1)} of the code` : "";
    const side = segments("View", [["graph", "Graph"], ["list", "List"]], asList ? "list" : "graph", (to) => setParams({ as: to === "list" ? "list" : null }, { replace: true }));
    const options = { sub: `${done} of ${plural(shown.length, "recorded step")} done${version}`, side, flush: asList };
    if (!value.steps.length) return panel("Steps", {}, h("p.faint", job.state === "completed" ? "It recorded no steps." : "Steps appear here as they are recorded."));
    if (asList) return panel("Steps", options, this.list(value));
    const { nodes, edges } = stepGraph(value, { chosen: chosen?.name, children: this.children, now: now() });
    if (!nodes.length) return panel("Graph", options, h("p.faint", "It has recorded values, and no steps."));
    return panel("Graph", options, graph(nodes, edges, `${job.kind}: ${plural(shown.length, "step")}`));
  }

  list({ job, steps }) {
    const row = (step, n) => h("tr", { key: step.name, "data-row": true, tabindex: n ? "-1" : "0", class: step.name === this.view.params.get("step") ? "focus" : null },
      h("td.a-side", state(stateOf(step, this.children))),
      h("td.a-name", h("a.name.cut", { href: address("workflows", [job.id], { as: "list", step: step.name }), "data-open": true }, step.name)),
      h("td.muted.p-1", whatOf(step, job)), h("td.n.muted.p-1", String(step.attempts)),
      h("td.n.muted.a-meta", step.started_at ? when(step.started_at) : "–"), h("td.n.muted.p-1", duration(tookOf(step, now())) || "–"),
      h("td.grow.a-sub", h("div.cut.muted", { class: step.error ? "bad" : null }, step.error?.split("\n")[0] ?? (step.output === null ? "" : JSON.stringify(step.output)))));
    return h("div.table-wrap", h("table.table.cards", { "aria-label": "Steps" }, h("thead", h("tr", h("th", "State"), h("th", "Step"), h("th.p-1", "What"), h("th.n.p-1", "Attempts"), h("th.n", "Started"), h("th.n.p-1", "Took"), h("th", "Output or error"))), h("tbody", steps.map(row))));
  }

  overTime({ job, steps }) {
    const all = steps.filter((step) => isShown(step) && (step.started_at || step.ended_at));
    const rows = all.slice(-MOST_LANES).map((step) => {
      const name = stateOf(step, this.children);
      const from = Date.parse(step.started_at ?? step.ended_at);
      const to = from + 1000 * (tookOf(step, now()) ?? 0);
      const waits = !["step", "transaction", "undo"].includes(step.what) || ["retry", "open"].includes(step.state);
      const child = childOf(step);
      return {
        key: step.name, name: nameOf(step), state: name, href: address("workflows", [job.id], { step: step.name, as: this.view.params.get("as") }),
        note: `${whatOf(step, job)}${pathOf(step) ? `, task ${pathOf(step).slice(0, -1)}` : ""}${child ? ` ${shortId(child)}` : ""}`,
        segments: [{ kind: waits ? "wait" : "run", state: waits && !isOver({ state: name }) ? name : waits ? (step.what === "call" ? name : "waiting") : name, from, to }],
        result: duration((to - from) / 1000), detail: step.state === "open" ? "until now" : step.error ? step.error.split(/[:\n]/)[0] : step.attempts > 1 ? `${step.attempts} attempts` : "recorded", isBad: step.state === "failed",
      };
    });
    return panel("Steps over time", { sub: all.length > MOST_LANES ? `the last ${MOST_LANES} of ${all.length}` : "" }, lanes(rows, isOver(job)));
  }

  results({ job, steps }) {
    if (job.output !== null && job.output !== undefined) return payload("Output", job.output);
    const known = steps.filter((step) => step.state === "done" && isShown(step) && step.output !== null && step.what !== "start").slice(-20);
    const value = Object.fromEntries(known.map((step) => [step.name, step.what === "call" ? step.output.output ?? null : step.what === "event" ? step.output.payload ?? null : step.output]));
    return payload("Results of steps", known.length ? value : null, isFinal(job) ? "It has none." : "Appear here as steps are done.");
  }

  /** The step that was chosen in the graph. */
  chosen(step, job) {
    const child = childOf(step);
    const row = (name, value) => (value === null || value === undefined || value === "" ? [] : [h("dt", name), h("dd", value)]);
    return h("section.panel", { key: "chosen", "aria-label": `Step ${step.name}` }, h("header", h("h2.cut", { title: step.name }, nameOf(step)), h("span.sub", whatOf(step, job)), h("div.push", h("button.btn.ghost.icon.sm", { type: "button", "aria-label": "Close", onclick: () => setParams({ step: null }, { replace: true }) }, icon("x", 12)))),
      h("div.body.stack", h("dl.facts", row("State", state(stateOf(step, this.children))), row("Task", pathOf(step).slice(0, -1)), row("Attempts", String(step.attempts)), row("Started", step.started_at && when(step.started_at)), row("Ended", step.ended_at && when(step.ended_at)), row(step.what === "sleep" ? "Until" : step.state === "retry" ? "Next attempt" : "Times out", step.due_at && [when(step.due_at), `, ${dayTime(step.due_at)}`]), row("Job", child && link(address("jobs", [child]), shortId(child)))),
        step.error && traceback(step.error, "framed"), step.output !== null && code(json(step.output)),
        h("div.row", h("button.btn.sm", { type: "button", disabled: !data.may("operate"), title: data.may("operate") ? null : CANNOT, onclick: () => this.fork(step.name) }, "Fork from here…"))));
  }

  /** An event or signal that is waited for, and a form that sends it. */
  sender(step, job) {
    const { event, key } = awaited(step);
    const signal = isSignal(step, job);
    const id = `payload-${step.name}`;
    const off = !data.may("operate") || (!signal && data.isLimited());
    const row = (name, value) => (value ? [h("dt", name), h("dd", value)] : []);
    return h("section.panel.answer", { key: `wait ${step.name}`, "aria-label": `Waiting for ${event}` }, h("header", h("h2", "Waiting for"), h("span.sub", signal ? "a signal" : "an event")),
      h("form.body", { onsubmit: (submit) => { submit.preventDefault(); this.send(step, signal, event, key); } },
        h("dl.facts", row(signal ? "Signal" : "Event", h("span.mono", event)), row("Key", !signal && key && h("span.mono", key)), row("Since", step.started_at && when(step.started_at)), row("Times out", step.due_at && when(step.due_at))),
        h("div.field.gap", h("label", { for: id }, "Payload ", h("span.type", "optional JSON")), h("textarea.area", { id, rows: "3", spellcheck: "false", value: this.drafts.get(step.name) ?? "", oninput: (input) => this.drafts.set(step.name, input.target.value) }), h("span.help", signal ? "This workflow receives it. The audit log records who sent it." : "All workflows that wait for it receive it. The audit log records who sent it.")),
        h("div.row.gap", h("button.btn.primary", { type: "submit", disabled: off, title: off ? CANNOT : null }, signal ? "Send the signal" : "Send the event"))));
  }

  said({ status }) {
    return status === null || status === undefined ? null : panel("Status", { sub: "ctx.set_status()" }, typeof status === "string" ? h("p", status) : code(json(status)));
  }

  facts(job) {
    const row = (name, value) => (value === null || value === undefined || value === "" ? [] : [h("dt", name), h("dd", value)]);
    return panel("Facts", {}, h("dl.facts", row("Queue", link(address("queues", [], { q: job.queue }), job.queue)), row("Attempts", `${job.attempt} of ${job.max_attempts}${job.crashes ? `, and ${plural(job.crashes, "crash", "crashes")}` : ""}`), row("Key", job.key && h("span.mono", job.key)), row("Created", [when(job.enqueued_at), job.enqueued_by ? [" by ", h("span.mono", job.enqueued_by)] : null]), row("Ended", job.finished_at && when(job.finished_at)), row("Started by", job.parent_id && link(address("jobs", [job.parent_id]), shortId(job.parent_id))), row("Fork of", job.system?.forked && link(address("workflows", [job.system.forked]), shortId(job.system.forked))), row("Chain", link(address("workflows", ["chains", job.chain_id ?? job.id]), shortId(job.chain_id ?? job.id)))));
  }

  async send(step, isSignalStep, event, key) {
    const payload = given(this.drafts.get(step.name));
    if (payload === undefined) return;
    const sent = await act(() => (isSignalStep ? post(`/workflows/${part(this.id)}/signal`, { name: event, payload }) : post("/events", { name: event, payload, ...(key ? { key } : {}) })), `${isSignalStep ? "The signal" : "The event"} ${event} is sent.`);
    if (sent) this.drafts.delete(step.name);
    this.found.load();
  }

  async signal() {
    const answer = await confirm({ title: "Send a signal", text: "ctx.wait_for_signal(name) of this workflow receives it, now or later.", fields: [["name", "Name", "approve"], ["payload", "Payload, as JSON", "optional", "", { isLong: true }]], yes: "Send it", no: "Not now" });
    const payload = answer && given(answer.payload);
    if (!answer || payload === undefined) return;
    await act(() => post(`/workflows/${part(this.id)}/signal`, { name: answer.name ?? "", payload }), `The signal ${answer.name} is sent.`);
    this.found.load();
  }

  async resume() {
    const { held } = this.found.value;
    const answer = await confirm({ title: "Resume this workflow?", text: held ? "It continues after the last step that is recorded. If the code still does not fit, it is held again." : "It is not held and continues by itself. Name a version of its code to move it to workers with that version.", fields: [["version", "Version of the code", held ? "optional" : "2"]], yes: "Resume it" });
    if (!answer) return;
    await act(() => post(`/workflows/${part(this.id)}/resume`, answer.version ? { version: answer.version } : {}), "It continues as soon as a slot is free.");
    this.found.load();
  }

  async fork(step) {
    const steps = this.found.value.steps.filter(isShown).slice(-200);
    const answer = await confirm({ title: "Run it again as a fork?", text: "A new workflow keeps what was recorded before the step, and runs from there. This one stays as it is.", fields: [["step", "From step", "", step ?? "", { options: [["", "after all that is recorded"], ...steps.map((one) => [one.name, one.name])] }]], yes: "Fork it" });
    if (!answer) return;
    await act(() => post(`/workflows/${part(this.id)}/fork`, answer.step ? { from_step: answer.step } : {}), ({ id }) => ["good", "The fork will run.", { action: "Open", onaction: () => go(address("workflows", [id])) }]);
  }

  async cancel() {
    const answer = await confirm({ title: "Cancel this workflow?", text: "If it has something to undo, it runs once more for that. Jobs that it has started continue.", fields: [["reason", "Reason, for the audit log", "optional"]], yes: "Cancel the workflow", danger: true });
    if (!answer) return;
    await act(() => post(`/workflows/${part(this.id)}/cancel`, answer.reason ? { reason: answer.reason } : {}), (reply) => (reply.canceled ? "The workflow is canceled, or undoes what it has done and is canceled then." : ["warn", "It was over or rolled back already: nothing changed."]));
    this.found.load();
  }
}

/** A payload that was typed; null if there is none. Undefined: it is not JSON, which was said. */
function given(text) {
  if (!text?.trim()) return null;
  try {
    return JSON.parse(text);
  } catch (error) {
    toast("bad", `The payload is not JSON: ${error.message}. Put text in quotes: "yes".`);
    return undefined;
  }
}

/** The first word of a list of texts and elements with a capital. */
const sentenceOf = (words) => {
  const [first, ...rest] = [words].flat();
  return [sentence(first), ...rest, "."];
};

const crumbs = (job) => [h("a", { href: address("workflows") }, "Workflows"), icon("right", 12), h("a.p-1.cut", { href: address("workflows", [], { kind: job.kind }) }, job.kind), h("span.p-1", icon("right", 12)), h("h1.mono", shortId(job.id))];

function payload(name, value, none = "Nothing.") {
  const has = value !== null && value !== undefined;
  return panel(name, { side: has && copy(name.toLowerCase(), () => JSON.stringify(value, null, 2)) }, has ? code(json(value)) : h("p.faint", none));
}
