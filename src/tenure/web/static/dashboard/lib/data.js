// What pages show: answers of the API that are asked for again, the fleet as it is sent, and whether all of it is paused.
import { AnswerOrder } from "./answer_order.js";
import { get } from "./api.js";
import * as clock from "./clock.js";
import * as live from "./live.js";

export const session = { identity: null, server: null };
export const may = (scope) => !session.identity?.read_only && ["read", "operate", "admin"].indexOf(session.identity?.scope) >= ["read", "operate", "admin"].indexOf(scope);
export const isLimited = () => Boolean(session.identity?.queues || session.identity?.kinds);

export const status = { mode: "live", since: null, paused: false, trouble: null };
const watchers = new Set();
export function onStatus(listener) {
  watchers.add(listener);
  return () => watchers.delete(listener);
}

function changed(mode) {
  if (status.mode === mode) return;
  status.mode = mode;
  status.since = new Date().toISOString();
  for (const listener of watchers) listener();
}

/** PostgreSQL is away: pages that have figures keep them, and say so. */
function noteTrouble(error) {
  if (Boolean(error) === Boolean(status.trouble)) return;
  status.trouble = error ? { message: error.message, since: new Date().toISOString() } : null;
  for (const listener of watchers) listener();
}

/** Pausing ends the connection and all questions: nothing on the page changes, and the database is not asked. */
export function pause(on = !status.paused) {
  status.paused = on;
  clock.freeze(on);
  apply();
  changed(on ? "paused" : "live");
}

const isActive = () => !status.paused && !document.hidden;

let running = false;
function apply() {
  if (isActive() === running || !session.identity) return;
  running = isActive();
  if (running) {
    live.connect();
    for (const resource of resources.values()) resource.wake();
  } else {
    live.disconnect();
    for (const resource of resources.values()) resource.sleep();
  }
}

document.addEventListener("visibilitychange", apply);
live.whenStatus((mode) => changed(status.paused ? "paused" : mode));
export const start = apply;

/** One answer, asked for again while someone uses it. All users of the same address share it. */
class Resource {
  constructor(path, every) {
    this.path = path;
    this.every = every * 1000;
    this.users = new Set();
    this.value = undefined;
    this.error = null;
    this.at = 0;
    this.timer = null;
    this.order = new AnswerOrder();
  }

  use(listener) {
    this.users.add(listener);
    if (this.users.size === 1) this.wake();
    return () => {
      this.users.delete(listener);
      if (!this.users.size) this.sleep();
    };
  }

  wake() {
    if (!this.users.size) return;
    clearTimeout(this.timer);
    const wait = this.value === undefined ? 0 : Math.max(0, this.at + this.every - Date.now());
    if (this.value === undefined || isActive()) this.timer = setTimeout(() => this.load(), wait);
  }

  sleep() {
    clearTimeout(this.timer);
  }

  async load() {
    clearTimeout(this.timer);
    const question = this.order.ask();
    let value = this.value;
    let error = null;
    try {
      value = await get(this.path);
    } catch (problem) {
      error = problem;
    }
    if (!this.order.accept(question)) return;
    if (status.paused && this.value !== undefined) return;
    if (!error || error.status === 503) noteTrouble(error);
    this.value = value;
    this.error = error;
    this.at = Date.now();
    for (const listener of this.users) listener(this);
    clearTimeout(this.timer);
    if (this.users.size && isActive() && this.every) this.timer = setTimeout(() => this.load(), error ? Math.max(this.every, 3000) : this.every);
  }
}

const resources = new Map();

/** Whether something that is in use has not been answered yet. */
export const isLoading = () => (fleet.now === null && !isLimited()) || [...resources.values()].some((one) => one.users.size && one.value === undefined && !one.error);

/** `resource("/queues", 5)`: kept for the whole session, so that a page that was seen before is there at once. */
export function resource(path, every = 0) {
  let found = resources.get(path);
  if (!found) {
    if (resources.size > 200) for (const [name, one] of resources) if (!one.users.size) resources.delete(name);
    found = new Resource(path, every);
    resources.set(path, found);
  }
  found.every = every * 1000;
  return found;
}

/** After a change that this page made: what begins with one of these paths is asked for again. */
export function refresh(...paths) {
  for (const [path, one] of resources) {
    if (paths.some((begin) => path.startsWith(begin))) {
      if (one.users.size) one.load();
      else one.at = 0;
    }
  }
}

// The fleet, every two seconds, and what it was while this page was open.
export const fleet = { now: null, past: [] };
const fleetWatchers = new Set();
let unfollow = null;
const KEPT = 1800; // an hour

export function useFleet(listener) {
  fleetWatchers.add(listener);
  unfollow ??= isLimited() ? () => {} : live.follow("overview", received);
  return () => fleetWatchers.delete(listener);
}

function received(message) {
  if (message.type !== "overview" || status.paused) return;
  clock.adjust(message.at);
  fleet.now = message;
  fleet.past.push({ at: Date.parse(message.at), today: message.today, held: message.held, slots: message.slots, oldest: oldest(message) });
  if (fleet.past.length > KEPT) fleet.past.shift();
  for (const listener of fleetWatchers) listener();
}

const sum = (message, state) => message.queues.reduce((total, queue) => total + queue[state], 0);
const oldest = (message) => Math.max(0, ...message.queues.filter((queue) => !queue.paused_at).map((queue) => queue.oldest_pending_seconds ?? 0));

/** Ends per second, from the counters of the last seconds. */
export function rateOf(...whats) {
  const past = fleet.past;
  if (past.length < 2) return null;
  const last = past[past.length - 1];
  const first = past.findLast((one) => last.at - one.at >= 10000) ?? past[0];
  const total = (one) => whats.reduce((all, what) => all + (one.today[what] ?? 0), 0);
  const grown = total(last) - total(first);
  return grown < 0 || last.at === first.at ? null : (grown * 1000) / (last.at - first.at);
}
