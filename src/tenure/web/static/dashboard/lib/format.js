// Numbers, durations and times as people read them.

const grouped = new Intl.NumberFormat("en-US");

export const count = (n) => (n === null || n === undefined ? "" : grouped.format(Math.round(n)));
export const capped = (n, isCapped) => (isCapped ? `${n >= 1000 ? `${Math.floor(n / 1000)}k` : n}+` : count(n));
export const short = (n) => (n >= 1e6 ? `${trim(n / 1e6)}M` : n >= 1e4 ? `${trim(n / 1e3)}k` : n >= 1e3 ? `${trim(n / 1e3)}k` : trim(n));
const trim = (n) => String(+n.toFixed(n < 10 ? 1 : 0));
export const rate = (perSecond) => (perSecond >= 10 ? count(perSecond) : perSecond >= 0.095 ? trim(perSecond) : perSecond > 0 ? trim(perSecond * 60) : "0");
/** "148/s", "9.4/s", "3/min": the unit is the one in which the number can be read. */
export const perTime = (perSecond) => (perSecond > 0 && perSecond < 0.095 ? `${rate(perSecond)}/min` : perSecond > 0 ? `${rate(perSecond)}/s` : "0");
/** For rates that are below one per second. */
export const perMinute = (perSecond) => (perSecond > 0 ? `${trim(perSecond * 60)}/min` : "0");
export const percent = (share) => (share === 0 ? "0" : share < 0.001 ? "< 0.1" : share < 0.1 ? (share * 100).toFixed(1) : String(Math.round(share * 100)));

/** "412 MB", "1.3 GB". */
export const megabytes = (mb) => (mb >= 1000 ? `${(mb / 1024).toFixed(1)} GB` : `${Math.round(mb)} MB`);

/** "42 ms", "1.9 s", "18m 42s", "3d 4h": at most two units. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "";
  const s = Math.max(0, seconds);
  if (s === 0) return "0 s";
  if (s < 0.0995) return `${Math.max(1, Math.round(s * 1000))} ms`;
  if (s < 0.9995) return `${Math.round(s * 100) * 10} ms`;
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < 59.5) return `${Math.round(s)} s`;
  const whole = Math.round(s);
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${pad(whole % 60)}s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)}h ${pad(Math.floor((whole % 3600) / 60))}m`;
  return `${Math.floor(whole / 86400)}d ${Math.floor((whole % 86400) / 3600)}h`;
}

export const pad = (n, digits = 2) => String(n).padStart(digits, "0");

/** "4 s ago", "in 2m 10s". */
export function relative(at, now) {
  const seconds = (now - at) / 1000;
  const size = Math.abs(seconds);
  if (size < 1) return "just now";
  const text = size < 60 ? `${Math.floor(size)} s` : size < 3600 ? `${Math.floor(size / 60)}m` : size < 86400 ? `${Math.floor(size / 3600)}h` : `${Math.floor(size / 86400)}d`;
  return seconds > 0 ? `${text} ago` : `in ${size >= 60 ? duration(size) : text}`;
}

/** The last eight digits: the first ones of a UUIDv7 are the time. */
export const shortId = (id) => String(id).slice(-8);

export const label = (state) => (state === "dead_letter" ? "dead letter" : state);
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
export const sentence = (text) => (text ? text[0].toUpperCase() + text.slice(1) : "");
export const words = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten"];

/** `key value` pairs of an input, without braces: [["report", "sales"], ...]. */
export function pairs(input, most = 4) {
  if (input === null || typeof input !== "object" || Array.isArray(input)) return input === null || input === undefined ? [] : [["", plain(input)]];
  return Object.entries(input).slice(0, most).map(([key, value]) => [key, plain(value)]);
}

export function plain(value) {
  if (typeof value === "string") return value.length > 60 ? `${value.slice(0, 60)}…` : value;
  const text = JSON.stringify(value) ?? "";
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
