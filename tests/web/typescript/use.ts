// Uses of the tracker and of the generated types that must be accepted, and, below @ts-expect-error, some that must not.

import { createTenure, TenureError, type Job, type Tracker } from "tenure-tracker";
import { useJob as useReactJob, useNewJob, useTrackedJob } from "tenure-tracker/react";
import { useJob as useVueJob } from "tenure-tracker/vue";
import { configureTenure, createKind2faSendJob, createBillingPlaceOrderJob, createExportUsersJob, getTenure } from "./jobs.js";

const job = createExportUsersJob();
const id: string = await job.start({ format: "csv" });
await job.start({ format: "json", columns: ["a"] }, { priority: "high", runAt: new Date(), signal: new AbortController().signal });
// @ts-expect-error not a format
await job.start({ format: "xml" });
// @ts-expect-error a field is missing
await job.start();
// @ts-expect-error misspelled
await job.start({ format: "csv", colums: [] });
const done = await job.finished();
const rows: number | undefined = done.output?.["rows"];
// @ts-expect-error not a state
if (done.status === "done") throw rows;
const { cleanup, cancel } = job;
cleanup();
const canceled: boolean = await cancel({ reason: "x" });

const order = createBillingPlaceOrderJob({ queue: "orders" });
await order.start({ "order-number": 1, pet: { kind: "dog", tricks: ["sit", 2] }, at: "2026-01-31T00:00:00Z" });
// @ts-expect-error a cat has lives
await order.start({ "order-number": 1, pet: { kind: "cat" }, at: "2026-01-31T00:00:00Z" });
const name: string | undefined = order.get()?.output?.children[0]?.children[0]?.name;

await createKind2faSendJob().start({ point: [1, 2.5], tree: { name: "root", children: [{ name: "leaf" }] } });
await getTenure().createJob("billing/place_order").start();
// @ts-expect-error not a kind
getTenure().createJob("nope");

const plain = createTenure({ url: "/tenure", token: async () => "tnt_x", dispatch: async () => ({ id: "x", token: "y" }) });
const any: Tracker = plain.createJob("anything");
const stop: () => void = any.subscribe((now: Job | null) => now?.progress_percent);
const reactJob: Job<Record<string, number>> | null = useReactJob(job);
const [state, tracker] = useNewJob(() => createExportUsersJob());
await tracker.start({ format: "csv" });
const tracked: Job | null = useTrackedJob(plain, null);
const vueJob: number | undefined = useVueJob(job).value?.progress_percent;
const error: number = new TenureError("x", { status: 404 }).status;
configureTenure({ url: "https://jobs.example", token: "x" }).close();
export { any, canceled, error, id, name, reactJob, state, stop, tracked, vueJob };
