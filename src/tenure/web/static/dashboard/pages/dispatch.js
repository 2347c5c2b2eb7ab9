// Enqueue a job by hand: a form from the JSON Schema of its kind, and the same call as JSON and Python.
import { h } from "../lib/dom.js";
import { get, part, post } from "../lib/api.js";
import { isUtc, zoneName } from "../lib/clock.js";
import * as data from "../lib/data.js";
import { count, duration, percent, shortId } from "../lib/format.js";
import { address, go, setParams } from "../lib/router.js";
import { field, fieldsOf, pathOf, read, written } from "../lib/schema.js";
import { toast } from "../lib/toasts.js";
import { callout, code, copy, empty, icon, json, kbd, panel, segments, skeleton, waiting } from "../lib/ui.js";
import { sum } from "./overview.js";

const PRIORITIES = [["", "default of the kind"], ["critical", "critical (100)"], ["high", "high (75)"], ["normal", "normal (50)"], ["low", "low (25)"], ["background", "background (0)"]];

export function start(view) {
  const kinds = view.use("/kinds", 60);
  const latencies = data.isLimited() ? { value: null } : view.use("/stats/latencies?by=kind&last=24h", 60);
  const series = data.isLimited() ? { value: null } : view.use("/stats/groups?by=kind&last=24h&step=1h", 60);
  view.useFleet();
  const form = new Form(view);
  view.onPlace = () => view.redraw();
  view.draw = () => {
    if (!kinds.value) return waiting(kinds, 8);
    const all = kinds.value.kinds;
    if (!all.length) return h("section.panel", empty("No kinds yet", h("p", "Workers publish their kinds with the schema of their input when they start. Start one:"), h("pre.code", { tabindex: "0" }, "tenure worker --app your_module:app")));
    const kind = all.find((one) => one.name === view.place.rest[0]);
    if (kind) form.of(kind, view.params.get("like"));
    return h("div.dispatch-grid", picker(view, all, kind), kind ? form.draw() : h("section.panel", empty("Choose a kind", h("p", "Its form is made from the types of its handler. The job survives any crash as soon as it is dispatched."))), kind ? h("aside.stack", form.aside(latencies.value, series.value)) : h("aside"));
  };
}

function picker(view, all, kind) {
  const text = (view.params.get("q") ?? "").toLowerCase();
  const found = all.filter((one) => one.name.toLowerCase().includes(text));
  return h("section.panel.picker", { "aria-label": "Kinds" }, h("div.pick-q", icon("search", 14), h("input.bare", { "aria-label": "Find a kind", placeholder: "Find a kind", value: view.params.get("q") ?? "", oninput: (event) => setParams({ q: event.target.value }, { replace: true }) }), h("span.faint", `${found.length} of ${all.length}`)),
    h("ul.pick", found.map((one) => h("li", { key: one.name, class: one === kind ? "on" : null }, h("a.row", { href: address("dispatch", [one.name], { q: view.params.get("q") }), "aria-current": one === kind ? "true" : null }, h("span.cut", { class: one === kind ? "medium" : null }, one.name), h("span.push.faint", one.queue))))));
}

class Form {
  constructor(view) {
    this.view = view;
    this.kind = null;
    this.errors = {};
    this.values = {};
    this.options = {};
    this.asJson = false;
    this.text = "";
    this.problem = null;
  }

  /** Another kind starts with an empty form; `like` fills it with the input of a job. */
  of(kind, like) {
    if (this.kind?.name === kind.name && this.like === like) return;
    Object.assign(this, { kind, like, fields: fieldsOf(kind.input), errors: {}, values: {}, options: {}, problem: null, text: "{}", isFilling: Boolean(like) });
    this.asJson = !this.fields.length && kind.input === null;
    if (like) this.fill(like);
  }

  async fill(id) {
    try {
      const job = await get(`/jobs/${part(id)}`);
      const input = this.kind.parameter && job.input?.[this.kind.parameter] && typeof job.input[this.kind.parameter] === "object" ? job.input[this.kind.parameter] : job.input;
      this.values = written(this.fields, input);
      this.text = JSON.stringify(input ?? {}, null, 2);
      this.hidden = JSON.stringify(input).includes("[redacted]");
    } catch (error) {
      toast("bad", error.message);
    }
    this.isFilling = false;
    this.view.redraw();
  }

  get result() {
    if (!this.asJson) return read(this.fields, this.values);
    try {
      return { args: JSON.parse(this.text || "{}"), errors: {} };
    } catch (error) {
      return { args: {}, errors: { json: `This is not JSON: ${error.message}.` } };
    }
  }

  get body() {
    const given = Object.fromEntries(Object.entries(this.options).filter(([, value]) => value));
    if (given.max_attempts) given.max_attempts = Number(given.max_attempts);
    if (given.run_at) given.run_at = new Date(isUtc() ? `${given.run_at}Z` : given.run_at).toISOString();
    return { args: this.result.args, ...given };
  }

  switchJson(on) {
    if (on) this.text = JSON.stringify(this.result.args, null, 2);
    else this.values = written(this.fields, this.result.args);
    this.asJson = on;
    this.view.redraw();
  }

  draw() {
    const { kind } = this;
    const redraw = () => this.view.redraw();
    const queue = data.fleet.now?.queues.find((one) => one.name === (this.options.queue || kind.queue));
    const slow = queue?.paused_at ? `${queue.name} is paused: it will wait` : (queue?.oldest_pending_seconds ?? 0) > 30 ? `${queue.name} is slow: the oldest job waits for ${duration(queue.oldest_pending_seconds)}` : kind.workers === 0 ? "no worker runs this kind now" : null;
    const off = !data.may("operate");
    return h("section.panel.ruled", { key: kind.name }, h("header", h("h2", kind.name), h("span.sub.cut", kind.description ?? ""), h("div.push", this.fields.length ? segments("Input as", [[false, "Form"], [true, "JSON"]], this.asJson, (value) => this.switchJson(value)) : null)),
      h("form.body.stack", { id: "dispatch-form", onsubmit: (event) => { event.preventDefault(); this.send(); }, onkeydown: (event) => (event.ctrlKey || event.metaKey) && event.key === "Enter" && this.send() },
        this.hidden && callout("warn", "Some values are hidden.", "[redacted] replaces a secret of the earlier job: type the value itself."),
        this.problem && callout("bad", "It was not dispatched.", this.problem),
        this.isFilling ? skeleton(4) : this.asJson ? h("div.field", h("label", { for: "json" }, "Arguments, as JSON"), h("textarea.area", { id: "json", rows: "12", spellcheck: "false", value: this.text, oninput: (event) => { this.text = event.target.value; redraw(); } }), this.result.errors.json && h("span.error", icon("warn", 12), this.result.errors.json)) : this.fields.length ? h("div.form-grid", this.fields.map((one) => field(one, this.values, this.errors, redraw))) : h("p.muted", "This kind takes no arguments."),
        h("hr.hr"), h("h3.mini.flat", "Options"),
        h("div.form-grid", this.option("delay", "Delay", "5m, 2h, or nothing: now"), this.option("run_at", `Or run at, ${zoneName()}`, "", { type: "datetime-local" }), this.choice(), this.option("queue", "Queue", kind.queue), this.option("capability", "Capability", kind.capability ?? "any worker"), this.option("max_attempts", "Attempts", String(kind.max_attempts), { type: "number", min: "1" }), this.option("key", "Key", kind.makes_key ? "made by the code from the input" : "at most one live job with it"))),
      h("footer", h("span.row", slow ? [h("i.dot.warn"), slow] : [h("i.dot.good"), `${this.options.queue || kind.queue} takes jobs now`]), h("span.push.row", h("button.btn.primary", { type: "submit", form: "dispatch-form", disabled: off, title: off ? "Your access is read: you can look but not change" : null }, "Dispatch ", kbd("Ctrl", "↵")))));
  }

  option(name, label, hint, more = {}) {
    return h("div.field", h("label", { for: `opt-${name}` }, label), h("input.input", { ...more, id: `opt-${name}`, placeholder: hint, value: this.options[name] ?? "", "aria-invalid": this.errors[`@${name}`] ? "true" : null, oninput: (event) => { this.options[name] = event.target.value.trim(); this.view.redraw(); } }), this.errors[`@${name}`] && h("span.error", icon("warn", 12), this.errors[`@${name}`]));
  }

  choice() {
    return h("div.field", h("label", { for: "opt-priority" }, "Priority"), h("select.select", { id: "opt-priority", onchange: (event) => { this.options.priority = event.target.value; this.view.redraw(); } }, PRIORITIES.map(([value, text]) => h("option", { value, selected: (this.options.priority ?? "") === value }, text))));
  }

  async send() {
    const { args, errors } = this.result;
    this.errors = errors;
    this.problem = null;
    if (Object.keys(errors).length) {
      this.view.redraw();
      document.getElementById(`arg-${Object.keys(errors)[0]}`)?.focus();
      return;
    }
    try {
      const made = await post(`/jobs/${part(this.kind.name)}/dispatch`, { ...this.body, args });
      toast(made.existed ? "warn" : "good", made.existed ? `A job with this key exists: ${shortId(made.id)}. None was added.` : `${this.kind.name} is enqueued.`, { action: "Open", onaction: () => go(address("jobs", [made.id])) });
    } catch (error) {
      for (const one of error.errors) {
        const [where, ...names] = one.path.replace(/\[(\d+)\]/g, ".$1").split(".");
        if (where === "args" && names.length) this.errors[pathOf(this.fields, this.values, names)] = one.message;
        else this.errors[`@${where.replace("body", names[0] ?? "")}`] = one.message;
      }
      this.problem = error.message;
    }
    this.view.redraw();
  }

  aside(latencies, series) {
    const { body, kind } = this;
    const ran = latencies?.latencies.find((one) => one.kind === kind.name && one.measure === "ran");
    const points = series?.groups.find((one) => one.name === kind.name)?.points ?? [];
    const total = (...whats) => sum(points.map((point) => sum(whats.map((what) => point.counts[what] ?? 0))));
    const done = total("completed");
    const failed = total("retry", "dead_letter", "failed");
    const request = `curl -X POST ${new URL(`_api/jobs/${part(kind.name)}/dispatch`, document.baseURI.split("#")[0])} \\\n  -H "Content-Type: application/json" -d '${JSON.stringify(body).replace(/'/g, "'\\''")}'`;
    return [panel("As JSON", { side: copy("JSON", () => JSON.stringify(body, null, 2)) }, code(json(body))),
      panel("As Python", { side: copy("Python", () => python(kind, body)) }, code(python(kind, body))),
      panel("As curl", { side: copy("curl", request) }, code(request)),
      panel("This kind, last 24 h", {}, h("dl.facts", h("dt", "Completed"), h("dd", count(done)), h("dt", "Failed"), h("dd", done + failed ? `${percent(failed / (done + failed))} % of attempts` : "–"), h("dt", "Run p50, p95"), h("dd", ran ? `${duration(ran.p50)}, ${duration(ran.p95)}` : "–"), h("dt", "Attempts"), h("dd", String(kind.max_attempts)), h("dt", "Workers"), h("dd", count(kind.workers))))];
  }
}

const literal = (value) => (value === null ? "None" : value === true ? "True" : value === false ? "False" : Array.isArray(value) ? `[${value.map(literal).join(", ")}]` : typeof value === "object" ? `{${Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)}: ${literal(inner)}`).join(", ")}}` : JSON.stringify(value));

function python(kind, { args, ...options }) {
  const given = Object.entries(options).map(([name, value]) => `${name}=${name === "run_at" ? `datetime.fromisoformat(${literal(value)})` : literal(value)}`).join(", ");
  return `await app.enqueue(\n  ${JSON.stringify(kind.name)},\n  ${literal(args)}${given ? `,\n  ${given}` : ""},\n)`;
}
