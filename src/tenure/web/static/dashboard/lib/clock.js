// One clock for all relative times. It stands still while the page is paused.
import { h, $$ } from "./dom.js";
import { duration, pad, relative } from "./format.js";

let offset = 0; // of the database's clock, which wrote all the times that are shown
let frozen = null;
let zone = read("tenure.zone") === "local" ? "local" : "utc";
const listeners = new Set();

export const now = () => frozen ?? Date.now() + offset;
export const isUtc = () => zone === "utc";
export const zoneName = () => (isUtc() ? "UTC" : Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(new Date()).find((part) => part.type === "timeZoneName").value);

export function adjust(serverTime) {
  const difference = Date.parse(serverTime) - Date.now();
  // Messages take a moment: only a real difference counts.
  if (Math.abs(difference - offset) > 2000) offset = difference;
}

export function freeze(on) {
  frozen = on ? now() : null;
  tick();
}

export function switchZone() {
  zone = isUtc() ? "local" : "utc";
  write("tenure.zone", zone);
  for (const element of $$("time[datetime]")) element.title = exact(element.getAttribute("datetime"));
  tick();
}

export function onTick(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function parts(at) {
  const d = new Date(at);
  return isUtc()
    ? [d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate(), d.getUTCDay(), d.getUTCHours(), d.getUTCMinutes(), d.getUTCSeconds(), d.getUTCMilliseconds()]
    : [d.getFullYear(), d.getMonth(), d.getDate(), d.getDay(), d.getHours(), d.getMinutes(), d.getSeconds(), d.getMilliseconds()];
}

export function clockTime(at, { seconds = true, millis = false } = {}) {
  const [, , , , hour, minute, second, ms] = parts(at);
  return `${pad(hour)}:${pad(minute)}${seconds ? `:${pad(second)}` : ""}${millis ? `.${pad(ms, 3)}` : ""}`;
}

export function dayTime(at, options) {
  const [, month, date, day] = parts(at);
  const [, , today] = parts(now());
  const near = Math.abs(now() - new Date(at)) < 6 * 86400e3;
  const time = clockTime(at, options);
  return near && date === today ? time : `${near ? DAYS[day] : `${date} ${MONTHS[month]}`} ${time}`;
}

export function exact(at) {
  const [year, month, date] = parts(at);
  return `${year}-${pad(month + 1)}-${pad(date)} ${clockTime(at, { millis: true })} ${zoneName()}`;
}

/** A relative time that keeps itself up to date, with the exact one on hover. */
export function when(at) {
  return live(at, "ago");
}

/** The same for a time to come: "in 48 s", then "now". */
export const soon = (at) => live(at, "soon");

/** How long ago it was, as a duration: "1m 04s". */
export const since = (at) => live(at, "since");

const TEXTS = {
  ago: (at, moment) => relative(at, moment),
  soon: (at, moment) => (at - moment < 1000 ? "now" : relative(at, moment)),
  since: (at, moment) => duration((moment - at) / 1000),
};

function live(at, kind) {
  return at ? h("time", { datetime: at, title: exact(at), "data-live": kind }, TEXTS[kind](Date.parse(at), now())) : null;
}

export function tick() {
  const at = now();
  for (const element of $$("time[data-live]")) {
    if (element.closest("tr")?.__isOff) continue; // out of sight
    const text = TEXTS[element.dataset.live](Date.parse(element.getAttribute("datetime")), at);
    if (element.firstChild && element.firstChild.nodeValue !== text) element.firstChild.nodeValue = text;
  }
  for (const listener of listeners) listener(at);
}

setInterval(() => frozen === null && !document.hidden && tick(), 1000);

export function read(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function write(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Storage may be forbidden: the choice lasts as long as the page.
  }
}
