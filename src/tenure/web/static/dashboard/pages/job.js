// One job: what it is doing, its whole life, its errors and log, and what can be done with it.
import { AnswerOrder } from "../lib/answer_order.js";
import { h, $ } from "../lib/dom.js";
import { get, part, post, remove } from "../lib/api.js";
import { clockTime, dayTime, exact, now, soon, when } from "../lib/clock.js";
import { confirm } from "../lib/dialogs.js";
import * as data from "../lib/data.js";
import { count, duration, label, plural, sentence, shortId } from "../lib/format.js";
import { errorText, isFinal, isOver, priority } from "../lib/jobs.js";
import { address, go, setParams } from "../lib/router.js";
import { act } from "../lib/toasts.js";
import { traceback } from "../lib/traceback.js";
import { badge, callout, code, copy, copyText, glyph, icon, json, kbd, link, panel, problem, segments, skeleton } from "../lib/ui.js";
import { graph } from "../charts/graph.js";
import { timeline, titleOf } from "../charts/timeline.js";
import { Relations } from "../flow/relations.js";
import { setTitle } from "../shell.js";

export function start(view) {
  const page = new JobPage(view, view.place.rest[0]);
  view.onPlace = () => view.redraw();
  view.draw = () => page.draw();
  view.afterDraw = () => page.followLog();
  view.keys = { c: () => page.can.cancel && page.cancel(), r: () => (page.can.replay ? page.replay() : page.retry()), y: () => copyText(page.id, "the id") };
  view.everySecond(() => page.report && !isOver(page.report.job) && view.redraw());
  page.load();
}

/** A live message has no input, and leaves out what is large. */
const joined = (job, sent) => ({ ...job, ...sent, input: job.input, output: sent.omitted ? job.output : sent.output });

class JobPage {
  constructor(view, id) {
    this.view = view;
    this.id = id;
    this.report = null;
    this.reasons = null;
    this.error = null;
    this.errorAt = null;
    this.order = new AnswerOrder();
    this.newest = null; // the job as the last live message had it
    this.follows = true; // the log shows its end
    this.warningsOnly = false;
    this.relations = new Relations(view, id);
    view.follow(`job:${id}`, (message) => this.changed(message));
  }

  get can() {
    const job = this.report?.job;
    const may = data.may("operate");
    return { cancel: may && job && !isFinal(job), retry: may && job && ["retry", "scheduled", "completed", "failed", "canceled"].includes(job.state), replay: may && job?.state === "dead_letter", again: may && Boolean(job), remove: data.may("admin") && job && job.state !== "running" };
  }

  /** Each change is shown at once; the whole report follows, at most once a second. */
  changed(message) {
    if (message.type === "gone") return this.load();
    if (message.type !== "job" || !this.report) return;
    this.order.received();
    this.newest = message.job;
    this.report = { ...this.report, job: joined(this.report.job, message.job) };
    this.view.redraw();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), Math.max(50, (this.loadedAt ?? 0) + 1000 - Date.now()));
  }

  async load() {
    if (this.view.closed) return;
    this.loadedAt = Date.now();
    const question = this.order.ask();
    const [found, error] = await this.read().then((answer) => [answer, null], (problem) => [null, problem]);
    if (!this.order.accept(question)) return;
    this.error = error;
    if (found) {
      // Everything else in the report is newer than what is shown: only the job was sent since.
      this.report = this.order.isPast(question) ? { ...found.report, job: joined(found.report.job, this.newest) } : found.report;
      this.reasons = found.reasons;
      this.relations.look(this.report.job);
    }
    this.view.redraw();
    // Log lines come without a change of the job.
    clearTimeout(this.again);
    if (this.report?.job.state === "running") this.again = setTimeout(() => !document.hidden && !data.status.paused && this.load(), 3000);
  }

  async read() {
    const report = await get(`/jobs/${part(this.id)}/report`);
    report.job.last_error ??= report.job.error_message;
    const waits = !isFinal(report.job) && report.job.state !== "running";
    return { report, reasons: waits ? (await get(`/jobs/${part(this.id)}/explain`)).reasons : null };
  }

  draw() {
    const { report } = this;
    if (!report) {
      if (this.error) return this.error.status === 404 ? [callout("warn", "There is no job with this id.", "It was deleted, its retention is over, or the id is not complete. An id has 36 characters.", link(address("jobs"), "Open jobs"))] : problem(this.error);
      return h("section.panel", skeleton(12));
    }
    const { job } = report;
    setTitle(`${job.kind} ${shortId(job.id)}`, crumbs(job));
    return [this.error && problem(this.error), this.head(job), this.now(job),
      panel("Timeline", { side: segments("Timeline scale", [["real", "Real time"], ["equal", "Equal steps"]], this.view.params.get("scale") ?? "real", (value) => setParams({ scale: value === "real" ? null : value }, { replace: true })) }, timeline(report, this.view.params.get("scale") === "equal")),
      this.parts(report)];
  }

  /** Errors and log lines need the width. A job that ended without any has room for its input and output instead. */
  parts(report) {
    const { job } = report;
    const payloads = [this.payload("Input", job.input), this.payload("Output", job.output, job.state === "completed" ? "It returned nothing." : isFinal(job) ? "It has none." : "Appears here when the job completes.")];
    const [errors, log] = [this.errors(report), this.log(report)];
    const isQuiet = isFinal(job) && !errors && !log;
    return h("div.g-main", h("div.stack", this.progress(job), isQuiet && h("div.g-2", { key: "payloads" }, payloads), this.related(report), errors, log, this.family(report), this.audit(report)), h("aside.stack", this.facts(job), isQuiet ? null : payloads));
  }

  head(job) {
    const off = data.may("operate") ? null : "Your access is read: you can look but not change";
    const button = (text, on, action, name = "", ...more) => h("button.btn", { class: name, type: "button", disabled: !on, title: off, onclick: action }, text, more);
    return h("div.row.wrap.job-head",
      h("div", h("div.row", h("h2.title", job.kind), badge(job.state, label(job.state), true)), h("div.row.faint.id-line", h("span.mono.cut", job.id), copy("id", job.id))),
      h("div.push.row.acts.wrap",
        this.relations.isWorkflow(job.kind) && h("a.btn.ghost.p-1", { href: address("workflows", [job.id]) }, "Open as workflow"),
        h("button.btn.ghost.p-1", { type: "button", onclick: () => copyText(asPython(job), "the call in Python") }, "Copy as Python"),
        this.can.replay ? button("Replay", true, () => this.replay(), "primary") : button(isFinal(job) ? "Run again" : "Retry now", this.can.retry, () => this.retry()),
        button([icon("undo", 14), "Edit and run…"], this.can.again, () => go(address("dispatch", [job.kind], { like: job.id }))),
        isFinal(job) ? this.can.remove && button("Delete…", true, () => this.remove(), "danger p-1") : button("Cancel ", this.can.cancel, () => this.cancel(), "danger", kbd("c"))));
  }

  now(job) {
    if (job.state === "running") {
      const seconds = (now() - Date.parse(job.started_at)) / 1000;
      const attempt = this.report.attempts.at(-1);
      return h("section.callout.now", { key: "now", "data-state": "running" }, glyph("running"), h("div.grow", h("h2", `Running${attempt?.worker ? ` on ${attempt.worker}` : ""} for ${duration(seconds)}. Attempt ${job.attempt} of ${job.max_attempts}.`), h("p", `If the worker dies, another one takes the job over${job.crashes ? `; it was in ${plural(job.crashes, "crash", "crashes")}` : ""}.${job.timeout ? ` It is aborted after ${duration(job.timeout)}.` : ""}`)), h("a.link.nowrap.p-1", { href: address("workers") }, "Open worker"));
    }
    if (this.reasons)
      return h("section.panel.ruled", { key: "why" }, h("header", h("h2", "Why is it not running?"), h("div.push", h("code.faint.p-1", `tenure explain ${shortId(job.id)}`), copy("command", `tenure explain ${job.id}`))),
        h("ol.why", this.reasons.map((one, n) => h("li", { "data-tone": n ? "warn" : "bad", key: one.code }, h("span.no", String(n + 1)), h("div", inWords(one, job)), wayOut(one, job)))));
    return h("section.callout", { key: "end", "data-state": job.state }, glyph(job.state), h("div.grow", h("h2", `${sentence(label(job.state))} `, when(job.finished_at), ` after ${plural(Math.max(1, job.attempt), "attempt")}${job.crashes ? ` and ${plural(job.crashes, "crash", "crashes")}` : ""}.`), errorText(job) && job.state !== "completed" ? h("p", errorText(job)) : h("p", `Lived ${duration(this.report.totals.lived)}: waited ${duration(this.report.totals.waited)}, ran ${duration(this.report.totals.ran)}.`)));
  }

  progress(job) {
    if (!(job.progress_percent > 0 || job.progress_message) || (job.state === "completed" && !job.progress_message)) return null;
    const attempt = this.report.attempts.at(-1);
    const took = attempt?.started_at && job.state === "running" ? (now() - Date.parse(attempt.started_at)) / 1000 : null;
    const left = took !== null && job.progress_percent > 3 && job.progress_percent < 100 ? (took / job.progress_percent) * (100 - job.progress_percent) : null;
    return panel("Progress", {}, h("div.row.wide", h("progress.bar.tall", { "data-state": "running", max: "100", value: job.progress_percent, "aria-label": `${job.progress_percent} percent` }), h("span.big-n", `${Math.round(job.progress_percent)} %`)),
      h("p.row.wrap.muted.prog-note", h("span", job.progress_message ?? ""), this.report.progress?.updated_at && h("span.faint", "updated ", when(this.report.progress.updated_at)), left !== null && h("span.faint.push", `about ${duration(left)} left at this pace`)));
  }

  errors(report) {
    const failed = report.attempts.filter((attempt) => attempt.error);
    const list = failed.length ? failed.toReversed() : report.job.error && report.job.state !== "completed" ? [{ number: null, fence: -1, error: report.job.error, ended_at: report.job.failed_at ?? report.job.finished_at }] : [];
    if (!list.length) return null;
    const chosen = list.find((attempt) => attempt.fence === this.errorAt) ?? list[0];
    const crashes = failed.filter((attempt) => attempt.outcome === "crashed").length;
    return h("section.panel.ruled", { key: "errors" }, h("header", h("h2", "Errors"), h("span.sub", [list.length > crashes && plural(list.length - crashes, "failed attempt"), crashes && plural(crashes, "crash", "crashes")].filter(Boolean).join(", ")), h("div.push", copy("traceback", () => chosen.error))),
      list.length > 1 && h("div.tabs.dense", { role: "group", "aria-label": "Attempts with errors" }, list.slice(0, 20).map((attempt) => h("button", { key: attempt.fence, type: "button", "aria-pressed": String(attempt === chosen), onclick: () => { this.errorAt = attempt.fence; this.view.redraw(); } }, attempt.outcome === "crashed" ? "Crash" : titleOf(attempt, report.attempts), h("span.count", `${attempt.error.split(/[:\n]/)[0].split(".").at(-1).slice(0, 40)}${attempt.ended_at ? `, ${clockTime(attempt.ended_at)}` : ""}`)))),
      traceback(chosen.error),
      h("footer", link(address("failures", [], { kind: report.job.kind }), "Failures of this kind")));
  }

  log(report) {
    const lines = report.log.filter((line) => !this.warningsOnly || !["debug", "info"].includes(line.level));
    if (!report.log.length && report.job.state !== "running") return null;
    const fences = new Map(report.attempts.map((attempt) => [attempt.fence, attempt]));
    let fence = null;
    const items = lines.slice(-500).flatMap((line) => {
      const attempt = fences.get(line.fence);
      const head = line.fence !== fence && attempt ? [h("li.cut-line", { key: `f${line.fence}` }, `${titleOf(attempt, report.attempts)}${attempt.worker ? ` on ${attempt.worker}` : ""}${attempt.started_at ? `, ${clockTime(attempt.started_at, { millis: true })}` : ""}`)] : [];
      fence = line.fence;
      const mood = { warning: "warn", error: "bad", critical: "bad" }[line.level];
      return [...head, h("li", { "data-tone": mood }, h("span.t", { title: line.at && exact(line.at) }, line.at ? clockTime(line.at, { millis: true }) : ""), h("span.lv", line.level === "warning" ? "warn" : line.level), h("span.a", String(attempt?.number ?? "")), h("span.m", line.message, Object.keys(line.fields).length ? h("i", ` ${Object.entries(line.fields).map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`).join(" ")}`) : null))];
    });
    return h("section.panel.ruled", { key: "log" }, h("header", h("h2", "Log"), h("span.sub", plural(report.log.length, "line")), h("div.push", segments("Log level", [[false, "All"], [true, "Warnings"]], this.warningsOnly, (value) => { this.warningsOnly = value; this.view.redraw(); }), h("button.btn.ghost.sm.p-1", { type: "button", onclick: () => copyText(report.log.map((line) => `${line.at ?? ""} ${line.level} ${line.message}`).join("\n"), "the log") }, icon("copy", 14), "Copy"))),
      items.length ? h("ol.log", { tabindex: "0", "aria-label": "Log lines", onscroll: ({ currentTarget }) => this.scrolled(currentTarget) }, items) : h("p.empty.faint", "Lines that the handler logs with ctx.log appear here."),
      report.job.state === "running" && h("footer", this.follows ? [h("i.dot.good"), "Following."] : h("button.linkish", { type: "button", onclick: () => { this.follows = true; this.view.redraw(); } }, "Follow new lines")));
  }

  /** Who scrolls up wants to read: new lines no longer move the log, until it is at its end again. */
  scrolled(log) {
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 24;
    if (atEnd === this.follows) return;
    this.follows = atEnd;
    this.view.redraw();
  }

  followLog() {
    const log = this.follows && this.report?.job.state === "running" && $("ol.log", this.view.root);
    if (log) log.scrollTop = log.scrollHeight;
  }

  related(report) {
    const { job } = report;
    const items = [];
    items.push(...this.relations.items(job));
    if (job.parent_id) items.push(h("li", h("span", "enqueued by ", link(address("jobs", [job.parent_id]), shortId(job.parent_id)))));
    const system = job.system ?? {};
    if (system.schedule) items.push(h("li", h("span", "from schedule ", link(address("schedules", [], { name: system.schedule.name ?? system.schedule }), system.schedule.name ?? String(system.schedule)))));
    if (system.retry_of) items.push(h("li", h("span", "a copy of ", link(address("jobs", [system.retry_of]), shortId(system.retry_of)))));
    if (!items.length) return null;
    return panel("Belongs to", {}, h("ol.links", items));
  }

  /** What it came from and what it enqueued, as a graph with live states. */
  family(report) {
    const { job } = report;
    if (!report.children.length) return null;
    const first = job.parent_id ? 1 : 0;
    const node = (id, kind, name, depth) => ({ id, name: kind, meta: `${label(name)}, ${shortId(id)}`, state: name, depth, href: address("jobs", [id]) });
    const shown = report.children.slice(0, 8);
    const nodes = [...(job.parent_id ? [{ ...node(job.parent_id, "parent", "completed", 0), meta: shortId(job.parent_id) }] : []), { ...node(job.id, job.kind, job.state, first), href: null }, ...shown.map((child) => node(child.id, child.kind, child.state, first + 1))];
    const edges = [...(job.parent_id ? [[job.parent_id, job.id]] : []), ...shown.map((child) => [job.id, child.id])];
    const all = report.more_children || report.children.length > shown.length;
    return panel("Jobs it enqueued", { sub: `${plural(report.children.length, "job")}${report.more_children ? " or more" : ""}`, side: all && link(address("jobs", [], { parent: job.id }), "All") }, graph(nodes, edges, `${job.kind} enqueued ${plural(report.children.length, "job")}`));
  }

  audit(report) {
    const { job } = report;
    const items = report.incidents.toReversed().map((one) => h("li", h("span.cut", `${one.by ?? "tenure"}: ${one.what}${one.reason ? `, ${one.reason}` : ""}`), h("span.push.faint", when(one.at))));
    return panel("Who did what", {}, h("ol.links", items, h("li", h("span.cut", `${job.enqueued_by ?? "someone"} enqueued it`), h("span.push.faint", when(job.enqueued_at)))));
  }

  facts(job) {
    const row = (name, value) => (value === null || value === undefined || value === "" ? [] : [h("dt", name), h("dd", value)]);
    return panel("Facts", {}, h("dl.facts", row("Queue", link(address("queues", [], { q: job.queue }), job.queue)), row("Priority", priority(job.priority)), row("Attempts", `${job.attempt} of ${job.max_attempts}${job.crashes ? `, and ${plural(job.crashes, "crash", "crashes")} of 3` : ""}`), row("Timeout", job.timeout ? `${duration(job.timeout)} per attempt` : null), row("Key", job.key && h("div.row", h("span.mono.cut", { title: job.key }, job.key), copy("key", job.key))), row("Capability", job.capability), row("Limit", job.limit_group && h("span.mono", job.limit_group)), row("Created", [when(job.enqueued_at), job.enqueued_by ? [" by ", h("span.mono", job.enqueued_by)] : null]), row("Due", ["scheduled", "retry"].includes(job.state) && job.run_at ? when(job.run_at) : null), row("Fence", h("span.mono", count(job.fence))), row("Meta", job.meta && code(json(job.meta), "wrap bare"))));
  }

  payload(name, value, none) {
    const has = value !== null && value !== undefined;
    return panel(name, { side: has && copy(name.toLowerCase(), () => JSON.stringify(value, null, 2)) }, has ? code(json(value)) : h("p.faint", none ?? "Nothing."));
  }

  async cancel() {
    const answer = await confirm({ title: "Cancel this job?", text: this.report.job.state === "running" ? "Its handler is aborted." : "It will not run.", fields: [["reason", "Reason, for the audit log", "optional"]], yes: "Cancel the job", danger: true });
    if (!answer) return;
    await act(() => post(`/jobs/${this.id}/cancel`, answer.reason ? { reason: answer.reason } : {}), (reply) => (reply.canceled ? "The job is canceled." : ["warn", "It was over or rolled back already: nothing changed."]));
    this.load();
  }

  async retry() {
    if (!this.can.retry) return;
    const final = isFinal(this.report.job);
    if (final && !(await confirm({ title: "Run this job again?", text: "The finished job stays as it is. A copy with the same input runs now.", yes: "Run it again" }))) return;
    await act(() => post(`/jobs/${this.id}/retry`), ({ id }) => (id === this.id ? "It runs as soon as a slot is free." : ["good", "A copy will run.", { action: "Open", onaction: () => go(address("jobs", [id])) }]));
    this.load();
  }

  async replay() {
    await act(() => post(`/jobs/${this.id}/replay`), "It is pending again, with all its attempts.");
    this.load();
  }

  async remove() {
    if (!(await confirm({ title: "Delete this job?", text: "Everything stored about it is removed. This cannot be undone.", yes: "Delete the job", danger: true }))) return;
    if (await act(() => remove(`/jobs/${this.id}`), "The job is deleted.")) go(address("jobs"));
  }
}

const crumbs = (job) => [h("a", { href: address("jobs") }, "Jobs"), icon("right", 12), h("a.p-1.cut", { href: address("jobs", [], { kind: job.kind }) }, job.kind), h("span.p-1", icon("right", 12)), h("h1.mono", shortId(job.id))];

/** A reason of this page's own words where times and buttons make them clearer than those of the server, which are for the command line. */
function inWords(one, job) {
  const error = errorText(job);
  if (one.code === "not_due" && job.run_at) return [h("span.medium", job.state === "retry" ? "It failed and is retried " : "It is due ", soon(job.run_at), `, at ${dayTime(job.run_at)}${error ? `: ${error}` : ""}.`), h("span.muted", " Retry now runs it at once.")];
  if (one.code === "dead_letter") return [h("span.medium", `It was dead-lettered after ${plural(job.attempt, "attempt")}${job.crashes ? ` and ${plural(job.crashes, "crash", "crashes")}` : ""}${error ? `: ${error}` : ""}.`), h("span.muted", " Fix the cause, then replay it.")];
  return split(one.text);
}

/** What is wrong in bold, then the way out. */
function split(text) {
  const [first, ...rest] = text.replace(/:? (client|handle)\.\w+\(.*?\)/g, "").split("; ");
  return [h("span.medium", sentence(first), "."), rest.length ? h("span.muted", ` ${sentence(rest.join("; "))}.`) : null];
}

function wayOut(one, job) {
  if (one.code.includes("paused")) return link(address("queues", [], { q: job.queue }), "Open the queue");
  if (one.code.includes("worker") || one.code.includes("slot")) return link(address("workers"), "Open workers");
  if (one.code.includes("ahead")) return link(address("jobs", [], { state: "pending", queue: job.queue }), "Show them");
  if (one.code.includes("limit")) return link(address("queues"), "Open limits");
  return h("span");
}

function asPython(job) {
  const value = (given, depth = 0) => {
    if (given === null) return "None";
    if (typeof given === "boolean") return given ? "True" : "False";
    if (Array.isArray(given)) return `[${given.map((item) => value(item, depth)).join(", ")}]`;
    if (typeof given === "object") return `{${Object.entries(given).map(([key, item]) => `${JSON.stringify(key)}: ${value(item, depth)}`).join(", ")}}`;
    return JSON.stringify(given);
  };
  const args = job.input && typeof job.input === "object" && !Array.isArray(job.input) ? value(job.input) : "{}";
  return `await app.enqueue(${JSON.stringify(job.kind)}, ${args})`;
}
