// All keys, and the switch that turns single keys off.
import { h } from "./lib/dom.js";
import { dialog } from "./lib/dialogs.js";
import { singleKeys, switchSingleKeys } from "./lib/keys.js";
import { kbd } from "./lib/ui.js";

const then = (key) => [kbd("g"), h("span.faint", "then"), kbd(key)];
const GENERAL = [["Search, commands", [kbd("/"), h("span.faint", "or"), kbd("Ctrl", "K")]], ["Overview, jobs, failures", [then("o"), h("span.faint", "j f")]], ["Workflows, schedules", [then("w"), h("span.faint", "s")]], ["Queues, kinds", [then("q"), h("span.faint", "n")]], ["Workers, leaders", [then("k"), h("span.faint", "l")]], ["Dispatch, audit", [then("d"), h("span.faint", "a")]], ["Pause or resume live", kbd("p")], ["Dark, light, as the system", kbd("t")], ["UTC or local time", kbd("z")]];
const ROWS = [["Next, previous row", kbd("j", "k")], ["Open", kbd("Enter")], ["Select row", kbd("x")], ["Select to here", kbd("Shift", "x")], ["Retry", kbd("r")], ["Cancel", kbd("c")], ["Copy id", kbd("y")], ["Close, clear", kbd("Esc")], ["Values of a chart, as a table", [kbd("←", "→"), kbd("Enter")]]];

const list = (keys) => h("ul", keys.map(([text, shown]) => h("li", h("span", text), h("span.push.row.keys", [shown].flat(3).map((node) => node.cloneNode(true))))));

export function open() {
  return dialog("Keyboard", (close) => [
    h("div.in", h("h2", "Keyboard"), h("div.g-2.keysheet", list(GENERAL), list(ROWS)),
      h("div.row", h("input.switch", { type: "checkbox", id: "single-keys", checked: singleKeys.on, onchange: (event) => switchSingleKeys(event.target.checked) }), h("label", { for: "single-keys" }, "Single keys act. Off: only Ctrl K, Tab, Enter and Esc."))),
    h("footer", h("button.btn", { type: "button", autofocus: true, onclick: () => close() }, "Close")),
  ], { wide: true });
}
