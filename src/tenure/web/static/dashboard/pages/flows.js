// The lists of workflows and of chains: filters in the address, live states.
import { h } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { soon, when } from "../lib/clock.js";
import * as data from "../lib/data.js";
import { count, duration, label, plural, shortId } from "../lib/format.js";
import { changedAt, errorText, inputPairs, isFinal, reason } from "../lib/jobs.js";
import { address, setParams } from "../lib/router.js";
import { empty, glyph, icon, link, problem, segments, skeleton, state } from "../lib/ui.js";
import { nameOf, waitWords } from "../flow/steps.js";

const TABS = ["running", "waiting", "blocked", "pending", "retry", "dead_letter", "completed", "failed", "canceled"];
const LEAST_EVERY = 3000; // ms
const PAGE = 50;
const MOST_LOOKS = 5;
const GROUP = "tenure.group";

export function start(view) {
  const list = view.place.rest[0] === "chains" ? new ChainList(view) : new WorkflowList(view);
  view.useFleet();
  const kinds = view.use("/kinds", 60);
  view.onPlace = () => list.open();
  view.draw = () => [bar(view, list, kinds.value?.kinds ?? []), h("section.panel", tabs(view, list), list.body())];
  view.everySecond(() => list.lookAgain());
  list.open();
}

/** Asks again only when the counters of the fleet have changed: an idle list costs nothing. */
class FlowList {
  constructor(view) {
    this.view = view;
    this.rows = null;
    this.next = null;
    this.error = null;
    this.follows = new Map();
  }

  get place() {
    return this.view.params;
  }

  open() {
    const key = this.place.toString();
    if (key !== this.key) {
      this.key = key;
      this.rows = null;
      this.load();
    }
    this.view.redraw();
  }

  async load() {
    const key = this.key;
    this.askedAt = Date.now();
    this.seen = this.counters;
    try {
      const found = await this.read();
      if (key !== this.key || this.view.closed || (data.status.paused && this.rows)) return;
      this.rows = found;
      this.error = null;
      this.follow();
    } catch (error) {
      this.error = error;
    }
    this.view.redraw();
  }

  get counters() {
    return JSON.stringify(data.fleet.now?.today ?? null);
  }

  lookAgain() {
    if (this.rows && this.seen !== this.counters && !data.status.paused && !document.hidden && Date.now() - this.askedAt >= LEAST_EVERY) this.load();
  }

  /** A change of a listed job is shown at once; what it waits for follows. */
  follow() {
    const wanted = new Set(this.followed().slice(0, 200));
    for (const [id, end] of this.follows) if (!wanted.has(id)) { end(); this.follows.delete(id); }
    for (const id of wanted) if (!this.follows.has(id)) this.follows.set(id, this.view.follow(`job:${id}`, (message) => message.type === "job" && this.changed(id, message.job)));
  }
}

class WorkflowList extends FlowList {
  name = "workflows";

  async read() {
    return (await get("/workflows", { kind: this.place.get("kind"), state: this.place.get("state"), limit: PAGE })).workflows;
  }

  followed() {
    return this.rows.filter((row) => !isFinal(row)).map((row) => row.id);
  }

  changed(id, job) {
    const row = this.rows?.find((one) => one.id === id);
    if (!row || (row.state === job.state && row.fence === job.fence)) return;
    Object.assign(row, job, { waits: job.state === "waiting" ? row.waits : [] });
    this.seen = null;
    this.view.redraw();
  }

  body() {
    if (this.error) return h("div.body", { key: "error" }, problem(this.error));
    if (!this.rows) return h("div", { key: "wait" }, skeleton(10));
    if (!this.rows.length) return h("div", { key: "none" }, this.none());
    return h("div", { key: "rows" }, h("div.table-wrap", h("table.table.cards.fixed.jobs-table", { "aria-label": "Workflows" },
      h("thead", h("tr", h("th.w-state", "State"), h("th.w-kind", "Workflow and id"), h("th.p-2.w-input", "Input"), h("th.n.w-att.p-1", "Steps"), h("th", "What it does now"), h("th.n.w-age", "Changed"), h("th.n.w-age.p-2", "Age"))),
      h("tbody", this.rows.map((row, n) => this.row(row, n))))), h("div.pager", h("span", `${plural(this.rows.length, "workflow")}, newest first${this.rows.length >= PAGE ? `; the newest ${PAGE} are shown` : ""}`)));
  }

  row(job, n) {
    const end = job.finished_at ? Date.parse(job.finished_at) : null;
    return h("tr", { key: job.id, "data-row": true, "data-id": job.id, tabindex: n ? "-1" : "0" },
      h("td.a-side", state(job.state)),
      h("td.a-name", h("div.row", h("a.name.cut", { href: address("workflows", [job.id]), "data-open": true, tabindex: "-1", title: job.kind }, job.kind), h("span.mono.faint", { title: job.id }, shortId(job.id)))),
      h("td.p-2.p-1", inputPairs(job)),
      h("td.n.p-1.muted", job.steps ? `${job.done} / ${job.steps}` : "–"),
      h("td.a-sub", h("div.cut", { class: ["retry", "dead_letter", "failed"].includes(job.state) || job.held ? null : "muted", title: errorText(job) || null }, this.doing(job))),
      h("td.n.a-meta.muted", when(changedAt(job))),
      h("td.n.p-2.muted", end ? duration((end - Date.parse(job.enqueued_at)) / 1000) : when(job.enqueued_at)));
  }

  doing(job) {
    if (job.held) return [h("span.warn", "held"), `: ${job.held}`];
    if (job.state !== "waiting" || !job.waits.length) return reason(job);
    const [first, ...rest] = job.waits;
    return [waitWords(first, job), first.due_at && first.what !== "sleep" && first.state === "open" ? [", times out ", soon(first.due_at)] : null, rest.length ? `; and ${rest.map(nameOf).join(", ")}` : null];
  }

  none() {
    if (this.place.get("kind") || this.place.get("state")) return empty("No workflow matches", h("p", "Finished workflows are removed when their retention is over."), h("a.btn", { href: address("workflows") }, "Clear all filters"));
    return empty("No workflows yet", h("p", "A workflow is a job that records its steps. After a crash, a deploy or a wait of days it continues where it stopped:"), h("pre.code", { tabindex: "0" }, '@app.workflow\nasync def handle_order(ctx, order: str) -> str:\n    await ctx.step("reserve", reserve, order)\n    await ctx.wait_for("paid", key=order, timeout="2d")\n    return await ctx.step("ship", ship, order)'), h("p", "Jobs that continue each other without one are ", link(address("workflows", ["chains"]), "chains"), "."));
  }
}

class ChainList extends FlowList {
  name = "chains";

  get showsAll() {
    return this.place.get("all") === "1";
  }

  /** Every job starts a chain. Those with one link that wait for nothing are jobs, which have a page of their own. */
  isChain(row) {
    return this.showsAll || row.links > 1 || row.kind === GROUP || row.state === "blocked";
  }

  async read() {
    const found = [];
    let after = this.place.get("after");
    this.looked = 0;
    for (let look = 0; look < MOST_LOOKS && found.length < PAGE; look++) {
      const reply = await get("/chains", { kind: this.place.get("kind"), state: this.place.get("state"), limit: this.showsAll ? PAGE : 200, after });
      this.looked += reply.chains.length;
      found.push(...reply.chains.filter((row) => this.isChain(row)));
      after = reply.next;
      if (!after) break;
    }
    this.next = after;
    return found;
  }

  followed() {
    return this.rows.filter((row) => !row.finished_at).map((row) => row.last_id);
  }

  changed(id, job) {
    const row = this.rows?.find((one) => one.last_id === id);
    if (!row || row.state === job.state) return;
    Object.assign(row, { state: job.state, finished_at: job.finished_at });
    this.seen = null;
    this.view.redraw();
  }

  body() {
    if (this.error) return h("div.body", { key: "error" }, this.error.status === 403 && data.isLimited() && !this.place.get("kind") ? empty("Name a kind", h("p", "Your token is limited to some queues or kinds: choose one above.")) : problem(this.error));
    if (!this.rows) return h("div", { key: "wait" }, skeleton(10));
    const pager = h("div.pager", h("span", `${plural(this.rows.length, "chain")}, newest first`), h("span.push-1.row", this.place.get("after") && h("button.btn.sm", { type: "button", onclick: () => history.back() }, icon("left", 12), "Newer"), this.next && h("button.btn.sm", { type: "button", onclick: () => setParams({ after: this.next }) }, "Older", icon("right", 12))));
    if (!this.rows.length) return h("div", { key: "none" }, this.none(), this.next && pager);
    return h("div", { key: "rows" }, h("div.table-wrap", h("table.table.cards.fixed.jobs-table", { "aria-label": "Chains" },
      h("thead", h("tr", h("th.w-state", "State"), h("th.w-kind", "First link and id"), h("th.n.w-att.p-1", "Links"), h("th", "Last link"), h("th.n.w-age", "Started"), h("th.n.w-age.p-2", "Took"))),
      h("tbody", this.rows.map((row, n) => this.row(row, n))))), pager);
  }

  row(row, n) {
    const took = row.finished_at ? duration((Date.parse(row.finished_at) - Date.parse(row.enqueued_at)) / 1000) : "";
    return h("tr", { key: row.id, "data-row": true, "data-id": row.id, tabindex: n ? "-1" : "0" },
      h("td.a-side", state(row.state)),
      h("td.a-name", h("div.row", h("a.name.cut", { href: address("workflows", ["chains", row.id]), "data-open": true, tabindex: "-1", title: row.kind }, row.kind === GROUP ? "group" : row.kind), h("span.mono.faint", { title: row.id }, shortId(row.id)))),
      h("td.n.p-1.muted", String(row.links)),
      h("td.a-sub", h("div.row.muted", row.links > 1 ? [h("span.cut", row.last_kind), h("a.link.mono", { href: address("jobs", [row.last_id]) }, shortId(row.last_id))] : h("span.cut", row.state === "blocked" ? "waits for other chains" : row.kind === GROUP ? `all members have ended` : "no other link"))),
      h("td.n.a-meta.muted", when(row.enqueued_at)), h("td.n.p-2.muted", took));
  }

  none() {
    if (this.next) return empty(`No chain among the ${count(this.looked)} jobs that were looked at`, h("p", "Every job could be the first link of one, so a page looks at a bounded number of jobs. Choose the kind of the first link above, or look at older jobs."), h("button.btn", { type: "button", onclick: () => setParams({ after: this.next }) }, "Look further"));
    if (this.place.get("kind") || this.place.get("state")) return empty("No chain matches", h("p", "Finished chains are removed when their retention is over."), h("a.btn", { href: address("workflows", ["chains"]) }, "Clear all filters"));
    return empty("No chains yet", h("p", "A handler that returns Continue(job, ...) completes its job and creates the next link, both in one statement. Jobs with after=[...] and groups are listed here too."), h("pre.code", { tabindex: "0" }, "@app.job\nasync def reserve(order_id: int) -> Continue[str]:\n    return Continue(charge, order_id)"));
  }
}

// Filters

function bar(view, list, kinds) {
  const isChains = list.name === "chains";
  const names = kinds.filter((kind) => isChains || kind.workflow).map((kind) => kind.name);
  const current = view.params.get("kind") ?? "";
  const known = !current || names.includes(current) ? names : [current, ...names];
  const to = (name) => { location.hash = address("workflows", name === "chains" ? ["chains"] : []); };
  return h("div.row.wrap", segments("List", [["workflows", "Workflows"], ["chains", "Chains and groups"]], list.name, to), h("span.push"),
    isChains && h("label.row.nowrap", h("input.check", { type: "checkbox", checked: list.showsAll, onchange: (event) => setParams({ all: event.target.checked ? "1" : null, after: null }) }), "Also jobs without another link"),
    h("select.select.find", { "aria-label": "Kind", onchange: (event) => setParams({ kind: event.target.value, after: null }) }, h("option", { value: "", selected: !current }, isChains ? "First link: any kind" : "All workflows"), known.map((name) => h("option", { value: name, selected: name === current }, name))));
}

function tabs(view, list) {
  const current = view.params.get("state");
  const to = (name) => address("workflows", list.name === "chains" ? ["chains"] : [], { ...Object.fromEntries(view.params), state: name, after: null });
  return h("nav.tabs.dense", { "aria-label": `${list.name === "chains" ? "Chains" : "Workflows"} by state` }, h("a", { key: "all", href: to(null), "aria-current": current ? null : "page" }, "All"),
    TABS.map((name) => h("a", { key: name, href: to(name), "data-state": name, "aria-current": current === name ? "page" : null }, h("span.state", { "data-state": name }, glyph(name)), label(name))));
}
