/** The tracker against a real server: `npm test`. */

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";

import { createTenure, TenureError } from "../tenure.js";
import { eventually, HttpProxy, TcpProxy, watch, Web, Worker } from "./serving.js";

const FAST = { firstDelay: 50, longestDelay: 200, linger: 50, pollEvery: 50 };
const NEVER = "018f0000-0000-7000-8000-000000000000";

let worker;
let web;
const opened = [];
const timers = new Map(); // of the tracker, by where they were set

// What is still set at the end is a leak: a page that stays open for days would collect it.
const { setTimeout: set, clearTimeout: clear } = globalThis;
globalThis.setTimeout = (run, ...more) => {
  const timer = set((...given) => {
    timers.delete(timer);
    run(...given);
  }, ...more);
  const stack = new Error().stack;
  if (stack.includes("/tenure.js:")) timers.set(timer, stack);
  return timer;
};
globalThis.clearTimeout = (timer) => {
  timers.delete(timer);
  clear(timer);
};

before(async () => {
  worker = await Worker.start();
  web = await Web.start(worker.dsn);
});

afterEach(async () => {
  for (const one of opened.splice(0).reverse()) {
    await (one.close ?? one.stop).call(one);
  }
  await eventually(() => timers.size === 0).catch(() => assert.fail(`timers are left:\n${[...timers.values()].join("\n")}`));
});

after(async () => {
  await web?.stop();
  await worker?.stop();
});

function tenureAt(url = web.url, { token = worker.tokens.operate, timing = {}, ...more } = {}) {
  const tenure = createTenure({ url, token, timing: { ...FAST, ...timing }, ...more });
  opened.push(tenure);
  return tenure;
}

async function proxyTo(kind, ...options) {
  const proxy = await kind.start(web.port, ...options);
  opened.push(proxy);
  return proxy;
}

async function enqueued(kind = "export_users", args = { format: "csv" }) {
  return (await web.call("POST", `/jobs/${kind}/dispatch`, worker.tokens.operate, { args })).id;
}

async function trackerToken(id, cancel = false) {
  return (await web.call("POST", `/jobs/${id}/tracker`, worker.tokens.operate, { cancel })).token;
}

const states = (seen) => seen.filter(Boolean).map((job) => job.status);

describe("a job that a page starts", () => {
  test("is null before the start, then shows every state up to its result", async () => {
    const job = tenureAt().createJob("export_users");
    const { seen, until } = watch(job);
    assert.equal(job.get(), null);
    assert.equal(job.id, null);
    const id = await job.start({ format: "csv" });
    assert.equal(job.id, id);
    assert.equal(job.get().progress_percent, 0);
    await until((now) => now?.status === "running");
    worker.progress(id, 40, "forty");
    await until((now) => now?.progress_percent === 40 && now.progress_message === "forty");
    worker.finish(id, 7);
    const done = await job.finished();
    assert.deepEqual([done.status, done.over, done.failed, done.output.rows], ["completed", true, false, 7]);
    assert.equal(job.get(), done);
    assert.deepEqual([...new Set(states(seen))], ["pending", "running", "completed"]);
    assert.equal(job.connection.get().state, "ended");
  });

  test("shows the error of a failure and of a dead letter", async () => {
    const tenure = tenureAt();
    for (const [kind, step, status] of [["export_users", "fail", "failed"], ["burn", "raise", "dead_letter"]]) {
      const job = tenure.createJob(kind);
      const id = await job.start(kind === "burn" ? {} : { format: "csv" });
      worker.do(id, { do: step, reason: "no disk" });
      const done = await job.finished();
      assert.deepEqual([done.status, done.failed, done.last_error.includes("no disk")], [status, true, true]);
    }
  });

  test("is canceled, also while it runs", async () => {
    const job = tenureAt().createJob("export_users");
    assert.equal(await job.cancel(), false);
    const { until } = watch(job);
    const starting = job.start({ format: "csv" });
    const { cancel } = job; // unbound
    assert.equal(await cancel({ reason: "not needed" }), true); // waits for the start
    await starting;
    assert.equal((await until((now) => now?.over)).status, "canceled");
    assert.equal(await cancel(), false);
    const again = tenureAt().createJob("export_users");
    const running = watch(again);
    await again.start({ format: "csv" });
    await running.until((now) => now?.status === "running");
    await again.cancel();
    assert.equal(again.get().status, "canceled");
  });

  test("is refused with the fields that do not fit", async () => {
    const job = tenureAt().createJob("export_users");
    await assert.rejects(job.start({ format: "csv", colums: [] }), (error) => {
      assert.ok(error instanceof TenureError);
      assert.deepEqual([error.status, error.code], [422, "invalid-input"]);
      assert.ok(error.errors.length > 0 && error.errors[0].path.startsWith("args"));
      return true;
    });
    assert.equal(job.get(), null);
    await assert.rejects(tenureAt().createJob("no_such_kind").start({}), { status: 404, code: "unknown-kind" });
    await assert.rejects(tenureAt(web.url, { token: worker.tokens.read }).createJob("burn").start(), { status: 403 });
  });

  test("is replaced by the next start", async () => {
    const job = tenureAt().createJob("export_users");
    const { seen, until } = watch(job);
    const first = await job.start({ format: "csv" });
    const second = await job.start({ format: "json" });
    assert.notEqual(first, second);
    worker.finish(second);
    await until((now) => now?.over);
    worker.finish(first);
    assert.ok(seen.slice(seen.findIndex((now) => now?.id === second)).every((now) => now.id === second));
    const both = await Promise.all([job.start({ format: "a" }), job.start({ format: "b" })]);
    assert.equal(job.id, both[1]); // the later call counts, in whichever order they are answered
    both.forEach((id) => worker.finish(id));
  });

  test("takes options, and follows the job that has the key", async () => {
    const tenure = tenureAt();
    const one = tenure.createJob("export_users", { key: "only-one", queue: "later", delay: "1h" });
    const other = tenure.createJob("export_users", { key: "only-one" });
    const id = await one.start({ format: "csv" }, { maxAttempts: 7, runAt: undefined });
    assert.equal(await other.start({ format: "csv" }), id);
    assert.deepEqual([one.get().status, other.get().max_attempts, other.get().queue], ["scheduled", 7, "later"]);
    await one.cancel();
  });

  test("is enqueued once, although answers are lost", async () => {
    const proxy = await proxyTo(HttpProxy);
    let lost = 0;
    proxy.lose = ({ method, url }) => method === "POST" && url.endsWith("/dispatch") && lost++ < 2;
    const id = await tenureAt(proxy.url).createJob("export_users").start({ format: "once" });
    assert.equal(proxy.requests.filter((line) => line.endsWith("/dispatch")).length, 3);
    const { jobs } = await web.call("GET", `/jobs?kind=export_users&input=${encodeURIComponent('{"format":"once"}')}`, worker.tokens.read);
    assert.deepEqual(jobs.map((job) => job.id), [id]);
    worker.finish(id);
  });

  test("is retried while the server is too busy, and not when it refuses", async () => {
    const proxy = await proxyTo(HttpProxy);
    let busy = 3;
    proxy.fail = ({ url }) => url.endsWith("/dispatch") && busy-- > 0 && { status: 503, body: "no JSON" };
    const id = await tenureAt(proxy.url).createJob("export_users").start({ format: "csv" });
    worker.finish(id);
    proxy.fail = () => ({ status: 500, body: "" });
    await assert.rejects(tenureAt(proxy.url).createJob("burn").start(), { status: 500 });
    proxy.fail = () => ({ status: 503, body: "" });
    await assert.rejects(tenureAt(proxy.url).createJob("burn").start(), { status: 503 });
  });

  test("can be started by the page's own back end, with a token for that job alone", async () => {
    const started = [];
    const tenure = tenureAt(web.url, {
      token: undefined,
      async dispatch(kind, args) {
        started.push([kind, args]);
        const id = await enqueued(kind, args);
        return { id, token: await trackerToken(id, true) };
      },
    });
    const job = tenure.createJob("export_users");
    const { until } = watch(job);
    await job.start({ format: "csv" });
    assert.equal("input" in (await until((now) => now?.status === "running")), false);
    assert.equal(await job.cancel(), true);
    assert.equal(job.get().status, "canceled");
    assert.deepEqual(started, [["export_users", { format: "csv" }]]);
  });
});

describe("a job that exists", () => {
  test("is followed with a token for it, and no other one is", async () => {
    const [mine, foreign] = [await enqueued(), await enqueued()];
    const token = await trackerToken(mine);
    const tenure = tenureAt(web.url, { token: undefined });
    const job = tenure.track(mine.toUpperCase(), { token });
    worker.finish(mine);
    assert.equal((await job.finished()).status, "completed");
    const stolen = tenure.track(foreign, { token });
    await assert.rejects(stolen.finished(), { status: 403 });
    assert.equal(stolen.get(), null);
    await assert.rejects(tenure.track(mine, { token }).cancel(), { status: 403 });
    worker.finish(foreign);
  });

  for (const [name, options] of Object.entries({ websocket: {}, events: { WebSocket: null }, polling: { WebSocket: null, events: false } })) {
    test(`that never was is an error, and others are not disturbed: ${name}`, async () => {
      const tenure = tenureAt(web.url, options);
      const id = await enqueued();
      const real = watch(tenure.track(id));
      const never = tenure.track(NEVER);
      const { last } = watch(never.connection);
      watch(never);
      await assert.rejects(never.finished(), { code: "job-not-found", status: 404 });
      assert.deepEqual([last().state, last().error.code], ["failed", "job-not-found"]);
      worker.finish(id);
      await real.until((now) => now?.over);
    });
  }

  test("that is over is shown as it ended", async () => {
    const id = await enqueued();
    worker.finish(id);
    await tenureAt().track(id).finished();
    for (const options of [{}, { WebSocket: null }, { WebSocket: null, events: false }]) {
      assert.equal((await tenureAt(web.url, options).track(id).finished()).status, "completed");
    }
  });

  test("has its whole output at the end, also if it is too large to be sent with each change", async () => {
    const note = "x".repeat(100_000);
    for (const options of [{}, { WebSocket: null }, { WebSocket: null, events: false }]) {
      const id = await enqueued();
      const job = tenureAt(web.url, { ...options, token: await trackerToken(id) }).track(id);
      await watch(job).until((now) => now?.status === "running");
      worker.do(id, { do: "finish", output: { rows: 1, note } });
      assert.equal((await job.finished()).output.note, note);
      assert.equal(job.get().omitted, false);
    }
  });

  test("is found and canceled by id", async () => {
    const tenure = tenureAt();
    const id = await enqueued();
    assert.equal((await tenure.get(id)).kind, "export_users");
    assert.equal(await tenure.cancel(id, { reason: "test" }), true);
    assert.equal((await tenure.get(id)).status, "canceled");
    assert.throws(() => tenure.track("1"), TypeError);
    assert.throws(() => tenure.track("../jobs"), TypeError);
  });
});

describe("connections", () => {
  test("are shared by all trackers of a token, and closed when the last has left", async () => {
    const proxy = await proxyTo(TcpProxy);
    const tenure = tenureAt(proxy.url);
    const ids = await Promise.all(Array.from({ length: 20 }, () => enqueued()));
    const watched = ids.map((id) => watch(tenure.track(id)));
    await Promise.all(watched.map(({ until }) => until(Boolean)));
    assert.equal(proxy.opened, 1);
    worker.progress(ids[7], 70);
    await watched[7].until((now) => now?.progress_percent === 70);
    watched.slice(0, 10).forEach(({ stop }) => stop());
    ids.slice(10).forEach((id) => worker.finish(id));
    await Promise.all(watched.slice(10).map(({ until }) => until((now) => now?.over)));
    await eventually(() => proxy.pairs.size === 0);
    assert.equal(proxy.opened, 1);
    ids.slice(0, 10).forEach((id) => worker.finish(id));
  });

  test("are not opened before anyone looks, and not for long after", async () => {
    const proxy = await proxyTo(TcpProxy);
    const id = await enqueued();
    const job = tenureAt(proxy.url).track(id);
    assert.equal(proxy.opened, 0);
    for (let round = 1; round <= 2; round++) {
      const { stop } = watch(job);
      const connection = watch(job.connection);
      await connection.until(({ state }) => state === "live");
      connection.stop();
      stop();
      stop();
      await eventually(() => proxy.pairs.size === 0);
      assert.equal(proxy.opened, round);
      assert.equal(job.connection.get().state, "idle");
    }
    worker.finish(id);
  });

  test("end with cleanup, which can be passed on unbound, and with an AbortSignal", async () => {
    const proxy = await proxyTo(TcpProxy);
    const tenure = tenureAt(proxy.url);
    const id = await enqueued();
    const first = tenure.track(id);
    const seen = watch(first);
    await seen.until(Boolean);
    const finished = assert.rejects(first.finished(), { code: "aborted" });
    const { cleanup } = first;
    cleanup();
    await finished;
    await eventually(() => proxy.pairs.size === 0);
    const controller = new AbortController();
    const second = tenure.track(id, { signal: controller.signal });
    await watch(second).until(Boolean);
    const aborted = assert.rejects(second.finished(), { code: "aborted" });
    controller.abort();
    await aborted;
    await eventually(() => proxy.pairs.size === 0);
    const count = seen.seen.length;
    worker.finish(id);
    await tenure.track(id).finished();
    assert.equal(seen.seen.length, count);
    await assert.rejects(tenure.track(id, { signal: AbortSignal.abort() }).finished(), { code: "aborted" });
    const waiting = new AbortController();
    const stillRunning = await enqueued();
    const wait = assert.rejects(tenure.track(stillRunning).finished({ signal: waiting.signal }), { code: "aborted" });
    waiting.abort();
    await wait;
    worker.finish(stillRunning);
    await assert.rejects(tenure.createJob("burn").start({}, { signal: AbortSignal.abort() }), { code: "aborted" });
  });

  test("that are closed reject what waits", async () => {
    const tenure = tenureAt();
    const id = await enqueued();
    const job = tenure.track(id);
    const rejected = assert.rejects(job.finished(), { code: "aborted" });
    await watch(job).until(Boolean);
    tenure.close();
    await rejected;
    worker.finish(id);
    assert.equal((await tenure.track(id).finished()).status, "completed"); // usable again
  });

  test("survive an error in a subscriber", async (context) => {
    const printed = context.mock.method(console, "error", () => {});
    const id = await enqueued();
    const job = tenureAt().track(id);
    job.subscribe((now) => {
      if (now) throw new Error("of the page");
    });
    const { until } = watch(job);
    await until(Boolean);
    worker.finish(id);
    await until((now) => now?.over);
    assert.ok(printed.mock.callCount() > 0);
  });

  test("that are cut are opened again, and no state is missed or repeated", async () => {
    const proxy = await proxyTo(TcpProxy);
    const tenure = tenureAt(proxy.url);
    const id = await enqueued();
    const job = tenure.track(id);
    const { seen, until } = watch(job);
    const connection = watch(job.connection);
    await until((now) => now?.status === "running");
    for (let percent = 10; percent <= 50; percent += 10) {
      const live = proxy.opened;
      proxy.cut();
      worker.progress(id, percent); // while it is away
      await until((now) => now?.progress_percent === percent);
      assert.ok(proxy.opened > live);
    }
    assert.ok(connection.seen.some(({ state }) => state === "waiting"));
    const shown = seen.map((now) => JSON.stringify(now));
    assert.equal(new Set(shown).size, shown.length);
    proxy.refusing = true;
    proxy.cut();
    worker.finish(id);
    await eventually(async () => (await web.call("GET", `/jobs/${id}`, worker.tokens.read)).over);
    proxy.refusing = false;
    assert.equal((await until((now) => now?.over)).status, "completed");
  });

  test("that are silent are noticed", async () => {
    const proxy = await proxyTo(TcpProxy);
    const tenure = tenureAt(proxy.url, { timing: { pingEvery: 200, pongWithin: 200 } });
    const id = await enqueued();
    const { until } = watch(tenure.track(id));
    await until((now) => now?.status === "running");
    proxy.freeze();
    worker.finish(id);
    await until((now) => now?.over);
    assert.ok(proxy.opened >= 2);
  });

  test("stay open while nothing happens", async () => {
    const proxy = await proxyTo(TcpProxy);
    const pings = [];
    class Counting extends WebSocket {
      send(text) {
        pings.push(JSON.parse(text).type);
        super.send(text);
      }
    }
    const tenure = tenureAt(proxy.url, { WebSocket: Counting, timing: { pingEvery: 50, pongWithin: 5000 } });
    const id = await enqueued();
    await watch(tenure.track(id)).until((now) => now?.status === "running");
    await eventually(() => pings.filter((type) => type === "ping").length >= 5);
    assert.equal(proxy.opened, 1);
    worker.finish(id);
  });

  test("are resumed when the web server was killed, with many viewers", async () => {
    const ids = await Promise.all(Array.from({ length: 10 }, () => enqueued()));
    // One client for each viewer, as in separate pages.
    const viewers = Array.from({ length: 30 }, (_, index) => watch(tenureAt().track(ids[index % ids.length])));
    const streaming = ids.slice(0, 2).map((id) => watch(tenureAt(web.url, { WebSocket: null }).track(id)));
    const polling = ids.slice(0, 2).map((id) => watch(tenureAt(web.url, { WebSocket: null, events: false }).track(id)));
    const all = [...viewers, ...streaming, ...polling];
    await Promise.all(all.map(({ until }) => until(Boolean)));
    await web.kill();
    ids.forEach((id, index) => worker.finish(id, index));
    await web.restart();
    const ended = await Promise.all(all.map(({ until }) => until((now) => now?.over)));
    assert.ok(ended.every((job) => job.status === "completed" && job.output.rows === ids.indexOf(job.id)));
  });

  test("are tried less and less often while the server is away", async () => {
    const proxy = await proxyTo(TcpProxy);
    const tenure = tenureAt(proxy.url, { timing: { firstDelay: 100, longestDelay: 60_000 } });
    const id = await enqueued();
    const job = tenure.track(id);
    await watch(job).until(Boolean);
    proxy.refusing = true;
    const before_ = proxy.opened;
    proxy.cut();
    const connection = watch(job.connection);
    await connection.until(({ state, error }) => state === "waiting" && error.code === "network");
    await new Promise((resolve) => setTimeout(resolve, 2000)); // what is measured is a time
    assert.ok(proxy.opened - before_ < 25, `${proxy.opened - before_} attempts`);
    tenure.close();
    worker.finish(id);
  });
});

describe("where a WebSocket is not possible", () => {
  test("events are streamed", async () => {
    const proxy = await proxyTo(HttpProxy);
    const id = await enqueued();
    const job = tenureAt(proxy.url).track(id);
    const { until } = watch(job);
    await until((now) => now?.status === "running");
    await watch(job.connection).until(({ state }) => state === "live");
    worker.progress(id, 30);
    await until((now) => now?.progress_percent === 30);
    worker.finish(id);
    await until((now) => now?.over);
    assert.ok(proxy.requests.includes("upgrade"));
    assert.equal(proxy.requests.filter((line) => line === `GET /_api/jobs/${id}/events`).length, 1);
    assert.ok(!proxy.requests.includes(`GET /_api/jobs/${id}`));
  });

  test("jobs are polled if answers are held back, or if there are many", async () => {
    const proxy = await proxyTo(HttpProxy, { buffering: true });
    const ids = await Promise.all(Array.from({ length: 5 }, () => enqueued()));
    for (const some of [ids.slice(0, 1), ids.slice(1)]) {
      const tenure = tenureAt(proxy.url, { timing: { readyWithin: 300 } });
      const watched = some.map((id) => watch(tenure.track(id)));
      await Promise.all(watched.map(({ until }) => until((now) => now?.status === "running")));
      assert.equal(tenure.track(some[0]).connection.get().state, "idle");
      some.forEach((id) => worker.finish(id));
      await Promise.all(watched.map(({ until }) => until((now) => now?.over)));
    }
    assert.ok(proxy.requests.includes(`GET /_api/jobs/${ids[4]}`));
    assert.ok(!proxy.requests.includes(`GET /_api/jobs/${ids[4]}/events`));
  });

  test("a job that is added or removed does not disturb the others", async () => {
    for (const events of [true, false]) {
      const tenure = tenureAt(web.url, { WebSocket: null, events });
      const [first, second] = [await enqueued(), await enqueued()];
      const one = watch(tenure.track(first));
      await one.until((now) => now?.status === "running");
      const two = watch(tenure.track(second));
      await two.until((now) => now?.status === "running");
      two.stop();
      worker.finish(first);
      await one.until((now) => now?.over);
      worker.finish(second);
    }
  });

  test("it is tried again later", async () => {
    const proxy = await proxyTo(HttpProxy);
    const id = await enqueued();
    const tenure = tenureAt(proxy.url, { events: false, timing: { upgradeAfter: 100 } });
    watch(tenure.track(id));
    await eventually(() => proxy.requests.filter((line) => line === "upgrade").length >= 3);
    tenure.close();
    worker.finish(id);
  });
});

describe("tokens", () => {
  test("that are refused end the tracker, unless there is a new one", async () => {
    const id = await enqueued();
    for (const options of [{}, { WebSocket: null }, { WebSocket: null, events: false }]) {
      await assert.rejects(tenureAt(web.url, { ...options, token: "tnt_wrong" }).track(id).finished(), { status: 401 });
      let asked = 0;
      const token = async () => (++asked === 1 ? "tnt_expired" : worker.tokens.read);
      const tenure = tenureAt(web.url, { ...options, token });
      const { until } = watch(tenure.track(id));
      await until(Boolean);
      assert.equal((await tenure.get(id)).id, id);
      assert.equal(asked, 2);
      tenure.close();
    }
    let asked = 0;
    const wrong = tenureAt(web.url, { token: () => `tnt_wrong${++asked}` });
    await assert.rejects(wrong.track(id).finished(), { status: 401 });
    assert.ok(asked > 1 && asked < 10);
    worker.finish(id);
  });

  test("that cannot be had now are asked for again", async () => {
    const id = await enqueued();
    let asked = 0;
    const token = () => {
      if (++asked < 4) throw new Error("the back end is away");
      return worker.tokens.read;
    };
    const job = tenureAt(web.url, { token }).track(id);
    const connection = watch(job.connection);
    await watch(job).until(Boolean);
    assert.ok(connection.seen.some(({ error }) => error?.code === "no-token"));
    worker.finish(id);
  });

  test("never appear in an address", async () => {
    const proxy = await proxyTo(HttpProxy);
    const id = await enqueued();
    worker.finish(id);
    await tenureAt(proxy.url).track(id).finished();
    assert.ok(proxy.requests.length > 0 && proxy.requests.every((line) => !/tn[rt]_/.test(line)));
  });
});

test("the module is served, and its own address is the default", async () => {
  const response = await fetch(`${web.url}/static/tenure.js`);
  assert.equal(response.headers.get("content-type"), "text/javascript; charset=utf-8");
  assert.ok((await response.text()).includes("export function createTenure"));
  const again = await fetch(`${web.url}/static/tenure.js`, { headers: { "If-None-Match": response.headers.get("etag") } });
  assert.equal(again.status, 304);
});

test("addresses may end with a slash or with /_api, and must be complete where there is no page", () => {
  for (const url of ["http://h:1/x", "http://h:1/x/", "http://h:1/x/_api", "http://h:1/x/_api/?q#f"]) {
    assert.equal(createTenure({ url }).url, "http://h:1/x");
  }
  assert.throws(() => createTenure({ url: "/x" }).url, /must be the address/);
  assert.throws(() => createTenure().url, /must be the address/);
  createTenure().createJob("export_users"); // as a page that is rendered on a server does
});
