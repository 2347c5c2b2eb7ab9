/** Real servers for the tests: a worker (jobs.py), `tenure web`, and proxies that break what is between it and the tracker. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { fileURLToPath } from "node:url";
import { createInterface } from "node:readline";

const PYTHON = process.env.TENURE_TEST_PYTHON ?? "python3";
const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const ENV = { ...process.env, PYTHONPATH: [`${ROOT}/src`, process.env.PYTHONPATH].filter(Boolean).join(":"), PYTHONUNBUFFERED: "1" };

const children = new Set();
process.on("exit", () => children.forEach((child) => child.kill("SIGKILL")));
process.on("SIGTERM", () => process.exit(1)); // of the test runner, when the time is over

/** Starts it and waits for the first line that it prints, which is JSON. */
async function started(...words) {
  const child = spawn(PYTHON, words, { cwd: ROOT, env: ENV, stdio: ["pipe", "pipe", "inherit"] });
  children.add(child);
  child.on("exit", () => children.delete(child));
  const lines = createInterface({ input: child.stdout });
  const first = await Promise.race([once(lines, "line"), once(child, "exit").then(([code]) => [code])]);
  if (typeof first[0] !== "string") {
    throw new Error(`${words.join(" ")} ended with ${first[0]}`);
  }
  return { child, first: JSON.parse(first[0]) };
}

export class Worker {
  static async start() {
    const worker = new Worker();
    const { child, first } = await started(fileURLToPath(new URL("jobs.py", import.meta.url)));
    return Object.assign(worker, { child, dsn: first.dsn, tokens: first.tokens });
  }

  do(id, step) {
    this.child.stdin.write(`${JSON.stringify({ id, ...step })}\n`);
  }

  progress(id, percent, message = `at ${percent}`) {
    this.do(id, { do: "progress", percent, message });
  }

  finish(id, rows = 3) {
    this.do(id, { do: "finish", output: { rows } });
  }

  async stop() {
    const ended = once(this.child, "exit");
    this.child.kill("SIGKILL"); // it would wait for jobs that no test has finished
    await ended;
  }
}

export class Web {
  static async start(dsn, { port = 0, more = [] } = {}) {
    const { child, first } = await started("-m", "tenure", "web", "--dsn", dsn, "--port", String(port), "--json", ...more);
    return Object.assign(new Web(), { child, dsn, more, url: first.url, port: Number(new URL(first.url).port) });
  }

  /** As `kill -9` does. */
  async kill() {
    const ended = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await ended;
  }

  async restart() {
    const { child } = await Web.start(this.dsn, { port: this.port, more: this.more });
    this.child = child;
  }

  async stop() {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const ended = once(this.child, "exit");
      this.child.kill("SIGTERM");
      await ended;
    }
  }

  async call(method, path, token, body) {
    const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` };
    const response = await fetch(`${this.url}/_api${path}`, { method, headers, body: body && JSON.stringify(body) });
    return response.status === 204 ? null : response.json();
  }
}

/** Forwards bytes, until it is told to drop connections, to freeze them, or to refuse new ones. */
export class TcpProxy {
  static async start(port) {
    const proxy = Object.assign(new TcpProxy(), { pairs: new Set(), opened: 0, refusing: false });
    proxy.server = net.createServer((near) => {
      proxy.opened++;
      if (proxy.refusing) {
        near.destroy();
        return;
      }
      const far = net.connect(port, "127.0.0.1");
      const pair = { near, far };
      proxy.pairs.add(pair);
      for (const [one, other] of [[near, far], [far, near]]) {
        one.on("data", (data) => pair.frozen || other.write(data));
        one.on("error", () => {});
        one.on("close", () => {
          other.destroy();
          proxy.pairs.delete(pair);
        });
      }
    });
    proxy.server.listen(0, "127.0.0.1");
    await once(proxy.server, "listening");
    proxy.url = `http://127.0.0.1:${proxy.server.address().port}`;
    return proxy;
  }

  cut() {
    for (const { near } of this.pairs) {
      near.destroy();
    }
  }

  /** Connections stay open, and nothing arrives any more. */
  freeze() {
    for (const pair of this.pairs) {
      pair.frozen = true;
    }
  }

  async stop() {
    this.server.close();
    this.cut();
  }
}

/** As a proxy that knows no WebSockets, and perhaps holds answers back until they are complete. */
export class HttpProxy {
  static async start(port, { buffering = false } = {}) {
    const proxy = Object.assign(new HttpProxy(), { requests: [], fail: null });
    proxy.server = http.createServer((request, response) => {
      proxy.requests.push(`${request.method} ${request.url}`);
      const failure = proxy.fail?.(request);
      if (failure) {
        response.writeHead(failure.status, failure.headers).end(failure.body);
        return;
      }
      const { method, url: path, headers } = request;
      const far = http.request({ port, host: "127.0.0.1", method, path, headers }, (answer) => {
        if (proxy.lose?.(request)) {
          answer.resume();
          response.destroy(); // the request was carried out, but its answer is lost
        } else if (buffering) {
          const parts = [];
          answer.on("data", (part) => parts.push(part));
          answer.on("end", () => response.writeHead(answer.statusCode, answer.headers).end(Buffer.concat(parts)));
        } else {
          response.writeHead(answer.statusCode, answer.headers);
          answer.pipe(response);
        }
        response.on("close", () => answer.destroy());
      });
      far.on("error", () => response.destroy());
      request.pipe(far);
    });
    proxy.server.on("upgrade", (_, socket) => {
      proxy.requests.push("upgrade");
      socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    });
    proxy.server.listen(0, "127.0.0.1");
    await once(proxy.server, "listening");
    proxy.url = `http://127.0.0.1:${proxy.server.address().port}`;
    return proxy;
  }

  async stop() {
    this.server.close();
    this.server.closeAllConnections();
  }
}

/** Collects what a store shows. `until` waits for a value that fits. */
export function watch(store) {
  const seen = [];
  let wake = () => {};
  const stop = store.subscribe((value) => {
    seen.push(value);
    wake();
  });
  async function until(fits, within = 30_000) {
    const deadline = Date.now() + within;
    for (;;) {
      const found = seen.find(fits);
      if (found !== undefined) {
        return found;
      }
      const left = deadline - Date.now();
      if (left <= 0) {
        throw new Error(`not seen within ${within} ms; seen: ${JSON.stringify(seen.slice(-5))}`);
      }
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, left);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }
  return { seen, stop, until, last: () => seen.at(-1) };
}

/** Waits until a condition holds. */
export async function eventually(fits, within = 20_000) {
  const deadline = Date.now() + within;
  while (!(await fits())) {
    if (Date.now() > deadline) {
      throw new Error(`not within ${within} ms: ${fits}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
