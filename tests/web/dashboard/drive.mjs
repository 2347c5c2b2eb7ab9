// Does in Chromium what each line of stdin asks for, and prints one line of JSON for each: {"do": "...", "page": "a", ...}
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const [executablePath] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, headless: true, args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"] });
const axe = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const WITHIN = 60_000;
const pages = new Map();

async function opened({ page: name = "a", width = 1440, height = 900, theme = "dark" }) {
  const known = pages.get(name);
  if (known) return known;
  // Tests call axe in the page, which the page's own policy would refuse; violations are still reported below.
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, permissions: ["clipboard-read", "clipboard-write"], reducedMotion: "reduce" });
  const page = await context.newPage();
  const entry = { context, page, errors: [], sent: [], bytes: 0 };
  await page.addInitScript(() => {
    globalThis.__violations = [];
    globalThis.__ran = [];
    document.addEventListener("securitypolicyviolation", (event) => globalThis.__violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
    for (const name of ["alert", "prompt", "confirm"]) globalThis[name] = (text) => globalThis.__ran.push(String(text));
  });
  page.on("pageerror", (error) => entry.errors.push(`${error.message} ${error.stack ?? ""}`));
  page.on("console", (message) => message.type() === "error" && entry.errors.push(message.text()));
  page.on("request", (request) => entry.sent.push([request.method(), request.url()]));
  page.on("dialog", (dialog) => { entry.errors.push(`a dialog opened: ${dialog.message()}`); dialog.dismiss(); });
  pages.set(name, entry);
  return entry;
}

const found = (page, { selector, role, name, text, nth = 0, exact = false }) => {
  const base = role ? page.getByRole(role, { name, exact }) : text ? page.locator(selector, { hasText: text }) : page.locator(selector);
  return base.nth(nth);
};

const acts = {
  open: async (given) => { const { page } = await opened(given); await page.goto(given.url); },
  go: async (given) => { const { page } = await opened(given); await page.evaluate((hash) => { location.hash = hash; }, given.hash); },
  click: async (given) => { const { page } = await opened(given); await found(page, given).click({ timeout: WITHIN, modifiers: given.modifiers }); },
  hover: async (given) => { const { page } = await opened(given); await found(page, given).hover({ timeout: WITHIN, position: given.position }); },
  fill: async (given) => { const { page } = await opened(given); await found(page, given).fill(given.value, { timeout: WITHIN }); },
  choose: async (given) => { const { page } = await opened(given); await found(page, given).selectOption(given.value, { timeout: WITHIN }); },
  press: async (given) => { const { page } = await opened(given); for (const key of given.keys) await page.keyboard.press(key); },
  type: async (given) => { const { page } = await opened(given); await page.keyboard.type(given.value); },
  see: async (given) => { const { page } = await opened(given); const one = found(page, given); await one.waitFor({ timeout: WITHIN }); return one.innerText(); },
  gone: async (given) => { const { page } = await opened(given); await found(page, given).waitFor({ state: "hidden", timeout: WITHIN }); },
  texts: async (given) => { const { page } = await opened(given); return page.locator(given.selector).allInnerTexts(); },
  count: async (given) => { const { page } = await opened(given); return page.locator(given.selector).count(); },
  run: async (given) => { const { page } = await opened(given); return page.evaluate(given.script); },
  size: async (given) => { const { page } = await opened(given); await page.setViewportSize({ width: given.width, height: given.height }); },
  theme: async (given) => { const { page } = await opened(given); await page.evaluate((theme) => { document.documentElement.dataset.theme = theme; }, given.name); },
  shot: async (given) => { const { page } = await opened(given); await page.screenshot({ path: given.path, fullPage: given.full ?? false }); },
  offline: async (given) => { const { context } = await opened(given); await context.setOffline(given.on); },
  errors: async (given) => { const entry = await opened(given); return entry.errors.splice(0); },
  sent: async (given) => { const entry = await opened(given); return entry.sent.splice(0); },
  trouble: async (given) => { const { page } = await opened(given); return page.evaluate(() => ({ violations: globalThis.__violations, ran: globalThis.__ran, hostile: globalThis.__hostile ?? null })); },
  axe: async (given) => {
    const { page } = await opened(given);
    // As a script of the debugger: the policy of the page stays in force.
    await page.evaluate(axe);
    return page.evaluate(async () => {
      const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
      return violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.slice(0, 3).map((node) => node.html.slice(0, 200) + " | " + (node.any[0]?.message ?? node.failureSummary ?? "").slice(0, 160)) }));
    });
  },
  traffic: async (given) => {
    // A cold start, measured by the browser's own counters.
    const entry = await opened(given);
    const session = await entry.context.newCDPSession(entry.page);
    await session.send("Network.enable");
    await session.send("Network.setCacheDisabled", { cacheDisabled: true });
    let bytes = 0;
    session.on("Network.loadingFinished", (event) => { bytes += event.encodedDataLength; });
    await entry.page.goto(given.url);
    await entry.page.locator(given.until).first().waitFor({ timeout: WITHIN });
    const painted = await entry.page.evaluate(() => ({ first: performance.getEntriesByName("first-contentful-paint")[0]?.startTime, now: performance.now(), raw: performance.getEntriesByType("resource").reduce((sum, one) => sum + one.decodedBodySize, 0) }));
    return { bytes, ...painted };
  },
  // Seconds that the page has spent so far, by what it did.
  spent: async (given) => {
    const entry = await opened(given);
    entry.session ??= await entry.context.newCDPSession(entry.page);
    await entry.session.send("Performance.enable");
    const { metrics } = await entry.session.send("Performance.getMetrics");
    return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
  },
  // Seconds of CPU that the processes of all open pages have used. Unlike the time that passes, it does not grow with the load of the machine.
  cpu: async () => {
    const session = await browser.newBrowserCDPSession();
    const { processInfo } = await session.send("SystemInfo.getProcessInfo");
    await session.detach();
    return processInfo.filter(({ type }) => type === "renderer").reduce((sum, { cpuTime }) => sum + cpuTime, 0);
  },
  close: async (given) => { const entry = await opened(given); pages.delete(given.page ?? "a"); await entry.context.close(); },
  close_all: async () => { const entries = [...pages.values()]; pages.clear(); for (const { context } of entries) await context.close(); },
};

for await (const line of createInterface({ input: process.stdin })) {
  const wanted = JSON.parse(line);
  let answer;
  try {
    answer = { value: (await acts[wanted.do](wanted)) ?? null };
  } catch (error) {
    answer = { error: String(error), errors: pages.get(wanted.page ?? "a")?.errors };
  }
  console.log(JSON.stringify(answer));
}
await browser.close();
