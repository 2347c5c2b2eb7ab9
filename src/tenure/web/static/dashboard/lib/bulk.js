// Actions on many jobs: counted first, named in the button. A filter is carried out by a job, named jobs until none is left.
import { get, post } from "./api.js";
import { confirm } from "./dialogs.js";
import { refresh } from "./data.js";
import { count, plural } from "./format.js";
import { address, go } from "./router.js";
import { toast } from "./toasts.js";

const VERBS = {
  retry: { verb: "Retry", done: "will run now", effect: "They run now instead of later." },
  replay: { verb: "Replay", done: "are pending again", effect: "Each gets all its attempts again." },
  cancel: { verb: "Cancel", done: "are canceled", effect: "Running handlers are aborted.", danger: true },
  delete: { verb: "Delete", done: "are deleted", effect: "Everything stored about them is removed. This cannot be undone.", danger: true },
};

/** `filter` as POST /jobs/bulk takes it, or several; `what` says in words which jobs these are. Resolves with the number that changed. */
export async function bulk(action, filter, what) {
  const { verb, done, effect, danger } = VERBS[action];
  const filters = [filter].flat();
  let counted;
  try {
    const parts = await Promise.all(filters.map((one) => post("/jobs/bulk", { action, filter: one, dry_run: true })));
    counted = { matched: parts.reduce((sum, part) => sum + part.matched, 0), more: parts.some((part) => part.more) };
  } catch (error) {
    toast("bad", error.message);
    return 0;
  }
  if (!counted.matched) {
    toast("info", `None of these jobs can be ${{ retry: "retried: it is for jobs that wait", replay: "replayed: it is for dead letters", cancel: "canceled: they are over", delete: "deleted: running jobs cannot" }[action]}.`);
    return 0;
  }
  const many = `${count(counted.matched)}${counted.more ? "+" : ""} ${counted.matched === 1 && !counted.more ? "job" : "jobs"}`;
  const answer = await confirm({
    title: `${verb} ${many}?`,
    text: `${what} ${effect} Counted just now; jobs that change before you confirm are left alone.`,
    fields: action === "cancel" ? [["reason", "Reason, for the audit log", "optional"]] : [],
    yes: `${verb} ${many}`,
    danger,
  });
  if (!answer) return 0;
  let total = 0;
  try {
    for (const one of filters) {
      const changed = await change(action, one, answer.reason);
      if (changed === null) return counted.matched; // it continues, and was said to
      total += changed;
    }
    toast(total ? "good" : "warn", total ? `${plural(total, "job")} ${total === 1 ? done.replace(/^are /, "is ") : done}.` : "No job was changed: they had changed meanwhile.");
  } catch (error) {
    toast("bad", `${total ? `${plural(total, "job")} changed, then it stopped: ` : ""}${error.message}`);
  }
  refresh("/failures", "/findings", "/queues");
  return total;
}

/** All of one filter. Null: it takes longer. */
async function change(action, filter, reason) {
  let total = 0;
  for (let round = 0; round < 1000; round++) {
    const reply = await post("/jobs/bulk", { action, filter, dry_run: false, ...(reason ? { reason } : {}) });
    if (reply.job) return carriedOut(reply.job.id);
    total += reply.changed;
    if (!reply.more || !reply.changed) break;
  }
  return total;
}

const PATIENCE = 30000; // ms

/** All that match a filter are changed by a job: waits for its end, and gives how many it changed. Null: it takes longer. */
async function carriedOut(id) {
  for (const began = Date.now(); Date.now() - began < PATIENCE; await new Promise((next) => setTimeout(next, 400))) {
    const job = await get(`/jobs/${id}`);
    if (job.state === "completed") return job.output.changed;
    if (job.over) throw new Error(job.last_error ?? `the job that does it is ${job.state}`);
  }
  toast("info", "A job does this. Open it to see how far it is.", { action: "Open", onaction: () => go(address("jobs", [id])) });
  return null;
}
