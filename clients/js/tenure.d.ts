/** Follows background jobs of Tenure from a page. See README.md. */

export type Status =
  | "scheduled"
  | "blocked"
  | "pending"
  | "claimed"
  | "running"
  | "waiting"
  | "retry"
  | "completed"
  | "failed"
  | "canceled"
  | "dead_letter";

/** A job, as it was when the server last sent it. */
export interface Job<Output = unknown> {
  readonly id: string;
  readonly kind: string;
  readonly status: Status;
  /** The same as `status`. */
  readonly state: Status;
  /** It will not run again by itself: completed, failed, canceled or dead_letter. */
  readonly over: boolean;
  /** It failed for good: failed or dead_letter. */
  readonly failed: boolean;
  /** 0 to 100. */
  readonly progress_percent: number;
  readonly progress_message: string | null;
  /** The message of the last error, without its traceback. Also set while the job is retried. */
  readonly last_error: string | null;
  /** Null until the job is completed. */
  readonly output: Output | null;
  /** Input or output are too large to be sent with each change, and are null here. `finished()` has the output. */
  readonly omitted: boolean;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly created_at: string;
  readonly scheduled_at: string | null;
  readonly started_at: string | null;
  readonly completed_at: string | null;
  readonly failed_at: string | null;
  /** With a token that is not limited to this job, the server sends more: queue, input, priority, ... */
  readonly [more: string]: unknown;
}

/** The store contract of Svelte: `run` is called at once with the current value, then with each later one. */
export interface Readable<Value> {
  readonly get: () => Value;
  readonly subscribe: (run: (value: Value) => void) => () => void;
}

export interface Connection {
  /**
   * - idle: no subscriber, or no job yet
   * - connecting
   * - live: by WebSocket or Server-Sent Events
   * - polling
   * - waiting: until the next attempt; `error` is why
   * - ended: the job is over
   * - failed: it cannot be followed; `error` is why
   */
  readonly state: "idle" | "connecting" | "live" | "polling" | "waiting" | "ended" | "failed";
  readonly error: TenureError | null;
}

/** Follows one job while it has subscribers, or a promise of `finished()`. All functions can be passed on unbound. */
export interface Tracker<Output = unknown> extends Readable<Job<Output> | null> {
  /** Null before the job was started. */
  readonly id: string | null;
  readonly connection: Readable<Connection>;
  /** False if the job was over already, or was never started. */
  readonly cancel: (options?: { reason?: string; signal?: AbortSignal }) => Promise<boolean>;
  /** The job when it is over, also if it failed. Rejects if it cannot be followed. */
  readonly finished: (options?: { signal?: AbortSignal }) => Promise<Job<Output>>;
  /** Stops following and drops all subscribers. The job continues. */
  readonly cleanup: () => void;
}

export interface JobOptions {
  priority?: number | "critical" | "high" | "normal" | "low" | "background";
  /** Seconds, or text such as "5m". */
  delay?: number | string;
  runAt?: Date | string;
  /** While a job has this key, no second one is made: `start` then follows the first. */
  key?: string;
  keyFor?: number | string;
  queue?: string;
  capability?: string;
  maxAttempts?: number;
  timeout?: number | string;
  meta?: Record<string, unknown>;
}

export interface StartOptions extends JobOptions {
  signal?: AbortSignal;
}

/** A function without parameters if all of them have defaults. */
export type Start<Input> = {} extends Input
  ? (args?: Input, options?: StartOptions) => Promise<string>
  : (args: Input, options?: StartOptions) => Promise<string>;

export interface JobTracker<Input = Record<string, unknown>, Output = unknown> extends Tracker<Output> {
  /** Enqueues a job and follows it instead of an earlier one. Resolves with its id; rejects if it was not accepted. */
  readonly start: Start<Input>;
}

/** By the name of each kind. `tenure typegen` writes it. */
export type Kinds = Record<string, { input: any; output: any }>;

export interface AnyKinds {
  [kind: string]: { input: Record<string, unknown>; output: unknown };
}

/** What a job was accepted as. */
export interface Dispatched<Output = unknown> {
  id: string;
  /** Access to this one job, if the page has no other token. */
  token?: Token;
  job?: Job<Output> | null;
}

/** A function is asked once, and again when its token is refused. */
export type Token = string | (() => string | Promise<string>);

export interface TenureOptions {
  /** Where the web server is, such as `https://jobs.example` or `/tenure`. Default: where this file was loaded from. */
  url?: string;
  /** Not needed where a session cookie or the host application identifies the page. */
  token?: Token;
  /** Replaces the request that enqueues a job: call your own back end, which returns the id and a token for that job. */
  dispatch?: (kind: string, args: any, options: StartOptions) => Promise<Dispatched>;
  /** Added to each request, such as a CSRF token. */
  headers?: Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>);
  fetch?: typeof fetch;
  /** Null: do not use WebSockets. */
  WebSocket?: (new (url: string) => any) | null;
  /** False: do not use Server-Sent Events. */
  events?: boolean;
  /** Milliseconds. */
  timing?: Partial<Timing>;
}

export interface Timing {
  /** Upper bound of the first delay; doubled after each failure. The delay is random below it. Default 1000. */
  firstDelay: number;
  /** Default 30000. */
  longestDelay: number;
  readyWithin: number;
  closeWithin: number;
  pingEvery: number;
  pongWithin: number;
  silence: number;
  /** Default 2000. */
  pollEvery: number;
  steadyAfter: number;
  upgradeAfter: number;
  requestWithin: number;
  linger: number;
}

export interface Tenure<K extends Kinds = AnyKinds> {
  readonly url: string;
  /** Follows a job that exists. */
  track<Output = unknown>(id: string, options?: { token?: Token; signal?: AbortSignal }): Tracker<Output>;
  /** A tracker for a job that `start(args)` enqueues. `options` are defaults of each start. */
  createJob<Name extends keyof K & string>(
    kind: Name,
    options?: JobOptions & { signal?: AbortSignal },
  ): JobTracker<K[Name]["input"], K[Name]["output"]>;
  /** Enqueues a job without following it. */
  dispatch<Name extends keyof K & string>(
    kind: Name,
    args: K[Name]["input"],
    options?: StartOptions,
  ): Promise<Dispatched<K[Name]["output"]>>;
  get<Output = unknown>(id: string, options?: { token?: Token; signal?: AbortSignal }): Promise<Job<Output>>;
  cancel(id: string, options?: { token?: Token; reason?: string; signal?: AbortSignal }): Promise<boolean>;
  /** Closes every connection. Trackers keep their last state. */
  close(): void;
}

export function createTenure<K extends Kinds = AnyKinds>(options?: TenureOptions): Tenure<K>;

/** An answer of the server that is not a success, a lost connection, or a job that does not exist. */
export class TenureError extends Error {
  constructor(
    message: string,
    details?: { status?: number; code?: string; errors?: FieldError[]; retryAfter?: number; cause?: unknown },
  );
  /** Of HTTP; 0 if there was no answer. */
  readonly status: number;
  /** The last part of the problem's type, such as "invalid-input" or "job-not-found"; or "network", "timeout", "aborted", "no-token". */
  readonly code: string;
  /** Of arguments that were refused. */
  readonly errors: readonly FieldError[];
  /** Seconds, if the server gave a time. */
  readonly retryAfter: number;
}

export interface FieldError {
  path: string;
  message: string;
}
