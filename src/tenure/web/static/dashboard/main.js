// Starts the dashboard: who is it, what is open.
import { h, render, $ } from "./lib/dom.js";
import { get, signedIn, whenUnauthorized } from "./lib/api.js";
import * as data from "./lib/data.js";
import { callout } from "./lib/ui.js";

async function begin() {
  const loading = import("./shell.js"); // while the server says who this is
  let identity;
  try {
    identity = await get("/session");
  } catch (error) {
    if (error.status === 401) return login();
    render($("#root"), h("main.page", callout("bad", "The dashboard cannot start.", error.message, h("button.btn", { onclick: () => location.reload() }, "Try again"))));
    return;
  }
  signedIn(identity);
  data.session.identity = identity;
  data.start();
  await (await loading).open();
}

async function login(message) {
  const { show } = await import("./login.js");
  show(message, () => location.reload());
}

let isLeaving = false;
whenUnauthorized(() => {
  if (isLeaving) return;
  isLeaving = true;
  data.pause(true);
  login("Your session has ended. Sign in again; you stay on this page.");
});

begin();
