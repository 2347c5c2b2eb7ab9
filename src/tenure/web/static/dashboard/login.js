// Signing in: a token is exchanged for a cookie that scripts cannot read.
import { h, render, $ } from "./lib/dom.js";
import { post } from "./lib/api.js";
import { icon } from "./lib/ui.js";

export function show(message, done) {
  const input = h("input.input", { id: "token", type: "password", autocomplete: "off", placeholder: "tnr_…", required: true, "aria-describedby": "token-help" });
  const error = h("p.error", { role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    error.textContent = "";
    try {
      await post("/session", { token: input.value.trim() });
      done();
    } catch (problem) {
      render(error, icon("warn", 12), problem.message);
      input.setAttribute("aria-invalid", "true");
      input.select();
    }
  };
  render($("#root"), h("main.login", { id: "main" }, h("form.panel", { onsubmit: submit },
    h("div.row", h("svg.mark", { "aria-hidden": "true" }, h("use", { href: "#brand" })), h("h1.title", "Tenure")),
    message && h("p.muted", message),
    h("div.field", h("label", { for: "token" }, "Token"), input, h("div", { class: "field" }, error), h("p.help", { id: "token-help" }, "Make one with "), h("pre.code", { tabindex: "0" }, "tenure tokens create my-name --scope operate")),
    h("p.faint", "read looks, operate also cancels, retries and pauses, admin does everything."),
    h("button.btn.primary", { type: "submit" }, "Sign in"))));
  input.focus();
}
