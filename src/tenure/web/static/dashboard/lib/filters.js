// The filters of the job list: parameters of the address, chips on the page, and what is typed.
import { isPartOfId } from "./find_job.js";

const NAMES = ["kind", "queue", "key", "input", "priority", "capability", "parent", "since"];
const SPANS = { "15m": 900, "1h": 3600, "6h": 21600, "24h": 86400, "7d": 604800 };
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const chips = (params) => NAMES.filter((name) => params.get(name)).map((name) => [name, params.get(name)]);
export const stateOf = (params) => params.get("state") ?? "";

/** As GET /jobs takes them. */
export function query(params, now) {
  const found = {};
  for (const name of NAMES) if (params.get(name) && name !== "since") found[name] = params.get(name);
  if (params.get("state")) found.state = params.get("state");
  const span = SPANS[params.get("since")];
  if (span) found.enqueued_after = new Date(Math.floor((now - span * 1000) / 60000) * 60000).toISOString();
  return found;
}

/** As POST /jobs/bulk takes them. */
export function bulkFilter(params, now) {
  const { state, input, priority, ...rest } = query(params, now);
  return { ...rest, ...(state ? { state: state.split(",") } : {}), ...(input && parsed(input) ? { input: JSON.parse(input) } : {}), ...(priority ? { priority } : {}) };
}

/** What was typed: {open: id}, {find: part of an id}, {set: {...}} or {error: "..."}. */
export function typed(text) {
  const given = text.trim();
  if (!given) return {};
  if (UUID.test(given)) return { open: given.toLowerCase() };
  if (isPartOfId(given) && /\d/.test(given)) return { find: given };
  if (given.startsWith("{")) return parsed(given) ? { set: { input: given } } : { error: 'This is not JSON. Give an object such as {"user_id": 1}.' };
  const named = given.match(/^([a-z]+)\s*[:=]\s*(.+)$/i);
  if (named && [...NAMES, "state", "id"].includes(named[1].toLowerCase())) {
    const [name, value] = [named[1].toLowerCase(), named[2].trim()];
    if (name === "id") return UUID.test(value) ? { open: value } : isPartOfId(value) ? { find: value } : { error: "This is not an id: give at least its first seven characters." };
    if (name === "since" && !SPANS[value]) return { error: `since is one of ${Object.keys(SPANS).join(", ")}.` };
    if (name === "input" && !parsed(value)) return { error: 'input is JSON: {"user_id": 1}.' };
    return { set: { [name]: value } };
  }
  if (named) return { set: { input: JSON.stringify({ [named[1]]: scalar(named[2]) }) } };
  return { set: { kind: given } };
}

const parsed = (text) => {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value);
  } catch {
    return false;
  }
};

function scalar(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" ? text : value;
  } catch {
    return text;
  }
}

export const inWords = (params) => [...chips(params).map(([name, value]) => `${name} ${value}`), params.get("state") ? `state ${params.get("state").replace(/_/g, " ").replace(/,/g, " or ")}` : null].filter(Boolean).join(", ") || "all jobs";
