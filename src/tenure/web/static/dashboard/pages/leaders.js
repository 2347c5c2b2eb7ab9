// Leaders: who does what, since when, and how its rounds go.
import { h } from "../lib/dom.js";
import { clockTime, now, when } from "../lib/clock.js";
import { count, duration, plural } from "../lib/format.js";
import { address } from "../lib/router.js";
import { callout, panel, ticked, tone, waiting } from "../lib/ui.js";

const DUTIES = {
  stager: ["makes delayed jobs and retries pending when they are due", "Jobs with a delay and retries do not start."],
  reaper: ["requeues the jobs of workers that are gone", "Jobs of lost workers are not requeued."],
  cron: ["enqueues the jobs of schedules", "Schedules do not run."],
  cleaner: ["removes finished jobs whose retention is over", "Finished jobs are not removed, and tables grow."],
  rollup: ["adds up the counts for charts and statistics", "Figures and charts fall behind."],
  doctor: ["checks the database for what slows queues down", "Problems of the database are not noticed."],
  resolver: ["unblocks jobs when chains end, and wakes workflows when events arrive", "Blocked jobs and waiting workflows do not continue."],
};

export function start(view) {
  const leaders = view.use("/leaders", 5);
  view.draw = () => {
    if (!leaders.value) return waiting(leaders, 7);
    const all = leaders.value.leaders;
    const duties = all.filter((one) => !one.duty.startsWith("lease:")).sort((a, b) => (a.state === "holds") - (b.state === "holds") || a.duty.localeCompare(b.duty));
    const own = all.filter((one) => one.duty.startsWith("lease:"));
    const trouble = duties.filter((one) => one.state !== "holds");
    return [trouble.map(alarm), duties.length ? table(duties) : h("section.panel", h("div.empty", h("h2", "No leader yet"), h("p", "The first worker that starts takes over the duties. Each duty has one holder at a time; if it dies, another one takes over within seconds."))), duties.length ? terms(duties) : null, findings(duties.find((one) => one.duty === "doctor")), own.length ? leases(own) : null];
  };
}

function alarm(one) {
  const stuck = one.state === "stuck";
  const last = one.metadata.last_run;
  return callout("bad", `${one.duty} ${stuck ? "is stuck" : "has no holder"}.`, [`${(DUTIES[one.duty] ?? ["", "Its work is not done."])[1]} `, stuck ? [`${one.worker ?? one.holder} holds it, but no round has finished`, last ? [" since ", when(last)] : null, ". Restart that worker, and another one takes the duty over."] : "Start a worker: it takes the duty over.", one.metadata.last_error ? ` Last error: ${one.metadata.last_error}` : ""]);
}

function table(duties) {
  const errors = duties.reduce((sum, one) => sum + (one.metadata.errors ?? 0), 0);
  return h("section.panel", h("header", h("h2", plural(duties.length, "duty", "duties")), h("span.sub", `each has one holder at a time${errors ? `; ${plural(errors, "error")} in all` : ""}`)),
    h("div.table-wrap", h("table.table.two.cards.tall.leaders", h("thead", h("tr", h("th.grow", "Duty"), h("th", "Held by"), h("th.n.p-1", "Term"), h("th.n.p-2", "Since"), h("th.n", "Last round"), h("th.n.p-2", "Took"), h("th.n.p-2", "Rounds"), h("th.n.p-1", "Work done"), h("th.n.p-1", "Errors"))), h("tbody", duties.map(row)))),
    h("div.pager", h("span", "Work done counts jobs and rows in the current term. A duty is stuck when its next round is 30 s overdue while its lease is renewed.")));
}

function row(one, n) {
  const { metadata: facts } = one;
  const ok = one.state === "holds";
  return h("tr", { key: one.duty, "data-row": true, "data-id": one.holder, tabindex: n ? "-1" : "0", class: ok ? null : "alarm" },
    h("td.a-name.grow", h("div.two-line", h("div.row", h("span.name", one.duty), !ok && tone("bad", one.state, "stop")), h("div.cut", { title: (DUTIES[one.duty] ?? [null])[0] }, (DUTIES[one.duty] ?? [""])[0]))),
    h("td.a-meta", { "data-unit": `term ${count(one.term)}` }, h("a", { href: address("workers"), title: one.holder }, one.worker ?? (/^[0-]+$/.test(one.holder) ? "every supervisor" : `supervisor ${one.holder.slice(-8)}`))),
    h("td.n.muted.p-1", count(one.term)), h("td.n.muted.p-2", when(one.acquired_at)),
    h("td.n.a-side", { class: ok ? null : "bad" }, facts.last_run ? when(facts.last_run) : "–"), h("td.n.muted.p-2", facts.last_seconds === undefined ? "–" : duration(Number(facts.last_seconds))),
    h("td.n.muted.p-2", facts.runs === undefined ? "–" : count(facts.runs)), h("td.n.muted.p-1", facts.items === undefined ? "–" : count(facts.items)),
    h("td.n.p-1", { class: facts.errors ? "bad" : "faint", title: facts.last_error ?? null }, count(facts.errors ?? 0)));
}

/** Since when each holder has its duty. Who held it before is not stored: that part of the lane is empty. */
function terms(duties) {
  const to = now();
  const from = Math.max(to - 86400e3, Math.min(to - 600e3, ...duties.map((one) => Date.parse(one.acquired_at) - 60e3)));
  const place = (at) => Math.min(100, Math.max(0, ((at - from) / (to - from)) * 100));
  const ticks = [0, 25, 50, 75, 100];
  const name = (percent) => (percent === 100 ? "now" : clockTime(from + ((to - from) * percent) / 100, { seconds: to - from < 1800e3 }));
  const anchor = (percent) => (percent === 0 ? "start" : percent === 100 ? "end" : "middle");
  return panel("Who has led since when", { sub: "current terms; earlier ones are not stored" },
    h("div.lane.axis-row", h("span"), h("svg.lanes", { "aria-hidden": "true" }, ticks.map((percent, n) => h("text", { class: n % 2 ? "alt" : null, x: `${percent}%`, "text-anchor": anchor(percent) }, name(percent))))),
    duties.map((one) => {
      const begin = place(Date.parse(one.acquired_at));
      const held = one.worker ?? `supervisor ${one.holder.slice(-8)}`;
      const told = `term ${count(one.term)}, ${held}`;
      return h("div.lane", { key: one.duty }, h("span.medium.cut", one.duty), h("svg.lanes", { role: "img", "aria-label": `${one.duty}: ${told}, for ${duration((to - Date.parse(one.acquired_at)) / 1000)}` },
        h("rect.held", { class: one.state === "holds" ? "c-mute" : "c-bad", x: `${begin.toFixed(2)}%`, y: 4, width: `${(100 - begin).toFixed(2)}%`, height: 20, rx: 3 }, h("title", told)),
        begin < 70 ? h("text.in", { x: `${begin.toFixed(2)}%`, dx: 8, y: 18 }, told) : h("text", { x: `${begin.toFixed(2)}%`, dx: -8, y: 18, "text-anchor": "end" }, told)));
    }));
}

function findings(doctor) {
  const list = doctor?.findings ?? [];
  return panel("What the doctor found", { sub: doctor?.metadata.last_run ? "in its last round" : "" }, list.length ? h("ul.links.coded", list.map((one) => h("li.wrapped", h("span.tag", one.code), h("span", ticked(one.text), h("span.muted", "; ", ticked(one.way_out)))))) : h("p.muted", "Nothing. It checks tables, indexes, old transactions, settings and jobs that no worker can run, once a minute."));
}

function leases(own) {
  return panel("Leases of your code", { flush: true }, h("div.table-wrap", h("table.table", h("thead", h("tr", h("th", "Lease"), h("th", "State"), h("th", "Held by"), h("th.n", "Term"), h("th.n", "Since"), h("th.n", "Ends"))), h("tbody", own.map((one) => h("tr", { key: one.duty }, h("td.medium", one.duty.slice(6)), h("td", one.state), h("td.muted.mono", one.holder.slice(-8)), h("td.n.muted", count(one.term)), h("td.n.muted", when(one.acquired_at)), h("td.n.muted", Date.parse(one.expires_at) > now() ? when(one.expires_at) : "ended")))))));
}
