// The list of jobs: filters in the address, live rows, selection, bulk actions.
import { AnswerOrder } from "../lib/answer_order.js";
import { h, memo, patch, $, $$ } from "../lib/dom.js";
import { get, search } from "../lib/api.js";
import { isUtc, now, tick, when } from "../lib/clock.js";
import * as data from "../lib/data.js";
import { bulk } from "../lib/bulk.js";
import { bulkFilter, chips, inWords, query, stateOf, typed } from "../lib/filters.js";
import { findJobs } from "../lib/find_job.js";
import { capped, count, label, plural, shortId } from "../lib/format.js";
import { changedAt, errorText, inputPairs, isFinal, ran, reason } from "../lib/jobs.js";
import { address, go, setParams } from "../lib/router.js";
import { copyText, empty, glyph, icon, kbd, problem, skeleton, state } from "../lib/ui.js";

const TABS = ["pending", "running", "retry", "scheduled", "blocked", "waiting", "dead_letter", "completed", "failed", "canceled"];
const PAGE = 50;
const BLOCK = 20; // rows: the browser lays out and paints only the blocks that are near the window

export function start(view) {
  const list = new JobList(view);
  view.useFleet();
  view.onPlace = () => list.open();
  view.draw = () => [filterBar(view, list), h("section.panel", tabs(view), bulkBar(view, list), newer(list), body(view, list), pager(list))];
  view.keys = {
    r: () => list.focused() && bulk(list.focused().state === "dead_letter" ? "replay" : "retry", { ids: [list.focused().id] }, "This job.").then(() => list.reload()),
    c: () => list.focused() && bulk("cancel", { ids: [list.focused().id] }, "This job.").then(() => list.reload()),
    Escape: () => (list.selected.size ? list.clear() : document.activeElement?.blur()),
  };
  view.afterDraw = () => list.watch();
  view.everySecond(() => list.lookForNewer());
  list.open();
}

/** The jobs that are shown, kept up to date by the live connection. */
class JobList {
  constructor(view) {
    this.view = view;
    this.jobs = new Map();
    this.order = [];
    this.fresh = [];
    this.follows = new Map();
    this.answers = new AnswerOrder(); // and of messages, by job
    this.selected = new Set();
    this.all = null;
    this.parts = memo();
    this.rows = memo();
    this.version = 0; // of the table: which rows it has, and which of them are selected
    this.drawn = new Map(); // the job that each row shows; rows out of sight are brought up to date when they come into sight
    this.inSight = new Map(); // id: its row
    this.late = new Set(); // rows in sight that show an earlier state of their job
    this.sight = new IntersectionObserver((entries) => this.seen(entries), { rootMargin: "300px" });
    this.error = null;
    this.next = null;
    this.older = [];
    this.isLoading = true;
    view.ends.push(() => this.unfollow(), () => this.sight.disconnect());
  }

  get limit() {
    return Math.min(1000, Math.max(10, Number(this.view.params.get("rows")) || PAGE));
  }

  open() {
    const key = search({ ...Object.fromEntries(this.view.params) });
    if (key === this.key) return this.view.redraw();
    this.key = key;
    this.selected.clear();
    this.all = null;
    this.reload();
  }

  async reload() {
    const key = this.key;
    const question = this.answers.ask();
    this.isLoading = true;
    this.view.redraw();
    try {
      const found = [];
      let after = this.view.params.get("after");
      do {
        const reply = await get("/jobs", { ...query(this.view.params, now()), limit: Math.min(200, this.limit - found.length), after });
        found.push(...reply.jobs);
        after = reply.next;
      } while (after && found.length < this.limit && (this.limit > 200 || found.length < 10));
      if (key !== this.key || this.view.closed || !this.answers.accept(question)) return;
      this.error = null;
      this.next = after;
      this.put(found.map((job) => (this.answers.isPast(question, job.id) ? this.jobs.get(job.id) : job)));
    } catch (error) {
      this.error = error;
    }
    this.isLoading = false;
    this.enqueued = data.fleet.now?.today.enqueued;
    this.view.redraw();
  }

  put(found) {
    this.version += 1;
    this.fresh = [];
    this.order = found.map((job) => job.id);
    this.jobs = new Map(found.map((job) => [job.id, job]));
    this.answers.keepOnly(this.jobs);
    for (const id of this.drawn.keys()) if (!this.jobs.has(id)) this.drawn.delete(id);
    for (const id of [...this.selected]) if (!this.jobs.has(id)) this.selected.delete(id);
    this.follow();
  }

  follow() {
    for (const [id, end] of this.follows) if (!this.jobs.has(id)) { end(); this.follows.delete(id); }
    for (const job of this.jobs.values())
      if (!isFinal(job) && !this.follows.has(job.id) && this.follows.size < 990)
        this.follows.set(job.id, this.view.follow(`job:${job.id}`, (message) => this.changed(job.id, message)));
  }

  changed(id, message) {
    if (!this.jobs.has(id)) return;
    this.answers.received(id);
    if (message.type === "gone") this.jobs.set(id, { ...this.jobs.get(id), isGone: true });
    else if (message.type === "job") this.jobs.set(id, message.job);
    if (this.inSight.has(id)) this.catchUp(id);
  }

  seen(entries) {
    for (const { target, isIntersecting } of entries) {
      const { id } = target.dataset;
      target.__isOff = !isIntersecting;
      if (!target.isConnected) this.sight.unobserve(target);
      if (!isIntersecting || !target.isConnected) {
        if (this.inSight.get(id) === target) this.inSight.delete(id);
        continue;
      }
      this.inSight.set(id, target);
      if (this.drawn.get(id) !== this.jobs.get(id)) this.catchUp(id);
    }
    tick();
  }

  /** Changes of one frame are drawn together, and only in the rows that they are about: the others and the rest of the page stay. */
  catchUp(id) {
    if (!this.late.size) requestAnimationFrame(() => this.drawLate());
    this.late.add(id);
  }

  drawLate() {
    for (const id of this.late) {
      const element = this.inSight.get(id);
      const job = this.jobs.get(id);
      if (!element?.isConnected || !job || this.view.closed) continue;
      this.drawn.set(id, job);
      patch(element, row(this, job, element.tabIndex === 0));
    }
    this.late.clear();
  }

  /** The job as its row shows it when all rows are drawn: those out of sight wait. */
  shown(id) {
    const before = this.drawn.get(id);
    const shown = before && !this.inSight.has(id) ? before : this.jobs.get(id);
    this.drawn.set(id, shown);
    return shown;
  }

  /** Watches rows that are new on the page. */
  watch() {
    for (const element of $$("tr[data-row]", this.view.root)) {
      if (element.__isWatched) continue;
      element.__isWatched = true;
      this.sight.observe(element);
    }
  }

  unfollow() {
    for (const end of this.follows.values()) end();
    this.follows.clear();
  }

  fits(job) {
    const states = stateOf(this.view.params);
    return !job.isGone && (!states || states.split(",").includes(job.state));
  }

  /** The counter of enqueued jobs says whether it is worth asking: an idle list costs nothing. */
  async lookForNewer() {
    const enqueued = data.fleet.now?.today.enqueued;
    const changed = enqueued !== this.enqueued || this.hasMoved();
    if (!changed || this.isLoading || this.isLooking || data.status.paused || document.hidden || this.view.params.get("after") || Date.now() - (this.lookedAt ?? 0) < 3000) return;
    this.isLooking = true;
    this.lookedAt = Date.now();
    this.enqueued = enqueued;
    try {
      const { jobs } = await get("/jobs", { ...query(this.view.params, now()), limit: Math.min(PAGE, this.limit), max_age: 2 });
      const unknown = jobs.filter((job) => !this.jobs.has(job.id));
      if (unknown.length && this.isCalm()) this.put([...unknown, ...this.order.map((id) => this.jobs.get(id)).filter((job) => this.fits(job))].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, this.limit));
      else this.fresh = unknown;
      this.view.redraw();
    } catch {
      // The next look may succeed; the frame shows that the server is away.
    }
    this.isLooking = false;
  }

  hasMoved() {
    const state = stateOf(this.view.params);
    if (!state || !data.fleet.now) return false;
    const moved = ["running", "completed", "failed", "canceled", "retry", "dead_letter"].filter((name) => state.includes(name)).map((name) => data.fleet.now.today[name === "running" ? "started" : name]).join();
    const before = this.moved;
    this.moved = moved;
    return before !== undefined && before !== moved;
  }

  /** Rows move only when no one works with them: at the top, nothing selected, no row focused. */
  isCalm() {
    return !this.selected.size && !this.focused() && scrollY < 80 && !$("#main .table-wrap:hover");
  }

  focused() {
    const row = document.activeElement?.closest?.("tr[data-row]");
    return row ? this.jobs.get(row.dataset.id) : null;
  }

  select(id, event) {
    this.version += 1;
    this.all = null;
    const on = !this.selected.has(id);
    if (event?.shiftKey && this.last) {
      const [from, to] = [this.order.indexOf(this.last), this.order.indexOf(id)].sort((a, b) => a - b);
      for (const one of this.order.slice(from, to + 1)) on ? this.selected.add(one) : this.selected.delete(one);
    } else on ? this.selected.add(id) : this.selected.delete(id);
    this.last = id;
    this.view.redraw();
  }

  selectPage() {
    if (this.selected.size) return this.clear();
    this.version += 1;
    for (const id of this.order) this.selected.add(id);
    this.view.redraw();
  }

  clear() {
    this.version += 1;
    this.selected.clear();
    this.all = null;
    this.view.redraw();
  }
}

// Filters

function filterBar(view, list) {
  const chip = ([name, value]) => h("span.chip", { key: name }, h("b", name === "since" ? "created" : name), name === "since" ? `last ${value}` : value.length > 40 ? `${value.slice(0, 40)}…` : value, h("button", { type: "button", "aria-label": `Remove filter ${name}`, onclick: () => setParams({ [name]: null, after: null }) }, icon("x", 12)));
  const submit = async (event) => {
    event.preventDefault();
    const input = $("input", event.target);
    let { open, find, set, error } = typed(input.value);
    if (find) [open, error] = await found(find);
    list.hint = error ?? null;
    if (error) return view.redraw();
    input.value = "";
    if (open) go(address("jobs", [open]));
    else if (set) setParams({ ...set, after: null });
  };
  return h("div.stack.tight", h("div.row",
    h("form.filter", { role: "search", onsubmit: submit }, h("svg.i.i-14.faint", { "aria-hidden": "true" }, h("use", { href: "#i-search" })), chips(view.params).map(chip), h("input", { "aria-label": "Search jobs", placeholder: "kind, queue:mail, key:…, since:1h, user_id=7, or an id", autocomplete: "off", spellcheck: "false" })),
    h("a.btn.p-1", { href: address("dispatch") }, icon("bolt", 14), "Dispatch")),
    list.hint && h("p.error.row", { role: "alert" }, icon("warn", 12), list.hint));
}

/** [id, null] of the one job with this part of an id, or [null, what is wrong]. */
async function found(text) {
  try {
    const jobs = await findJobs(text);
    if (jobs.length === 1) return [jobs[0].id, null];
    return [null, jobs.length ? `Several jobs have an id like ${text}: give more of it.` : `No job has an id that begins with ${text}. By its last eight characters a job is found among the newest 200 only.`];
  } catch (error) {
    return [null, error.message];
  }
}

function tabs(view) {
  const fleet = data.fleet.now;
  const current = stateOf(view.params);
  const of = (name) => (fleet?.queues.some((queue) => name in queue) ? fleet.queues.reduce((sum, queue) => sum + queue[name], 0) : null);
  const isCapped = (name) => fleet?.queues.some((queue) => queue.capped.includes(name));
  const finished = (name) => fleet?.today[name] ?? 0;
  const tab = (name) => {
    const number = ["completed", "failed", "canceled"].includes(name) ? finished(name) : of(name);
    const title = ["completed", "failed", "canceled"].includes(name) ? "today" : "now";
    return h("a", { key: name, href: address("jobs", [], { ...Object.fromEntries(view.params), state: name, after: null }), "data-state": name, "aria-current": current === name ? "page" : null }, h("span.state", { "data-state": name }, glyph(name)), label(name), fleet && number !== null && h("span.count", { title }, capped(number, isCapped(name))));
  };
  return h("nav.tabs.dense", { "aria-label": "Jobs by state" },
    h("a", { key: "all", href: address("jobs", [], { ...Object.fromEntries(view.params), state: null, after: null }), "aria-current": current ? null : "page" }, "All"), TABS.map(tab));
}

// Selection

function bulkBar(view, list) {
  const some = list.selected.size;
  const what = list.all === null ? { ids: [...list.selected] } : list.all.filter;
  const told = list.all === null ? `The ${plural(some, "selected job")}.` : `All jobs that match: ${inWords(view.params)}.`;
  const run = (action) => bulk(action, what, told).then((changed) => changed && (list.clear(), list.reload()));
  const off = !data.may("operate");
  const everything = async () => {
    list.all = { filter: bulkFilter(view.params, now()) };
    view.redraw();
  };
  const filtered = Object.keys(bulkFilter(view.params, now())).length > 0;
  const button = (text, action, name = "") => h("button.btn.sm", { key: action, class: name, type: "button", disabled: off, title: off ? "Your access is read: you can look but not change" : null, onclick: () => run(action) }, text);
  return h("div.bulk", { role: "region", "aria-label": "Bulk actions", class: some ? "on" : null },
    h("input.check", { type: "checkbox", "aria-label": some ? "Clear selection" : "Select all jobs on this page", checked: some > 0 && some === list.order.length, indeterminate: some > 0 && some < list.order.length, onclick: (event) => { event.preventDefault(); list.selectPage(); } }),
    some ? [h("span.medium", { key: "n" }, list.all ? "All that match" : `${some} selected`),
      filtered && !list.all && h("button.linkish.nowrap.p-1", { key: "all", type: "button", onclick: everything }, "Select all that match"),
      h("span.push", { key: "push" }), button("Retry now", "retry"), button("Replay", "replay", "p-1"), !list.all && h("button.btn.sm.p-1", { key: "copy", type: "button", onclick: () => copyText([...list.selected].join("\n"), plural(some, "id")) }, "Copy ids"), button("Cancel", "cancel", "danger"), data.may("admin") && button("Delete", "delete", "danger p-1")]
      : [h("span.faint", { key: "hint" }, "Select jobs to retry, replay or cancel them"), h("span.push", { key: "push" }), h("span.hints.p-2.faint", { key: "keys" }, h("span", kbd("j", "k"), " move"), h("span", kbd("x"), " select"), h("span", kbd("Enter"), " open"), h("span", kbd("r"), " retry"))]);
}

function newer(list) {
  if (!list.fresh.length) return null;
  return h("button.newer", { key: "newer", type: "button", onclick: () => { list.clear(); list.reload(); scrollTo(0, 0); } }, icon("plus", 12), `${list.fresh.length}${list.fresh.length >= PAGE ? "+" : ""} newer ${list.fresh.length === 1 ? "job" : "jobs"}`);
}

// Rows

function body(view, list) {
  if (list.error) return h("div.body", { key: "error" }, problem(list.error));
  if (!list.order.length) return list.isLoading ? h("div", { key: "wait" }, skeleton(14)) : h("div", { key: "none" }, none(view, list));
  const table = list.parts("rows", [list.version, isUtc()], () => tableOf(list));
  list.parts.next();
  return table;
}

function tableOf(list) {
  const rows = list.order.map((id, n) => {
    const job = list.shown(id);
    return list.rows(id, [job, list.selected.has(id), n === 0, isUtc()], () => row(list, job, n === 0));
  });
  list.rows.next();
  return h("div.table-wrap", { key: "rows" }, h("table.table.cards.pick-rows.jobs-table.blocks", { "aria-label": "Jobs" },
    h("thead", h("tr", h("th.w-sel", h("span.sr", "Select")), h("th.w-state", "State"), h("th.w-kind", "Kind and id"), h("th.p-2.w-input", "Input"), h("th.w-queue.p-2", "Queue"), h("th.n.w-att.p-m", "Attempt"), h("th", "Reason or progress"), h("th.n.w-age", "Changed"), h("th.n.w-ran.p-2", "Ran"))),
    Array.from({ length: Math.ceil(rows.length / BLOCK) }, (_, n) => h("tbody", { key: n }, rows.slice(n * BLOCK, (n + 1) * BLOCK)))));
}

function row(list, job, isFirst) {
  const id = shortId(job.id);
  const selected = list.selected.has(job.id);
  const fits = list.fits(job);
  const loud = ["retry", "dead_letter", "failed"].includes(job.state);
  const progress = job.state === "running" && job.progress_percent > 0;
  return h("tr", { key: job.id, "data-row": true, "data-id": job.id, tabindex: isFirst ? "0" : "-1", "aria-selected": selected ? "true" : null, class: fits ? null : "gone" },
    h("td.w-sel.a-sel", h("input.check", { type: "checkbox", tabindex: "-1", "aria-label": `Select ${job.kind} ${id}`, checked: selected, onclick: (event) => { event.preventDefault(); list.select(job.id, event); } })),
    h("td.w-state.a-side", state(job.state)),
    h("td.w-kind.a-name", h("div.row", h("a.name.cut", { href: address("jobs", [job.id]), "data-open": true, tabindex: "-1", title: job.kind }, job.kind), h("span.mono.faint", { title: job.id }, id))),
    h("td.w-input.p-2.p-1", inputPairs(job)),
    h("td.w-queue.p-2.muted", h("div.cut", { title: job.queue }, job.queue)),
    h("td.w-att.n.p-m.muted", `${job.attempt} / ${job.max_attempts}`),
    h("td.a-sub", fits ? (progress ? h("div.row", { title: job.progress_message }, h("progress.bar", { "data-state": "running", max: "100", value: job.progress_percent, "aria-label": `${job.progress_percent} percent` }), h("span.muted.nowrap", `${Math.round(job.progress_percent)} %`)) : h("div.cut", { class: loud ? null : "faint", title: errorText(job) || null }, reason(job))) : h("span.tag.plain", job.isGone ? "deleted" : "left this list")),
    h("td.w-age.n.a-meta.muted", when(changedAt(job))),
    h("td.w-ran.n.p-2.muted", ran(job)));
}

function none(view, list) {
  const filters = chips(view.params);
  const current = stateOf(view.params);
  if (list.next) return empty("No match among the jobs that were looked at", h("p", "There are older ones. Each page looks at a bounded number of jobs, so that it stays fast with millions of them."), h("button.btn", { type: "button", onclick: () => setParams({ after: list.next }) }, "Look further"));
  if (!filters.length && !current) return empty("No jobs yet", h("p", "The database is ready. Define a job, start a worker and enqueue it:"), h("pre.code", { tabindex: "0" }, '@app.job\nasync def hello(ctx, name: str) -> str:\n    return f"Hello, {name}"\n\nawait hello.enqueue("world")'), h("a.btn", { href: address("dispatch") }, "Dispatch one here"));
  return empty(`No job matches ${plural(filters.length + (current ? 1 : 0), "filter")}`, h("p", `You look at ${inWords(view.params)}. Finished jobs are removed when their retention is over.`), h("a.btn", { href: address("jobs") }, "Clear all filters"));
}

function pager(list) {
  const jobs = list.order.length;
  if (!jobs && !list.next && !list.view.params.get("after")) return null;
  return h("div.pager", { key: "pager" }, h("span", jobs ? `${plural(jobs, "job")}, newest first` : ""), h("span.push-1.row",
    list.view.params.get("after") && h("button.btn.sm", { type: "button", onclick: () => history.back() }, icon("left", 12), "Newer"),
    list.next && list.limit <= 200 && h("button.btn.sm", { type: "button", onclick: () => setParams({ rows: list.limit < 200 ? 200 : 1000 }, { replace: true }), class: "p-1" }, `Show ${list.limit < 200 ? 200 : count(1000)}`),
    list.next && h("button.btn.sm", { type: "button", onclick: () => setParams({ after: list.next }) }, "Older", icon("right", 12))));
}
