// The keyboard: single keys, "g" and then a page, and moving through the rows of a list.
import { $, $$ } from "./dom.js";
import { read, write } from "./clock.js";
import { copyText } from "./ui.js";

const global = new Map();
const sequences = new Map();
let pageKeys = () => ({});
let waitingForPage = 0;

export const singleKeys = { on: read("tenure.keys") !== "off" };
export function switchSingleKeys(on) {
  singleKeys.on = on;
  write("tenure.keys", on ? "on" : "off");
}

export const bind = (key, action) => global.set(key, action);
export const bindGo = (key, action) => sequences.set(key, action);
export const whilePage = (keys) => {
  pageKeys = keys;
};

const isTyping = (element) => element?.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]");

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") return run(event, global.get("/"));
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return escape(event);
  if (isTyping(event.target) || !singleKeys.on) return;
  if (waitingForPage && Date.now() - waitingForPage < 1500) {
    waitingForPage = 0;
    return run(event, sequences.get(event.key));
  }
  if (event.key === "g") {
    waitingForPage = Date.now();
    return;
  }
  if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
  run(event, pageKeys()[event.key] ?? rowKeys[event.key] ?? global.get(event.key));
});

function run(event, action) {
  if (!action) return;
  event.preventDefault();
  action(event);
}

function escape(event) {
  if (isTyping(event.target)) return event.target.blur();
  run(event, pageKeys().Escape ?? (() => document.activeElement?.blur()));
}

// Rows: one of them can be reached with Tab; j and k move between them.
export const rows = () => $$("#main tr[data-row]");
export const currentRow = () => rows().find((row) => row.matches(":focus, :focus-within")) ?? null;

export function focusRow(row) {
  if (!row) return;
  for (const other of $$("#main tr[data-row][tabindex='0']")) other.tabIndex = -1;
  row.tabIndex = 0;
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function move(step) {
  const list = rows();
  const at = list.indexOf(currentRow());
  focusRow(list[at < 0 ? (step > 0 ? 0 : list.length - 1) : Math.min(list.length - 1, Math.max(0, at + step))]);
}

function open() {
  const row = currentRow();
  if (row) ($("[data-open]", row) ?? $("a", row))?.click();
}

const rowKeys = {
  j: () => move(1),
  k: () => move(-1),
  ArrowDown: (event) => currentRow() ? move(1) : scrollBy(0, 60, event),
  ArrowUp: (event) => currentRow() ? move(-1) : scrollBy(0, -60, event),
  Enter: open,
  o: open,
  x: () => $("input[type=checkbox]", currentRow() ?? document.createElement("i"))?.click(),
  X: () => $("input[type=checkbox]", currentRow() ?? document.createElement("i"))?.dispatchEvent(new MouseEvent("click", { shiftKey: true, bubbles: true })),
  y: () => currentRow()?.dataset.id && copyText(currentRow().dataset.id, "the id"),
};
