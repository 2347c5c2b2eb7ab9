// Small pieces that all pages are made of.
import { h } from "./dom.js";
import { label } from "./format.js";
import { toast } from "./toasts.js";

export const STATES = ["scheduled", "blocked", "waiting", "pending", "running", "retry", "dead_letter", "completed", "failed", "canceled"];
const LOUD = new Set(["failed", "dead_letter", "retry"]);

export const icon = (name, size = 16) => h("svg.i", { class: size === 16 ? null : `i-${size}`, "aria-hidden": "true" }, h("use", { href: `#i-${name}` }));
export const glyph = (state) => h("svg.g", { "aria-hidden": "true" }, h("use", { href: `#s-${state}` }));
export const state = (name, text) => h("span.state", { class: LOUD.has(name) ? "loud" : null, "data-state": name }, glyph(name), text ?? label(name));
export const badge = (name, text, big = false) => h("span.badge", { class: big ? "big" : null, "data-state": name }, glyph(name), text ?? label(name));
export const tone = (name, text, symbol) => h("span.badge", { "data-tone": name }, symbol && icon(symbol, 12), text);
export const kbd = (...keys) => keys.map((key) => h("kbd", key));
export const cut = (text, name = "") => h("div.cut", { class: name, title: typeof text === "string" ? text : null }, text);

export function panel(title, options, ...body) {
  const { sub, side, name, flush, foot, id } = options ?? {};
  return h("section.panel", { class: name, id, "aria-label": title },
    h("header", h("h2", title), sub && h("span.sub", sub), side && h("div.push", side)),
    h("div.body", { class: flush ? "flush" : null }, body),
    foot && h("footer", foot));
}

export function segments(name, options, current, choose) {
  return h("div.seg", { role: "group", "aria-label": name }, options.map(([value, text]) =>
    h("button", { type: "button", "aria-pressed": String(value === current), onclick: () => choose(value) }, text)));
}

export async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without HTTPS there is no clipboard API.
    const area = h("textarea.sr", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast("good", `Copied ${what}.`, { symbol: "check", brief: true });
}

export const copy = (what, text) =>
  h("button.btn.ghost.icon.sm", { type: "button", "aria-label": `Copy ${what}`, title: `Copy ${what}`, onclick: () => copyText(typeof text === "function" ? text() : text, what) }, icon("copy", 14));

/** A value of JSON, coloured. */
export function json(value, depth = 0) {
  if (value === null || typeof value === "boolean") return h("span.l", String(value));
  if (typeof value === "number") return h("span.d", String(value));
  if (typeof value === "string") return h("span.s", JSON.stringify(value));
  const inner = "  ".repeat(depth + 1);
  const close = `\n${"  ".repeat(depth)}`;
  const isList = Array.isArray(value);
  const entries = isList ? value.map((item) => [null, item]) : Object.entries(value);
  if (!entries.length) return h("span", isList ? "[]" : "{}");
  if (isList && entries.length <= 8 && value.every((item) => item === null || typeof item !== "object"))
    return h("span", "[", value.map((item, n) => [n ? ", " : "", json(item)]), "]");
  return h("span", isList ? "[" : "{", entries.slice(0, 500).map(([key, item], n) => [n ? "," : "", `\n${inner}`, key === null ? null : [h("span.k", JSON.stringify(key)), ": "], json(item, depth + 1)]), entries.length > 500 ? `,\n${inner}…` : null, close, isList ? "]" : "}");
}

export const code = (content, name = "wrap") => h("pre.code", { class: name, tabindex: "0", role: "region", "aria-label": "Code" }, content);

export const callout = (toneName, title, text, ...more) =>
  h("section.callout", { "data-tone": toneName }, icon({ bad: "stop", warn: "warn", info: "info", good: "check" }[toneName]), h("div.grow", h("h2", title), text && h("p", text)), more);

export const empty = (title, ...body) => h("div.empty", h("h2", title), body);

export const skeleton = (rows = 8) =>
  h("div.skel-rows", { "aria-busy": "true" }, Array.from({ length: rows }, (_, n) => h("div.row", h("span.skel", { class: ["w-3", "w-4", "w-2", "w-3"][n % 4] }))));

/** Shown until the first answer has arrived, and instead of it if that is an error. */
export function waiting(resource, rows) {
  if (resource.error && resource.value === undefined) return problem(resource.error);
  return h("section.panel", skeleton(rows));
}

export function problem(error) {
  if (error.status === 403) return callout("info", "You can look, but not at this.", error.message);
  if (error.status === 503) return callout("bad", "PostgreSQL does not answer.", `${error.message}. Workers keep their running jobs and finished results, and write them when it is back. This page tries again by itself.`);
  return callout(error.status === 404 ? "warn" : "bad", error.status === 404 ? "There is no such thing." : "This could not be loaded.", error.message);
}

/** Commands in a text of the server, which are between backticks. */
export const ticked = (text) => String(text).split("`").map((part, n) => (n % 2 ? h("code", part) : part));

export const link = (href, ...content) => h("a.link", { href }, content);
