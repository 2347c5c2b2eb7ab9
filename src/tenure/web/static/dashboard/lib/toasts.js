// Short messages at the bottom: at most three, gone after six seconds unless the pointer or the focus is on them.
import { h, $ } from "./dom.js";

const SYMBOLS = { good: "check", bad: "stop", warn: "warn", info: "info" };

export function toast(tone, text, { symbol, action, onaction, brief } = {}) {
  const box = $("#toasts");
  const close = () => element.remove();
  const element = h("div.toast", { "data-tone": tone, role: tone === "bad" ? "alert" : "status" },
    h("svg.i", { "aria-hidden": "true" }, h("use", { href: `#i-${symbol ?? SYMBOLS[tone]}` })),
    h("span.grow", text),
    action && h("button.btn.sm", { type: "button", onclick: () => { close(); onaction(); } }, action),
    h("button.btn.ghost.icon.sm", { type: "button", "aria-label": "Close", onclick: close }, h("svg.i.i-12", { "aria-hidden": "true" }, h("use", { href: "#i-x" }))));
  box.append(element);
  while (box.children.length > 3) box.firstElementChild.remove();
  const leave = () => (element.matches(":hover, :focus-within") ? setTimeout(leave, 2000) : close());
  setTimeout(leave, brief ? 2000 : tone === "bad" ? 12000 : 6000);
}

/** Runs an action, and says how it ended. */
export async function act(work, done) {
  try {
    const result = await work();
    const told = typeof done === "function" ? done(result) : done;
    if (told) Array.isArray(told) ? toast(...told) : toast("good", told);
    return result;
  } catch (error) {
    toast("bad", error.message);
    return undefined;
  }
}
