// Dialogs that ask before something changes. Focus returns to where it was.
import { h } from "./dom.js";

/** Opens a modal dialog. `build(close)` returns its content. Resolves with what `close` was given, or undefined. */
export function dialog(name, build, { wide = false } = {}) {
  return new Promise((resolve) => {
    let result;
    const before = document.activeElement;
    const close = (value) => {
      result = value;
      element.close();
    };
    const element = h("dialog.dialog", { "aria-label": name, class: wide ? "wide" : null });
    element.append(...[build(close)].flat().filter(Boolean));
    element.addEventListener("close", () => {
      element.remove();
      before?.isConnected && before.focus();
      resolve(result);
    });
    element.addEventListener("click", (event) => event.target === element && close());
    document.body.append(element);
    element.showModal();
  });
}

/** Asks with a sentence; `fields` are [name, label, hint, value, {options, isLong}]. Resolves with the values, or undefined if nothing is to
 * be done. */
export function confirm({ title, text, facts, fields = [], yes, no = "Keep as it is", danger = false }) {
  return dialog(title, (close) => {
    const inputs = fields.map(([name, label, hint, value, more]) => ({ name, label, element: control(`ask-${name}`, hint ?? "", value ?? "", more ?? {}) }));
    const done = (event) => {
      event.preventDefault();
      close(Object.fromEntries(inputs.map(({ name, element }) => [name, element.value.trim() || null])));
    };
    return h("form", { onsubmit: done, method: "dialog" },
      h("div.in", h("h2", title), text && h("p.muted", text), facts && h("dl.facts", facts.flatMap(([key, value]) => [h("dt", key), h("dd", value)])),
        inputs.map(({ name, label, element }) => h("div.field", h("label", { for: `ask-${name}` }, label), element))),
      h("footer", h("button.btn.ghost", { type: "button", onclick: () => close() }, no), h("button.btn", { class: danger ? "danger solid" : "primary", type: "submit", autofocus: true }, yes)));
  });
}

/** `options`: [value, text] of a choice; `isLong`: several lines. */
function control(id, placeholder, value, { options, isLong }) {
  if (options) return h("select.select", { id }, options.map(([one, text]) => h("option", { value: one, selected: one === value }, text)));
  return isLong ? h("textarea.area", { id, placeholder, rows: "4", spellcheck: "false", value, maxlength: "100000" }) : h("input.input", { id, placeholder, value, maxlength: "1000" });
}
