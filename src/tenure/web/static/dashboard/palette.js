// Search and commands: ids, kinds, queues, workers, pages, actions.
import { h, render, $, $$ } from "./lib/dom.js";
import { get, post, part } from "./lib/api.js";
import * as data from "./lib/data.js";
import { findJobs, isPartOfId } from "./lib/find_job.js";
import { count, label, shortId } from "./lib/format.js";
import { address, go } from "./lib/router.js";
import { act } from "./lib/toasts.js";
import { icon, kbd } from "./lib/ui.js";
import { PAGES, help, switchTheme } from "./shell.js";

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
let kinds = [];
let jobs = { text: "", found: [] }; // by a part of their id

export function open() {
  let at = 0;
  let found = [];
  const input = h("input", { "aria-label": "Search or run a command", placeholder: "Job id, kind, queue, page or command", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", autocomplete: "off", spellcheck: "false" });
  const list = h("div.found", { id: "palette-list", role: "listbox", "aria-label": "Results" });
  const box = h("dialog.palette.float", { "aria-label": "Search and commands" }, h("div.q", icon("search"), input, h("kbd", "Esc")), list, h("footer", h("span", kbd("↑", "↓"), " move"), h("span", kbd("↵"), " open")));
  const draw = () => {
    found = search(input.value.trim());
    at = Math.min(at, Math.max(0, found.length - 1));
    let group = null;
    render(list, found.length ? found.map((one, n) => [
      one.group !== group && h("h3", { role: "presentation" }, (group = one.group)),
      h("li", { role: "option", id: `found-${n}`, "aria-selected": String(n === at), onclick: () => choose(n), onpointermove: () => { if (at !== n) { at = n; mark(); } } }, icon(one.icon, 14), h("span.cut", marked(one.text, input.value.trim())), h("span.push", one.hint ?? ""))]) : h("p.none", "Nothing has this name. A job is found by its id or the beginning of it; by its last eight characters only if it is one of the newest 200."));
    mark();
  };
  const mark = () => {
    for (const [n, item] of $$("li", list).entries()) item.setAttribute("aria-selected", String(n === at));
    input.setAttribute("aria-activedescendant", `found-${at}`);
    $(`#found-${at}`, list)?.scrollIntoView({ block: "nearest" });
  };
  const choose = (n) => {
    box.close();
    found[n]?.run();
  };
  input.oninput = () => {
    at = 0;
    draw();
    look(input.value.trim(), () => box.open && draw());
  };
  input.onkeydown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      at = (at + step + found.length) % Math.max(1, found.length);
      mark();
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(at);
    }
  };
  box.addEventListener("close", () => box.remove());
  box.addEventListener("click", (event) => event.target === box && box.close());
  document.body.append(box);
  box.showModal();
  draw();
  get("/kinds").then((reply) => { kinds = reply.kinds; if (box.open) draw(); }, () => {});
}

/** Asks when nothing was typed for a moment. */
function look(text, done) {
  clearTimeout(look.timer);
  if (!isPartOfId(text) || UUID.test(text)) return;
  look.timer = setTimeout(async () => {
    jobs = { text, found: await findJobs(text).catch(() => []) };
    done();
  }, 150);
}

/** What was typed, in bold. */
function marked(text, typed) {
  const start = typed ? text.toLowerCase().indexOf(typed.toLowerCase()) : -1;
  return start < 0 ? text : [text.slice(0, start), h("mark", text.slice(start, start + typed.length)), text.slice(start + typed.length)];
}

function search(typed) {
  const fits = (text) => text.toLowerCase().includes(typed.toLowerCase());
  const to = (group, symbol, text, hash, hint) => ({ group, icon: symbol, text, hint, run: () => go(hash) });
  const queues = data.fleet.now?.queues ?? [];
  const results = [];
  if (UUID.test(typed)) results.push(to("Job", "jobs", `Open job ${shortId(typed)}`, address("jobs", [typed.toLowerCase()])));
  else if (jobs.text === typed) for (const job of jobs.found) results.push(to("Job", "jobs", `${job.kind} ${job.id}`, address("jobs", [job.id]), label(job.state)));
  const commands = [
    { text: data.status.paused ? "Resume live updates" : "Pause live updates", icon: data.status.paused ? "play" : "pause", hint: kbd("p"), run: () => data.pause() },
    { text: "Switch between dark, light and system", icon: "theme", hint: kbd("t"), run: switchTheme },
    { text: "Show all keys", icon: "help", hint: kbd("?"), run: help },
    ...(typed && data.may("operate") ? [...queues.map((queue) => ({ text: `${queue.paused_at ? "Resume" : "Pause"} queue ${queue.name}`, icon: queue.paused_at ? "play" : "pause", run: () => switchQueue(queue) })), ...kinds.map((kind) => ({ text: `Dispatch ${kind.name}`, icon: "dispatch", run: () => go(address("dispatch", [kind.name])) }))] : []),
  ].map((one) => ({ ...one, group: "Actions" }));
  const pages = Object.entries(PAGES).map(([page, [text, key]]) => to("Go to", page, text, address(page), kbd("g", key)));
  const things = typed ? [
    ...queues.map((queue) => to("Go to", "queues", queue.name, address("queues", [], { q: queue.name }), `${count(queue.pending)} pending`)),
    ...kinds.map((kind) => to("Go to", "kinds", kind.name, address("kinds", [], { q: kind.name }), kind.queue)),
    ...(data.fleet.now?.fleet ?? []).map((worker) => to("Go to", "workers", worker.name, address("workers"), worker.alive ? `${worker.held}/${worker.concurrency}` : "lost")),
  ] : [];
  const listed = [...things, ...pages].filter((one) => fits(one.text)).slice(0, 14);
  const acts = commands.filter((one) => fits(one.text)).slice(0, 6);
  const lists = typed && !UUID.test(typed) ? [to("Jobs", "jobs", `Jobs of kind “${typed}”`, address("jobs", [], { kind: typed })), to("Jobs", "jobs", `Jobs with the key “${typed}”`, address("jobs", [], { key: typed }))] : [];
  return typed ? [...results, ...acts, ...listed, ...lists] : [...pages, ...acts];
}

function switchQueue(queue) {
  const action = queue.paused_at ? "resume" : "pause";
  return act(() => post(`/queues/${part(queue.name)}/${action}`), `Queue ${queue.name} is ${action === "pause" ? "paused" : "running again"}.`);
}
