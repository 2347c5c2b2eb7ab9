// Does in Chromium what each line of stdin asks for, and prints one line of JSON for each: {"page": "...", "do": "...", ...}
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [executablePath, profile] = process.argv.slice(2);
const browser = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage();
const errors = [];
let sockets = new Set();
page.on("pageerror", (error) => errors.push(String(error)));
page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
page.on("websocket", (socket) => {
  sockets.add(socket);
  socket.on("close", () => sockets.delete(socket));
});

const acts = {
  open: async ({ url }) => void (await page.goto(url)),
  click: async () => void (await page.getByRole("button").click()),
  wait: async ({ selector, text }) => page.locator(selector, { hasText: text }).first().innerText({ timeout: 30_000 }),
  text: async () => page.locator("body").innerText(),
  html: async () => page.locator("body").innerHTML(),
  leave: async () => void (await page.evaluate(() => globalThis.leave())),
  sockets: async () => sockets.size,
  errors: async () => errors.splice(0),
  route: async ({ block }) => void (await page.routeWebSocket(/./, (socket) => (block ? socket.close() : socket.connectToServer()))),
};

for await (const line of createInterface({ input: process.stdin })) {
  const wanted = JSON.parse(line);
  let answer;
  try {
    answer = { value: (await acts[wanted.do](wanted)) ?? null };
  } catch (error) {
    answer = { error: String(error), errors };
  }
  console.log(JSON.stringify(answer));
}
await browser.close();
