/**
 * Follows background jobs of Tenure from a page: starts them, shows their progress, cancels them.
 *
 *     import { createTenure } from "/static/tenure.js";
 *
 *     const tenure = createTenure({ url: "https://jobs.example", token: "tnr_..." });
 *     const job = tenure.createJob("export_users");
 *     job.subscribe((now) => console.log(now?.status, now?.progress_percent));
 *     await job.start({ format: "csv" });
 *
 * A tracker is connected while it has subscribers and its job is not over, so nothing stays open after the last one has left.
 * All trackers with the same token share one connection: a WebSocket; where that is not possible, Server-Sent Events; where those
 * are not possible either, polling. The server sends states, not differences, and after a reconnect the newest state. A page can skip
 * states while it is away, but it always shows the last one.
 */

const TIMING = {
  firstDelay: 1000, // milliseconds; doubled after each failure, then multiplied by a random factor
  longestDelay: 30_000,
  readyWithin: 10_000, // for a connection to be accepted
  closeWithin: 100, // of an error
  pingEvery: 25_000, // while nothing is received
  pongWithin: 10_000,
  silence: 45_000, // of Server-Sent Events; the server sends a comment every 15 s
  pollEvery: 2000,
  steadyAfter: 5000, // that a connection must last, for the next delay to be short again
  upgradeAfter: 60_000, // of polling, until a better connection is tried again
  requestWithin: 30_000,
  linger: 1000, // until a connection without trackers is closed
};

const REQUEST_ATTEMPTS = 5;
const TOKEN_ATTEMPTS = 3; // refusals in a row, each of a new token
const FAILURES_TO_FALL_BACK = 3; // of a kind of connection that has worked before
const MOST_STREAMS = 3; // browsers open six connections to a server with HTTP/1.1; others need some
const MOST_TOPICS = 500; // in a message, which may have 64 KiB
const TEMPORARY = new Set([408, 425, 429, 502, 503, 504]);
const UNAUTHORIZED = 4401;
const FORBIDDEN = 4403;
const TOO_MANY = 4429;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** An answer of the server that is not a success, a lost connection, or a job that does not exist. */
export class TenureError extends Error {
  /** @param {string} message */
  constructor(message, { status = 0, code = "error", errors = [], retryAfter = 0, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "TenureError";
    this.status = status;
    this.code = code;
    this.errors = errors;
    this.retryAfter = retryAfter;
  }
}

/** Connects to the web app of Tenure. Nothing is opened before the first tracker has a subscriber. */
export function createTenure(options = {}) {
  const timing = { ...TIMING, ...options.timing };
  const api = new Api(options, timing);
  const shared = new Credentials(options.token);
  const channels = new Map(); // by token

  function channelOf(credentials) {
    const token = credentials.given;
    let channel = channels.get(token);
    if (channel === undefined) {
      channel = new Channel(api, credentials, options, timing, () => channels.delete(token));
      channels.set(token, channel);
    }
    return channel;
  }

  const credentialsOf = (token) => (token === undefined ? shared : new Credentials(token));

  async function dispatch(kind, args = {}, { signal, ...given } = {}) {
    if (options.dispatch !== undefined) {
      return options.dispatch(kind, args, { ...given, signal });
    }
    const body = { args, ...wireOptions(given) };
    // The same key for every repetition: the job is made once, even if an answer is lost.
    const headers = { "Idempotency-Key": randomKey() };
    return api.request("POST", `/jobs/${encodePath(kind)}/dispatch`, { credentials: shared, body, headers, signal });
  }

  const core = { api, channelOf, credentialsOf, dispatch, shared };
  return Object.freeze({
    get url() {
      return api.base;
    },
    /** Follows a job that exists. */
    track: (id, { token, signal } = {}) => publicTracker(new Tracker(core, { id: checkedId(id), token, signal })),
    /** A tracker for a job that `start(args)` enqueues. */
    createJob: (kind, { signal, ...defaults } = {}) => startableTracker(new Tracker(core, { kind, defaults, signal })),
    dispatch,
    get: (id, { token, signal } = {}) => api.job(checkedId(id), credentialsOf(token), signal),
    cancel: (id, { token, reason, signal } = {}) => api.cancel(checkedId(id), credentialsOf(token), reason, signal),
    /** Closes every connection. Trackers keep their last state. */
    close() {
      for (const channel of [...channels.values()]) {
        channel.close(new TenureError("the connection was closed", { code: "aborted" }));
      }
    },
  });
}

// Trackers

class Tracker {
  #core;
  #credentials;
  #id = null;
  #kind;
  #defaults;
  #job = null;
  #text = "null"; // of #job, to notice what has not changed
  #connection = IDLE;
  #subscribers = new Set();
  #connectionSubscribers = new Set();
  #waiting = new Set(); // of finished()
  #unfollow = null;
  #error = null; // why it cannot be followed; forgotten when the last subscriber leaves
  #starting = null;
  #run = 0; // counts starts: the result of an earlier one is ignored
  #signal;

  constructor(core, { id = null, kind = null, defaults = {}, token, signal }) {
    this.#core = core;
    this.#credentials = core.credentialsOf(token);
    this.#id = id;
    this.#kind = kind;
    this.#defaults = defaults;
    this.#signal = signal;
    if (signal?.aborted) {
      this.#connection = failed(abortError(signal));
    } else {
      signal?.addEventListener("abort", this.cleanup, { once: true });
    }
  }

  // All are closures, so that they can be passed on without their object, as in `onDestroy(job.cleanup)`.

  id = () => this.#id;
  get = () => this.#job;

  subscribe = (run) => subscribeTo(this.#subscribers, run, this.get, this.#update);

  connection = Object.freeze({
    get: () => this.#connection,
    /** Does not keep the connection open by itself. */
    subscribe: (run) => subscribeTo(this.#connectionSubscribers, run, () => this.#connection, () => {}),
  });

  start = async (args, options = {}) => {
    const run = ++this.#run;
    this.#leave();
    this.#id = null;
    this.#error = null;
    this.#credentials = this.#core.shared;
    this.#setConnection(IDLE);
    this.#setJob(null);
    const starting = this.#core.dispatch(this.#kind, args, { ...this.#defaults, ...options });
    this.#starting = starting;
    let made;
    try {
      made = await starting;
    } finally {
      if (this.#starting === starting) {
        this.#starting = null;
      }
    }
    const id = checkedId(made?.id);
    if (run === this.#run) {
      this.#id = id;
      this.#credentials = this.#core.credentialsOf(made.token ?? undefined);
      if (made.job) {
        this.#setJob(made.job);
      }
      this.#update();
    }
    return id;
  };

  cancel = async ({ reason, signal } = {}) => {
    await this.#starting?.catch(() => {});
    if (this.#id === null) {
      return false;
    }
    const [run, id, credentials] = [this.#run, this.#id, this.#credentials];
    const canceled = await this.#core.api.cancel(id, credentials, reason, signal);
    const job = await this.#core.api.job(id, credentials, signal).catch(() => null);
    if (job !== null && run === this.#run) {
      this.#received(job);
    }
    return canceled;
  };

  finished = ({ signal } = {}) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(abortError(signal));
        return;
      }
      const aborted = () => waiting.reject(abortError(signal));
      const ended = (settle) => (value) => {
        signal?.removeEventListener("abort", aborted);
        this.#waiting.delete(waiting);
        settle(value);
        this.#update();
      };
      const waiting = { resolve: ended(resolve), reject: ended(reject) };
      signal?.addEventListener("abort", aborted, { once: true });
      this.#waiting.add(waiting);
      if (this.#job?.over) {
        waiting.resolve(this.#job);
      } else if (this.#signal?.aborted || this.#error !== null) {
        waiting.reject(this.#error ?? abortError(this.#signal));
      } else {
        this.#update();
      }
    });

  /** Stops following and drops all subscribers. The job itself continues, and so does a start that is on its way. */
  cleanup = () => {
    this.#signal?.removeEventListener("abort", this.cleanup);
    this.#subscribers.clear();
    const error = this.#signal?.aborted ? abortError(this.#signal) : new TenureError("the tracker was cleaned up", { code: "aborted" });
    for (const waiting of [...this.#waiting]) {
      waiting.reject(error);
    }
    this.#update();
    this.#connectionSubscribers.clear();
  };

  /** Connects or disconnects: followed is a job that is not over, while anyone looks. */
  #update = () => {
    const looked = this.#subscribers.size > 0 || this.#waiting.size > 0;
    if (!looked) {
      this.#error = null;
    }
    const wanted = looked && this.#id !== null && this.#error === null && !this.#job?.over && !this.#signal?.aborted;
    if (wanted && this.#unfollow === null) {
      this.#unfollow = this.#core.channelOf(this.#credentials).follow(this.#id, {
        job: this.#received,
        connection: (state) => this.#setConnection(state),
        failed: this.#failed,
      });
    } else if (!wanted) {
      this.#leave();
    }
  };

  #leave() {
    const unfollow = this.#unfollow;
    if (unfollow !== null) {
      this.#unfollow = null;
      unfollow();
      this.#setConnection(this.#job?.over ? ENDED : IDLE);
    }
  }

  #received = (job) => {
    this.#setJob(job);
    if (job.over) {
      this.#leave();
      this.#setConnection(ENDED);
      for (const waiting of [...this.#waiting]) {
        waiting.resolve(job);
      }
    }
  };

  #failed = (error) => {
    this.#error = error;
    this.#unfollow?.();
    this.#unfollow = null;
    this.#setConnection(failed(error));
    for (const waiting of [...this.#waiting]) {
      waiting.reject(error);
    }
  };

  #setJob(job) {
    const text = JSON.stringify(job);
    if (text !== this.#text) {
      this.#text = text;
      this.#job = job;
      tell(this.#subscribers, job);
    }
  }

  #setConnection(connection) {
    if (connection.state !== this.#connection.state || connection.error !== this.#connection.error) {
      this.#connection = connection;
      tell(this.#connectionSubscribers, connection);
    }
  }
}

function publicTracker(tracker, more = {}) {
  const { get, subscribe, connection, cancel, finished, cleanup } = tracker;
  return Object.freeze({
    get id() {
      return tracker.id();
    },
    get, subscribe, connection, cancel, finished, cleanup, ...more,
    [Symbol.for("tenure.tracker")]: true,
  });
}

// Not a spread of publicTracker(): that would read `id` once.
const startableTracker = (tracker) => publicTracker(tracker, { start: tracker.start });

function subscribeTo(subscribers, run, current, changed) {
  const one = { run }; // the same function may subscribe twice
  subscribers.add(one);
  call(run, current());
  changed();
  return () => {
    if (subscribers.delete(one)) {
      changed();
    }
  };
}

function tell(subscribers, value) {
  for (const one of [...subscribers]) {
    if (subscribers.has(one)) {
      call(one.run, value);
    }
  }
}

/** An error in a subscriber is its own: it must not end the connection of others. */
function call(run, value) {
  try {
    run(value);
  } catch (error) {
    (globalThis.reportError ?? console.error)(error);
  }
}

// Connections

const IDLE = Object.freeze({ state: "idle", error: null });
const CONNECTING = Object.freeze({ state: "connecting", error: null });
const LIVE = Object.freeze({ state: "live", error: null });
const POLLING = Object.freeze({ state: "polling", error: null });
const ENDED = Object.freeze({ state: "ended", error: null });
const offline = (error) => Object.freeze({ state: "waiting", error });
const failed = (error) => Object.freeze({ state: "failed", error });

/** One token, and what is followed with it. */
class Channel {
  #api;
  #credentials;
  #WebSocket;
  #timing;
  #closed;
  #followed = new Map(); // by topic
  #transports;
  #state = CONNECTING;
  #stop = null; // ends the loop
  #changed = null; // called when something is followed or no longer followed
  #lingering = null;

  constructor(api, credentials, options, timing, closed) {
    this.#api = api;
    this.#credentials = credentials;
    this.#timing = timing;
    this.#closed = closed;
    this.#WebSocket = options.WebSocket === undefined ? globalThis.WebSocket : options.WebSocket;
    this.#transports = [
      ...(this.#WebSocket ? [(signal, outcome) => this.#overWebSocket(signal, outcome)] : []),
      ...(options.events === false ? [] : [(signal, outcome) => this.#overEvents(signal, outcome)]),
      (signal, outcome) => this.#byPolling(signal, outcome),
    ];
  }

  /** `listener`: `job(job)`, `connection(state)`, `failed(error)`. Returns a function that ends it. */
  follow(id, listener) {
    const topic = `job:${id}`;
    let followed = this.#followed.get(topic);
    if (followed === undefined) {
      followed = { id, topic, version: null, job: null, reading: false, listeners: new Set() };
      this.#followed.set(topic, followed);
      this.#changed?.({ added: followed });
    } else if (followed.job !== null) {
      const job = followed.job;
      queueMicrotask(() => followed.listeners.has(listener) && listener.job(job));
    }
    followed.listeners.add(listener);
    clearTimeout(this.#lingering);
    if (this.#stop === null) {
      this.#state = CONNECTING;
      this.#stop = new AbortController();
      void this.#keepConnected(this.#stop.signal);
    }
    listener.connection(this.#state);
    return () => {
      if (followed.listeners.delete(listener) && followed.listeners.size === 0) {
        this.#drop(followed);
      }
    };
  }

  /** `error`: for what is still followed. */
  close(error) {
    this.#stop?.abort();
    this.#stop = null;
    this.#closed();
    this.#failAll(error);
    clearTimeout(this.#lingering);
  }

  #drop(followed) {
    if (this.#followed.get(followed.topic) !== followed) {
      return;
    }
    this.#followed.delete(followed.topic);
    this.#changed?.({ dropped: followed });
    if (this.#followed.size === 0 && this.#stop !== null) {
      clearTimeout(this.#lingering);
      this.#lingering = setTimeout(() => this.#followed.size === 0 && this.close(), this.#timing.linger);
      this.#lingering.unref?.(); // of Node: the program may end
    }
  }

  #deliver(followed, job, version, { whole = false } = {}) {
    if (job.over && job.omitted && !whole) {
      void this.#deliverWhole(followed, job, version);
      return;
    }
    followed.job = job;
    followed.version = version;
    for (const listener of [...followed.listeners]) {
      listener.job(job);
    }
    if (job.over) {
      this.#drop(followed);
    }
  }

  /** Live updates leave large outputs out; the result of a job is read once. */
  async #deliverWhole(followed, job, version) {
    if (followed.reading) {
      return;
    }
    followed.reading = true;
    const whole = await this.#api.job(followed.id, this.#credentials, this.#stop?.signal).catch(() => job);
    followed.reading = false;
    if (this.#followed.get(followed.topic) === followed) {
      this.#deliver(followed, whole, version, { whole: true });
    }
  }

  #fail(followed, error) {
    this.#drop(followed);
    for (const listener of [...followed.listeners]) {
      listener.failed(error);
    }
  }

  #setState(state) {
    this.#state = state;
    for (const followed of this.#followed.values()) {
      for (const listener of [...followed.listeners]) {
        listener.connection(state);
      }
    }
  }

  // The loop

  async #keepConnected(signal) {
    const worked = new Set(); // kinds of connection
    let level = 0; // 0 is the best
    let failures = 0;
    let refusals = 0;
    let lowered = 0; // when the level was last 0
    while (!signal.aborted) {
      if (this.#followed.size === 0) {
        await this.#pause(this.#timing.longestDelay, signal, { untilChanged: true }); // lingers
        continue;
      }
      if (level > 0 && Date.now() - lowered > this.#timing.upgradeAfter) {
        level = 0;
      }
      if (level === 0) {
        lowered = Date.now();
      }
      const begun = Date.now();
      const outcome = await this.#attempt(level, signal);
      if (signal.aborted) {
        return;
      }
      const { error } = outcome;
      if (outcome.worked) {
        worked.add(level);
      }
      if (outcome.worked && Date.now() - begun > this.#timing.steadyAfter) {
        failures = refusals = 0;
      }
      if (outcome.again) {
        continue;
      }
      if (error?.status === 401) {
        refusals++;
        if (!this.#credentials.renewable || refusals > TOKEN_ATTEMPTS) {
          this.#failAll(error);
          continue;
        }
        this.#credentials.renew();
        if (refusals === 1) {
          continue; // it has expired: at once with a new one
        }
      } else if (error !== null && this.#isFinal(error)) {
        this.#failAll(error);
        continue;
      } else {
        failures++;
        const refused = !outcome.worked && error?.code !== "no-token"; // by what is between us and the server
        if (refused && level < this.#transports.length - 1 && (!worked.has(level) || failures >= FAILURES_TO_FALL_BACK)) {
          level++;
          continue;
        }
        level = outcome.worked ? level : 0;
      }
      const most = Math.min(this.#timing.longestDelay, this.#timing.firstDelay * 2 ** Math.min(failures + refusals - 1, 10));
      this.#setState(offline(error));
      await this.#pause(Math.max(Math.random() * most, (error?.retryAfter ?? 0) * 1000), signal);
      this.#setState(CONNECTING);
    }
  }

  /** `worked`: the server has answered. `again`: nothing is wrong, continue immediately. */
  async #attempt(level, signal) {
    const outcome = { worked: false, again: false, error: null };
    try {
      await this.#transports[level](signal, outcome);
    } catch (error) {
      outcome.error = asTenureError(error);
    }
    return outcome;
  }

  #isFinal(error) {
    return error.status >= 400 && error.status < 500 && !TEMPORARY.has(error.status);
  }

  #failAll(error) {
    for (const followed of [...this.#followed.values()]) {
      this.#fail(followed, error);
    }
  }

  /** Until the time is over, the network is back, or, if asked for, something else is followed. */
  async #pause(milliseconds, signal, { untilChanged = false } = {}) {
    await new Promise((resolve) => {
      const timer = setTimeout(done, milliseconds);
      this.#changed = untilChanged ? done : null;
      globalThis.addEventListener?.("online", done);
      signal.addEventListener("abort", done, { once: true });
      const self = this;
      function done() {
        clearTimeout(timer);
        self.#changed = null;
        globalThis.removeEventListener?.("online", done);
        signal.removeEventListener("abort", done);
        resolve();
      }
    });
  }

  // WebSocket

  async #overWebSocket(signal, outcome) {
    const token = await this.#credentials.token();
    if (signal.aborted) {
      return;
    }
    await new Promise((_, reject) => {
      const timing = this.#timing;
      const socket = new this.#WebSocket(this.#api.liveUrl);
      let problem = null;
      let pending = null; // topics to subscribe and unsubscribe, sent together
      let timer = setTimeout(() => end(new TenureError("no answer of the server", { code: "timeout" })), timing.readyWithin);

      const end = (error) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", aborted);
        globalThis.removeEventListener?.("online", check);
        socket.onopen = socket.onmessage = socket.onclose = socket.onerror = null;
        this.#changed = null;
        try {
          socket.close();
        } catch {
          // It never opened.
        }
        reject(error);
      };
      const aborted = () => end(new TenureError("closed", { code: "aborted" }));
      const send = (message) => socket.readyState === 1 && socket.send(JSON.stringify(message));
      const check = () => {
        send({ type: "ping" });
        clearTimeout(timer);
        timer = setTimeout(() => end(new TenureError("the connection is silent", { code: "timeout" })), timing.pongWithin);
      };
      const alive = () => {
        clearTimeout(timer);
        timer = setTimeout(check, timing.pingEvery);
      };
      const flush = () => {
        const { added, dropped } = pending;
        pending = null;
        for (let start = 0; start < dropped.length; start += MOST_TOPICS) {
          send({ type: "unsubscribe", topics: dropped.slice(start, start + MOST_TOPICS) });
        }
        for (let start = 0; start < added.length; start += MOST_TOPICS) {
          const some = added.slice(start, start + MOST_TOPICS);
          const versions = Object.fromEntries(some.filter((one) => one.version !== null).map((one) => [one.topic, one.version]));
          send({ type: "subscribe", topics: some.map((one) => one.topic), versions });
        }
      };
      const change = ({ added, dropped }) => {
        if (pending === null) {
          pending = { added: [], dropped: [] };
          queueMicrotask(flush);
        }
        if (added) {
          pending.added.push(added);
        } else if (pending.added.includes(dropped)) {
          pending.added.splice(pending.added.indexOf(dropped), 1);
        } else {
          pending.dropped.push(dropped.topic);
        }
      };

      signal.addEventListener("abort", aborted, { once: true });
      socket.onopen = () => {
        if (token) {
          send({ type: "auth", token });
        }
      };
      socket.onmessage = (event) => {
        const message = JSON.parse(event.data);
        if (outcome.worked) {
          alive();
        }
        const followed = this.#followed.get(message.topic);
        if (message.type === "ready" && !outcome.worked) {
          outcome.worked = true;
          alive();
          globalThis.addEventListener?.("online", check);
          this.#setState(LIVE);
          this.#changed = change;
          for (const one of this.#followed.values()) {
            change({ added: one });
          }
        } else if (message.type === "job" && followed) {
          this.#deliver(followed, message.job, message.version ?? null);
        } else if (message.type === "gone" && followed) {
          this.#fail(followed, gone(followed.id));
        } else if (message.type === "error") {
          problem = problemError(message.problem, message.retry_after);
          if (followed) {
            this.#fail(followed, problem);
          }
        }
      };
      socket.onclose = ({ code }) => {
        if ((code === UNAUTHORIZED || code === FORBIDDEN) && problem === null) {
          problem = new TenureError("the server refused the token", { status: code - 4000, code: "unauthorized" });
        }
        if (code === TOO_MANY && problem?.status !== 429) {
          problem = new TenureError("too many requests", { status: 429, code: "too-many-requests", retryAfter: 1 });
        }
        const refused = code >= 4000 && problem !== null;
        end(refused ? problem : unreachable(this.#api.liveUrl));
      };
      socket.onerror = () => {
        // Followed by a close, which says more; but not in every runtime.
        clearTimeout(timer);
        timer = setTimeout(() => end(unreachable(this.#api.liveUrl)), timing.closeWithin);
      };
    });
  }

  // Server-Sent Events, read with fetch: EventSource cannot send a token.

  async #overEvents(signal, outcome) {
    if (this.#followed.size > MOST_STREAMS) {
      return;
    }
    const ending = linked(signal);
    this.#changed = () => {
      outcome.again = true;
      ending.abort();
    };
    try {
      await Promise.all([...this.#followed.values()].map((followed) => this.#stream(followed, ending.signal, outcome)));
    } catch (error) {
      if (!outcome.again) {
        throw error;
      }
    } finally {
      this.#changed = null;
      ending.abort(); // the other streams
      ending.unlink();
    }
  }

  async #stream(followed, signal, outcome) {
    const ending = linked(signal, this.#timing.readyWithin);
    const received = () => {
      ending.within(this.#timing.silence);
      if (!outcome.worked) {
        outcome.worked = true;
        this.#setState(LIVE);
      }
    };
    try {
      const headers = { Accept: "text/event-stream", ...(followed.version ? { "Last-Event-ID": followed.version } : {}) };
      const response = await this.#api.send("GET", `/jobs/${followed.id}/events`, this.#credentials, { headers, signal: ending.signal });
      if (response.status === 204) {
        received();
        this.#deliver(followed, await this.#api.job(followed.id, this.#credentials, ending.signal), followed.version);
        return;
      }
      if (response.body === null || !response.headers.get("content-type")?.startsWith("text/event-stream")) {
        throw new TenureError("the server sent no events", { code: "no-events" });
      }
      for await (const event of eventsOf(response.body, ending.signal, received)) {
        if (this.#followed.get(followed.topic) !== followed) {
          return;
        }
        const message = JSON.parse(event.data);
        if (message.type === "gone") {
          this.#fail(followed, gone(followed.id));
        } else if (message.type === "job") {
          this.#deliver(followed, message.job, message.version ?? null);
        }
      }
      if (this.#followed.has(followed.topic) && !followed.reading) {
        throw unreachable(this.#api.base); // the server stops
      }
    } catch (error) {
      if (!this.#failOne(followed, error)) {
        throw error;
      }
    } finally {
      ending.abort();
      ending.unlink();
    }
  }

  // Polling

  async #byPolling(signal, outcome) {
    const until = Date.now() + this.#timing.upgradeAfter;
    while (!signal.aborted && this.#followed.size > 0 && Date.now() < until) {
      for (const followed of [...this.#followed.values()]) {
        try {
          const job = await this.#api.job(followed.id, this.#credentials, signal, 1);
          if (!outcome.worked) {
            outcome.worked = true;
            this.#setState(POLLING);
          }
          if (this.#followed.get(followed.topic) === followed) {
            this.#deliver(followed, job, null);
          }
        } catch (error) {
          if (!this.#failOne(followed, error)) {
            throw error;
          }
        }
      }
      if (this.#followed.size > 0) {
        await this.#pause(this.#timing.pollEvery * (0.75 + Math.random() / 2), signal, { untilChanged: true });
      }
    }
    outcome.again = true;
  }

  /** The answer concerns this one job, and others may be fine. */
  #failOne(followed, error) {
    if (error instanceof TenureError && error.status !== 401 && this.#isFinal(error)) {
      this.#fail(followed, error.status === 404 ? gone(followed.id) : error);
      return true;
    }
    return false;
  }
}

/** The lines of a stream of events, as their data. */
async function* eventsOf(body, signal, received) {
  const reader = body.getReader();
  // Not every runtime ends a read when its request is aborted.
  const aborted = new Promise((_, reject) => signal.addEventListener("abort", () => reject(abortError(signal)), { once: true }));
  aborted.catch(() => {});
  const decoder = new TextDecoder();
  let rest = "";
  let data = [];
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), aborted]);
      if (done) {
        return;
      }
      received();
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line === "" && data.length > 0) {
          yield { data: data.join("\n") };
          data = [];
        } else if (line.startsWith("data:")) {
          data.push(line.slice(5).replace(/^ /, ""));
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Requests

/** A token: text, a function that returns it, or none where the page is known by its session. */
class Credentials {
  #current = null; // a promise

  constructor(given) {
    this.given = given;
  }

  get renewable() {
    return typeof this.given === "function";
  }

  /** Asks the function once, until its token is refused. */
  async token() {
    if (!this.renewable) {
      return this.given ?? null;
    }
    try {
      this.#current ??= Promise.resolve(this.given());
      return await this.#current;
    } catch (error) {
      this.#current = null;
      throw new TenureError(`no token: ${error?.message ?? error}`, { code: "no-token", cause: error });
    }
  }

  renew() {
    this.#current = null;
  }
}

class Api {
  #url;
  #base;
  #fetch;
  #headers;
  #timing;

  constructor(options, timing) {
    this.#url = options.url;
    this.#fetch = options.fetch ?? ((...given) => globalThis.fetch(...given));
    this.#headers = options.headers;
    this.#timing = timing;
  }

  /** Found out when it is needed: a module may be loaded on a server, where there is no page. */
  get base() {
    return (this.#base ??= baseUrl(this.#url));
  }

  get liveUrl() {
    return `${this.base.replace(/^http/, "ws")}/_api/live`;
  }

  job(id, credentials, signal, attempts) {
    return this.request("GET", `/jobs/${id}`, { credentials, signal, attempts });
  }

  async cancel(id, credentials, reason, signal) {
    const body = reason === undefined ? {} : { reason };
    return (await this.request("POST", `/jobs/${id}/cancel`, { credentials, body, signal })).canceled;
  }

  /** Repeats what can be repeated: all requests of this module can. */
  async request(method, path, { credentials, body, headers = {}, signal, attempts = REQUEST_ATTEMPTS }) {
    let renewed = false;
    for (let attempt = 1; ; attempt++) {
      const ending = linked(signal, this.#timing.requestWithin);
      let error;
      try {
        const response = await this.send(method, path, credentials, { body, headers, signal: ending.signal });
        return await response.json();
      } catch (raised) {
        if (signal?.aborted) {
          throw abortError(signal);
        }
        error = asTenureError(raised);
      } finally {
        ending.unlink();
      }
      if (error.status === 401 && credentials.renewable && !renewed) {
        renewed = true;
        credentials.renew();
        continue;
      }
      if ((error.status !== 0 && !TEMPORARY.has(error.status)) || attempt >= attempts) {
        throw error;
      }
      const most = Math.min(this.#timing.longestDelay, this.#timing.firstDelay * 2 ** (attempt - 1));
      await sleep(Math.max(Math.random() * most, error.retryAfter * 1000), signal);
    }
  }

  /** Raises a TenureError for anything but success. */
  async send(method, path, credentials, { body, headers = {}, signal }) {
    const token = await credentials.token();
    const given = typeof this.#headers === "function" ? await this.#headers() : this.#headers;
    const sent = {
      Accept: "application/json",
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...(token ? { Authorization: `Bearer ${token}` } : {}),
      ...given,
      ...headers,
    };
    const url = `${this.base}/_api${path}`;
    let response;
    try {
      const content = body === undefined ? undefined : JSON.stringify(body);
      response = await this.#fetch(url, { method, headers: sent, body: content, signal, cache: "no-store" });
    } catch (error) {
      throw unreachable(url, error);
    }
    if (!response.ok) {
      throw await responseError(response);
    }
    return response;
  }
}

async function responseError(response) {
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // Not from us: a proxy.
  }
  return problemError({ ...problem, status: response.status }, Number(response.headers.get("retry-after")) || 0);
}

function problemError(problem, retryAfter = 0) {
  const { status = 0, detail, title, type = "", errors = [] } = problem ?? {};
  const code = String(type).split(":").pop() || `http-${status}`;
  return new TenureError(detail ?? title ?? `the server answered ${status}`, { status, code, errors, retryAfter });
}

function unreachable(url, cause) {
  return new TenureError(`cannot reach ${url}: check the address, and allowed_origins if it is another site`, { code: "network", cause });
}

const gone = (id) => new TenureError(`job ${id} does not exist, or you may not see it`, { status: 404, code: "job-not-found" });

const asTenureError = (error) =>
  error instanceof TenureError ? error : new TenureError(String(error?.message ?? error), { code: "network", cause: error });

function abortError(signal) {
  return new TenureError("aborted", { code: "aborted", cause: signal.reason });
}

/** An AbortController that also follows another signal, and can end by itself after a time. `unlink()` forgets both. */
function linked(signal, milliseconds) {
  const controller = new AbortController();
  const abort = () => controller.abort();
  let timer;
  const within = (time) => {
    clearTimeout(timer);
    timer = setTimeout(abort, time);
  };
  if (signal?.aborted) {
    abort();
  }
  signal?.addEventListener("abort", abort, { once: true });
  if (milliseconds !== undefined) {
    within(milliseconds);
  }
  const unlink = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  };
  return { signal: controller.signal, abort, within, unlink };
}

function sleep(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const aborted = () => {
      clearTimeout(timer);
      reject(abortError(signal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", aborted, { once: true });
  });
}

/** Where the web app is. Without `url`: where this file was loaded from, or the page's own site. */
function baseUrl(url) {
  const page = globalThis.document?.baseURI ?? globalThis.location?.href;
  const own = import.meta.url;
  const given = url ?? (own?.endsWith("/static/tenure.js") && /^https?:/.test(own) ? new URL("..", own).href : page && new URL("/", page).href);
  let found;
  try {
    found = new URL(given, page);
  } catch {
    throw new TypeError(`url is ${JSON.stringify(url)}, but must be the address of Tenure's web server, such as https://jobs.example`);
  }
  return (found.origin + found.pathname).replace(/\/+$/, "").replace(/\/_api$/, "");
}

function checkedId(id) {
  if (typeof id !== "string" || !ID.test(id)) {
    throw new TypeError(`${JSON.stringify(id)} is not the id of a job`);
  }
  return id.toLowerCase();
}

function wireOptions({ runAt, keyFor, maxAttempts, ...options }) {
  return {
    ...options,
    ...(runAt === undefined ? {} : { run_at: runAt instanceof Date ? runAt.toISOString() : runAt }),
    ...(keyFor === undefined ? {} : { key_for: keyFor }),
    ...(maxAttempts === undefined ? {} : { max_attempts: maxAttempts }),
  };
}

const encodePath = (kind) => String(kind).split("/").map(encodeURIComponent).join("/");

/** crypto.randomUUID() exists on https and localhost only. */
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
