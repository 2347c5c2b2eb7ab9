// The frame around every page: navigation, search, clock, and what is open in it.
import { h, render, $ } from "./lib/dom.js";
import { get, remove } from "./lib/api.js";
import * as clock from "./lib/clock.js";
import * as data from "./lib/data.js";
import * as keys from "./lib/keys.js";
import { reconnectNow } from "./lib/live.js";
import { address, go, onPlace, place } from "./lib/router.js";
import { toast } from "./lib/toasts.js";
import { callout, icon, panel, problem } from "./lib/ui.js";
import { View } from "./lib/view.js";
import { hide } from "./charts/hover.js";

/** Name, key after g, and the module that shows it, by what follows in the address. */
export const PAGES = {
  overview: ["Overview", "o", () => "overview"],
  jobs: ["Jobs", "j", ([id]) => (id ? "job" : "jobs")],
  failures: ["Failures", "f", () => "failures"],
  workflows: ["Workflows", "w", ([first, id]) => (first === "chains" ? (id ? "chain" : "flows") : first ? "workflow" : "flows")],
  schedules: ["Schedules", "s", () => "schedules"],
  queues: ["Queues", "q", () => "queues"],
  kinds: ["Kinds", "n", () => "kinds"],
  workers: ["Workers", "k", () => "workers"],
  leaders: ["Leaders", "l", () => "leaders"],
  dispatch: ["Dispatch", "d", () => "dispatch"],
  audit: ["Audit", "a", () => "audit"],
};
const GROUPS = [["", ["overview"]], ["Work", ["jobs", "failures", "workflows", "schedules"]], ["Capacity", ["queues", "kinds", "workers", "leaders"]], ["Operate", ["dispatch", "audit"]]];
const BOTTOM = ["overview", "jobs", "failures", "queues"];
const load = (name) => import(`./pages/${name}.js`);

let view = null;
let crumbs = null;
let title = "";
let findings = null;

export async function open() {
  render($("#root"),
    h("a.skip", { href: "#main", onclick: (event) => { event.preventDefault(); $("#main").focus(); } }, "Skip to content"),
    h("div.app", h("nav.nav", { "aria-label": "Main" }), h("div.main", h("header.top"), h("div.notices", { id: "notices" }), h("main.page", { id: "main", tabindex: "-1" }))),
    h("nav.tabs-bottom", { "aria-label": "Main, short" }));
  bindKeys();
  onPlace(openPlace);
  data.onStatus(frame);
  data.useFleet(frame);
  if (!data.isLimited()) {
    findings = data.resource("/findings", 30);
    findings.use(frame);
  }
  get("/server").then((server) => { data.session.server = server; frame(); }, () => {});
  frame();
  clock.onTick(drawClock);
  await openPlace();
  loadAll();
}

const later = (ms) => new Promise((next) => setTimeout(next, ms));
const MODULES = ["jobs", "job", "failures", "queues", "flows", "workflow", "chain", "schedules", "kinds", "workers", "leaders", "dispatch", "audit", "overview"];

/** Modules of all pages, when the first one has its figures: opening another page then waits for its data only. */
async function loadAll() {
  for (let looks = 0; looks < 200 && data.isLoading(); looks++) await later(50);
  await later(200); // until they are on the screen
  if (data.status.paused) return;
  // The palette too, or what is typed after its key would be lost while it loads. An error is shown when the page is opened.
  await Promise.allSettled([import("./palette.js"), ...MODULES.map(load)]);
}

// Navigation

function flags() {
  const found = {};
  const fleet = data.fleet.now;
  const failing = findings?.value?.findings.filter((one) => one.code === "failures").length ?? 0;
  if (failing) found.failures = ["bad", String(failing), `${failing} groups of jobs fail`];
  if (!fleet) return found;
  const paused = fleet.queues.filter((queue) => queue.paused_at).length;
  const lost = fleet.fleet.filter((worker) => !worker.alive && worker.died_how !== "stopped").length;
  const stuck = fleet.leaders.filter((leader) => leader.state === "stuck" || leader.state === "expired").length;
  if (paused) found.queues = ["warn", `${paused} paused`, `${paused} queues are paused`];
  if (lost) found.workers = ["bad", `${lost} lost`, `${lost} workers are lost`];
  if (stuck) found.leaders = ["bad", `${stuck} stuck`, `${stuck} duties are stuck`];
  return found;
}

function frame() {
  const current = place().page;
  const marks = flags();
  const item = (page) => {
    const [text, , moduleOf] = PAGES[page];
    const mark = marks[page];
    return h("a.nav-link", { href: address(page), key: page, title: text, "aria-current": current === page ? "page" : null, onpointermove: () => soon(moduleOf([])) }, icon(page), h("span", text), mark && h("span.flag", { class: mark[0], title: mark[2] }, mark[1]));
  };
  const { identity, server } = data.session;
  render($(".nav"),
    h("a.brand", { href: address("overview") }, h("svg", { role: "img", "aria-label": "Tenure" }, h("use", { href: "#brand" })), h("span", "Tenure"), server && h("span.env.tag", { title: `database ${server.database}` }, server.database)),
    GROUPS.map(([name, pages]) => h("div.nav-group", { key: name || "first" }, name && h("h2", name), pages.map(item))),
    h("div.nav-foot",
      h("div.row", h("i.dot", { class: data.status.mode === "lost" ? "bad" : "good" }), h("span.muted.cut", { title: server?.database ?? null }, server ? `${server.database}${server.schema === "tenure" ? "" : `, ${server.schema}`}` : "…")),
      server && [h("div", `PostgreSQL ${server.postgresql.split(" ")[0]}`), h("div", `Tenure ${server.tenure}`)],
      h("div", identity.via === "local" ? "Open to this machine" : ["Signed in as ", h("span.muted", identity.name)]),
      h("div.row", h("span.tag", identity.read_only ? "read" : identity.scope), identity.via === "session" && h("button.linkish", { onclick: signOut }, "Sign out"))));
  render($(".tabs-bottom"),
    BOTTOM.map((page) => h("a", { href: address(page), key: page, "aria-current": current === page ? "page" : null }, icon(page), PAGES[page][0], marks[page] && h("span.flag"))),
    h("a", { href: "#/more", key: "more", "aria-current": BOTTOM.includes(current) ? null : "page" }, icon("more"), "More"));
  drawTop();
  drawNotices();
}

let wanted = null;
/** A pointer that rests on a link will probably open it. */
function soon(name) {
  clearTimeout(wanted);
  wanted = setTimeout(() => load(name).catch(() => {}), 60);
}

async function signOut() {
  await remove("/session");
  location.reload();
}

// The bar at the top

function drawTop() {
  render($(".top"),
    crumbs ? h("nav.crumbs", { key: "crumbs", "aria-label": "Breadcrumb" }, crumbs) : h("h1", { key: "h1" }, title),
    h("span.push"),
    h("button.finder", { title: "Search or run a command (/)", onclick: palette }, icon("search", 14), h("span", "Search or run a command"), h("kbd", { "aria-hidden": "true" }, "/")),
    liveBox(),
    h("button.btn.icon", { "aria-label": "Switch between dark, light and the theme of the system", title: "Dark, light or as the system (t)", onclick: switchTheme }, icon("theme")),
    h("button.btn.icon.p-2", { "aria-label": "Keyboard shortcuts", title: "Keyboard shortcuts (?)", onclick: help }, icon("help")));
}

function liveBox() {
  const { mode, since } = data.status;
  if (mode === "lost")
    return h("div.live", { "data-live": "lost" }, h("output", h("i.dot.ring"), `Offline since ${clock.clockTime(since)}`), h("button", { "aria-label": "Connect again", onclick: reconnectNow }, icon("undo", 14), h("span.p-2", "Retry")));
  const paused = mode === "paused";
  const text = paused ? "Resume live updates (p)" : "Pause live updates (p)";
  return h("div.live", { "data-live": mode },
    h("output", { "aria-live": "off", title: `Times in ${clock.zoneName()}; press z to switch` }, h("i.dot", { class: paused ? "ring" : null }), h("span.clock", paused ? `Paused at ${clock.clockTime(clock.now())}` : clock.clockTime(clock.now())), h("span.faint.p-1", ` ${clock.zoneName()}`)),
    h("button", { "aria-label": text, title: text, onclick: () => data.pause() }, icon(paused ? "play" : "pause", 14), h("span.p-2", paused ? "Resume" : "Pause")));
}

function drawClock(at) {
  const element = $(".live .clock");
  if (element && data.status.mode === "live") element.textContent = clock.clockTime(at);
}

function drawNotices() {
  const { mode, since, trouble } = data.status;
  render($("#notices"),
    trouble && callout("bad", `PostgreSQL does not answer since ${clock.clockTime(trouble.since)}.`, `Workers keep their running jobs and finished results, and write them when it is back. Figures below are from before. ${trouble.message}`),
    mode === "lost" && callout("warn", "Live updates are interrupted.", `The page stays as it was at ${clock.clockTime(since)} and catches up by itself.`, h("button.btn.sm", { onclick: reconnectNow }, "Reconnect")));
}

// Pages

async function openPlace() {
  const now = place();
  if (view?.onPlace && view.place.page === now.page && view.place.rest.join("/") === now.rest.join("/")) {
    view.place = now;
    view.onPlace();
    frame();
    return;
  }
  hide();
  if (now.page === "more") return openMore(now);
  const entry = PAGES[now.page];
  if (!entry) return go(address("overview"));
  let module;
  try {
    module = await load(entry[2](now.rest));
  } catch (error) {
    render($("#main"), problem({ status: 0, message: `${error.message}. Reload the page.` }));
    return;
  }
  if (place().page !== now.page || place().rest.join("/") !== now.rest.join("/")) return;
  show(now, entry[0], (next) => module.start(next));
}

function show(now, name, start) {
  view?.close();
  setTitle(name);
  const main = $("#main");
  main.dataset.page = now.page;
  view = new View(main, now);
  const mine = view;
  start(mine);
  mine.drawNow();
  scrollTo(0, 0);
  frame();
}

function openMore(now) {
  show(now, "More", (next) => {
    next.draw = () => panel("Pages", { flush: true }, h("ul.pick", Object.entries(PAGES).filter(([page]) => !BOTTOM.includes(page)).map(([page, [text]]) => h("li", h("a.row", { href: address(page) }, icon(page), text))),
      h("li", h("button.row.linkish", { onclick: switchTheme }, icon("theme"), "Dark, light or as the system")), h("li", h("button.row.linkish", { onclick: clock.switchZone }, icon("schedules"), "UTC or local time"))));
  });
}

export function setTitle(text, path = null) {
  title = text;
  crumbs = path;
  document.title = `${text} · Tenure`;
  if ($(".top")) drawTop();
}

// Keys

const palette = async () => (await import("./palette.js")).open(view);
const help = async () => (await import("./help.js")).open();

const NEXT_THEME = { dark: "light", light: "system", system: "dark" };

function switchTheme() {
  const { dataset } = document.documentElement;
  const next = NEXT_THEME[dataset.theme ?? "system"];
  if (next === "system") delete dataset.theme;
  else dataset.theme = next;
  clock.write("tenure.theme", next);
  toast("info", next === "system" ? "Theme: as the system." : `Theme: ${next}.`, { symbol: "theme", brief: true });
}

function bindKeys() {
  keys.bind("/", palette);
  keys.bind("?", help);
  keys.bind("p", () => data.pause());
  keys.bind("t", switchTheme);
  keys.bind("z", () => { clock.switchZone(); frame(); view?.redraw(); });
  for (const [page, [, key]] of Object.entries(PAGES)) keys.bindGo(key, () => go(address(page)));
  keys.whilePage(() => view?.keys ?? {});
}

export { switchTheme, help };
