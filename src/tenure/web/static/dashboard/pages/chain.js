// One chain: its links, what they wait for, what waits for it, and what can be done with it. A group is a chain whose members it waits for.
import { h } from "../lib/dom.js";
import { part, post, remove } from "../lib/api.js";
import { now, when } from "../lib/clock.js";
import { confirm } from "../lib/dialogs.js";
import * as data from "../lib/data.js";
import { duration, label, plural, sentence, shortId } from "../lib/format.js";
import { errorText, isFinal, isOver, ran, reason } from "../lib/jobs.js";
import { address, go } from "../lib/router.js";
import { act, toast } from "../lib/toasts.js";
import { badge, callout, code, copy, copyText, glyph, icon, json, link, panel, problem, skeleton, state } from "../lib/ui.js";
import { graph } from "../charts/graph.js";
import { share } from "../charts/marks.js";
import { Followed } from "../flow/followed.js";
import { lanes } from "../flow/lanes.js";
import { setTitle } from "../shell.js";

const MOST_NODES = 40;
const MOST_SIDE = 6; // blockers and dependants in the graph
const GROUP = "tenure.group";
const chainAddress = (id) => address("workflows", ["chains", id]);

export function start(view) {
  const page = new ChainPage(view, view.place.rest[1]);
  view.onPlace = () => view.redraw();
  view.draw = () => page.draw();
  view.keys = { y: () => copyText(page.id, "the id") };
  view.everySecond(() => {
    // The end of one of several blockers changes no link.
    page.found.again(page.found.value?.state === "blocked");
    if (page.isLive) view.redraw();
  });
}

class ChainPage {
  constructor(view, id) {
    this.view = view;
    this.id = id;
    this.blockers = new Map(); // chains that are waited for, by id
    this.follows = new Map();
    this.found = new Followed(view, "chain", id);
  }

  get isLive() {
    return Boolean(this.found.value) && !this.found.value.finished_at;
  }

  draw() {
    const { value: chain, error } = this.found;
    if (!chain) {
      if (error) return error.status === 404 ? callout("warn", "There is no chain with this id.", "It was deleted, its retention is over, or the id is not complete. An id has 36 characters.", link(address("workflows", ["chains"]), "Open chains")) : problem(error);
      return h("section.panel", skeleton(10));
    }
    const last = chain.links.at(-1)?.job;
    this.followBlockers(chain);
    setTitle(`${chain.kind} ${shortId(chain.id)}`, crumbs(chain));
    const blockers = chain.links.at(-1)?.blockers ?? [];
    return [error && problem(error), this.head(chain), last && this.now(chain, last, blockers), this.picture(chain),
      h("div.g-main", h("div.stack", panel("Links over time", {}, lanes(chain.links.map(laneOf), isOver({ state: chain.state }))), linkTable(chain)),
        h("aside.stack", blockers.length ? this.waits(chain, blockers) : null, chain.dependants.length ? dependants(chain) : null, panel("Output", { sub: "of the last link", side: chain.output !== null && copy("output", () => JSON.stringify(chain.output, null, 2)) }, chain.output === null ? h("p.faint", chain.finished_at ? "It has none." : "Appears here when the chain completes.") : code(json(chain.output)))))];
  }

  followBlockers(chain) {
    const wanted = new Set(data.isLimited() ? [] : chain.links.flatMap((one) => one.blockers).filter((one) => !one.ended).map((one) => one.chain_id).slice(0, MOST_SIDE));
    for (const [id, end] of this.follows) if (!wanted.has(id)) { end(); this.follows.delete(id); }
    for (const id of wanted)
      if (!this.follows.has(id))
        this.follows.set(id, this.view.follow(`chain:${id}`, (message) => {
          if (message.chain) this.blockers.set(id, message.chain);
          this.view.redraw();
        }));
  }

  head(chain) {
    const may = data.may("operate");
    return h("div.row.wrap.job-head",
      h("div", h("div.row", h("h2.title", chain.kind === GROUP ? "Group" : chain.kind), badge(chain.state, label(chain.state), true)), h("div.row.faint.id-line", h("span.mono.cut", chain.id), copy("id", chain.id))),
      h("div.push.row.acts.wrap",
        !chain.finished_at && h("button.btn", { type: "button", disabled: !may, title: may ? null : "Your access is read: you can look but not change", onclick: () => this.complete(chain) }, "Complete…"),
        data.may("admin") && !data.isLimited() && h("button.btn.danger", { type: "button", onclick: () => this.remove(chain) }, "Delete…")));
  }

  now(chain, last, blockers) {
    const missing = blockers.filter((one) => !one.ended).length;
    const place = chain.links.length > 1 || chain.links[0].number > 1 ? `Link ${chain.links.at(-1).number}, ${last.kind}: ` : "";
    const title = chain.state === "blocked" && missing ? `${chain.kind === GROUP ? "" : place}Waits for ${missing === blockers.length ? "" : `${missing} of `}${plural(blockers.length, chain.kind === GROUP ? "member" : "chain")} to end.` : isOver(last) ? [`${sentence(label(chain.state))} `, when(chain.finished_at ?? last.failed_at), ` after ${plural(chain.links.at(-1).number, "link")} and ${duration((Date.parse(chain.finished_at ?? last.failed_at ?? chain.enqueued_at) - Date.parse(chain.enqueued_at)) / 1000)}.`] : [place || null, place ? reason(last) : capital(reason(last)), "."];
    return h("section.callout", { key: "now", "data-state": chain.state }, glyph(chain.state), h("div.grow", h("h2", title), ["failed", "canceled", "dead_letter"].includes(chain.state) && errorText(last) ? h("p", errorText(last)) : chain.state === "dead_letter" ? h("p", "Replay the job, and the chain continues.") : null), h("a.link.nowrap.p-1", { href: address("jobs", [last.id]) }, "Open the job"));
  }

  /** What the first shown link waits for, the links, and what waits for the chain. */
  picture(chain) {
    const links = chain.links.slice(-MOST_NODES);
    const nodes = [];
    const edges = [];
    let depth = 0;
    links.forEach(({ number, job, blockers }, n) => {
      const shown = blockers.slice(0, MOST_SIDE);
      if (shown.length) {
        if (n === 0) depth = 1;
        for (const one of shown) {
          const live = this.blockers.get(one.chain_id);
          const name = one.ended ? (one.state === "deleted" ? "canceled" : one.state ?? "completed") : live?.state ?? "pending";
          nodes.push({ id: `${job.id} ${one.chain_id}`, name: one.kind ?? live?.links.at(-1)?.job.kind ?? "chain", meta: shortId(one.chain_id), state: name, depth: depth - 1, href: chainAddress(one.chain_id) });
          edges.push([`${job.id} ${one.chain_id}`, job.id]);
        }
        if (blockers.length > shown.length) {
          const rest = blockers.slice(shown.length);
          nodes.push({ id: `${job.id} more`, name: `${rest.length} more`, meta: `${rest.filter((one) => one.ended).length} have ended`, state: rest.every((one) => one.ended) ? "completed" : "pending", depth: depth - 1, href: address("jobs", [job.id]) });
          edges.push([`${job.id} more`, job.id]);
        }
      }
      nodes.push({ id: job.id, name: job.kind === GROUP ? "group" : job.kind, meta: `${job.kind === GROUP ? "" : `link ${number}, `}${ranText(job)}`, state: job.state, depth, href: address("jobs", [job.id]), isChosen: n === links.length - 1 });
      if (n) edges.push([links[n - 1].job.id, job.id]);
      depth += 1;
    });
    for (const one of chain.dependants.slice(0, MOST_SIDE)) {
      nodes.push({ id: `then ${one.id}`, name: one.kind === GROUP ? "group" : one.kind, meta: shortId(one.id), state: one.state, depth, href: address("jobs", [one.id]), isTodo: one.state === "blocked" });
      edges.push([links.at(-1).job.id, `then ${one.id}`]);
    }
    return panel("Graph", { sub: chain.links.length > links.length ? `the last ${links.length} of ${chain.links.length} links` : plural(chain.links.length, "link") }, graph(nodes, edges, `${chain.kind}: ${plural(chain.links.length, "link")}, ${label(chain.state)}`));
  }

  waits(chain, blockers) {
    const ended = blockers.filter((one) => one.ended).length;
    const item = (one) => h("li", { key: one.chain_id }, h("span.state", { "data-state": nameOf(one, this.blockers) }, glyph(nameOf(one, this.blockers))), h("a.link.cut", { href: chainAddress(one.chain_id) }, one.kind ?? this.blockers.get(one.chain_id)?.kind ?? "chain"), h("span.mono.faint", shortId(one.chain_id)), h("span.push.faint", one.ended ? label(one.state ?? "ended") : "not ended"));
    return panel(chain.kind === GROUP ? "Members" : "Waits for", { sub: `${ended} of ${blockers.length}${blockers.length >= 100 ? " or more" : ""} have ended` }, h("div.stack.tight", share(ended, blockers.length, "c-ok"), h("ul.links", blockers.slice(0, 20).map(item)), blockers.length > 20 && h("p.faint", `and ${blockers.length - 20} more`)));
  }

  async complete(chain) {
    const answer = await confirm({ title: "Complete this chain?", text: "Its live link ends with this output, without a worker. If it is running, its handler is aborted.", fields: [["output", "Output, as JSON", "null", "", { isLong: true }]], yes: "Complete it" });
    if (!answer) return;
    let output = null;
    try {
      output = answer.output ? JSON.parse(answer.output) : null;
    } catch (error) {
      return toast("bad", `The output is not JSON: ${error.message}.`);
    }
    await act(() => post(`/chains/${part(chain.id)}/complete`, { output }), "The chain is completed.");
    this.found.load();
  }

  async remove(chain) {
    const waiting = chain.dependants.filter((one) => !isFinal(one)).length;
    const answer = await confirm({ title: "Delete this chain?", text: `All its links are removed. A running handler is aborted. This cannot be undone.${waiting ? ` ${plural(waiting, "job waits", "jobs wait")} for it, and would never run.` : ""}`, fields: waiting ? [["cascade", "Chains that wait for it", "", "", { options: [["", "keep them: then this is refused"], ["yes", "delete them too"]] }]] : [], yes: "Delete the chain", danger: true });
    if (!answer) return;
    if (await act(() => remove(`/chains/${part(chain.id)}${answer.cascade ? "?cascade=true" : ""}`), ({ deleted }) => `${plural(deleted, "chain is", "chains are")} deleted.`)) go(address("workflows", ["chains"]));
  }
}

const capital = (words) => {
  const [first, ...rest] = [words].flat();
  return [sentence(first), ...rest];
};
const nameOf = (one, known) => (one.ended ? (one.state === "deleted" ? "canceled" : one.state ?? "completed") : known.get(one.chain_id)?.state ?? "pending");
const crumbs = (chain) => [h("a", { href: address("workflows", ["chains"]) }, "Chains"), icon("right", 12), h("span.p-1.cut", chain.kind === GROUP ? "group" : chain.kind), h("span.p-1", icon("right", 12)), h("h1.mono", shortId(chain.id))];

function ranText(job) {
  if (!job.started_at) return label(job.state);
  const end = job.finished_at ?? job.failed_at;
  return job.state === "running" ? duration((now() - Date.parse(job.started_at)) / 1000) : end ? duration((Date.parse(end) - Date.parse(job.started_at)) / 1000) : label(job.state);
}

function laneOf({ number, job }) {
  const begin = Date.parse(job.enqueued_at);
  const started = job.started_at ? Date.parse(job.started_at) : null;
  const end = Date.parse(job.finished_at ?? job.failed_at ?? "") || (isOver(job) ? started ?? begin : now());
  const waits = { kind: "wait", state: started ? "pending" : isOver(job) ? "canceled" : job.state, from: begin, to: started ?? end };
  const segments = [...(waits.to - waits.from > 1 ? [waits] : []), ...(started === null ? [] : [{ kind: ["running", ...OVER].includes(job.state) ? "run" : "wait", state: job.state, from: started, to: Math.max(end, started + 1) }])];
  return { key: job.id, name: job.kind === GROUP ? "group" : job.kind, href: address("jobs", [job.id]), note: `link ${number}, ${shortId(job.id)}`, state: job.state, segments, result: ranText(job), detail: isOver(job) ? label(job.state) : "until now", isBad: ["failed", "dead_letter"].includes(job.state) };
}
const OVER = ["completed", "failed", "canceled", "dead_letter"];

function linkTable(chain) {
  const row = ({ number, job }, n) => h("tr", { key: job.id, "data-row": true, "data-id": job.id, tabindex: n ? "-1" : "0" },
    h("td.n.muted.p-1", String(number)), h("td.a-side", state(job.state)), h("td.a-name", h("div.row", h("a.name.cut", { href: address("jobs", [job.id]), "data-open": true }, job.kind), h("span.mono.faint", shortId(job.id)))),
    h("td.n.muted.p-1", `${job.attempt} / ${job.max_attempts}`), h("td.grow.a-sub", h("div.cut.faint", reason(job))), h("td.n.muted.a-meta", when(job.finished_at ?? job.started_at ?? job.enqueued_at)), h("td.n.muted.p-1", ran(job)));
  return panel("Links", { flush: true }, h("div.table-wrap", h("table.table.cards", { "aria-label": "Links" }, h("thead", h("tr", h("th.n.p-1", "Link"), h("th", "State"), h("th", "Kind and id"), h("th.n.p-1", "Attempt"), h("th", "Result or reason"), h("th.n", "Changed"), h("th.n.p-1", "Ran"))), h("tbody", chain.links.toReversed().slice(0, 200).map(row)))));
}

function dependants(chain) {
  return panel("Waits for this chain", { sub: plural(chain.dependants.length, "job") }, h("ul.links", chain.dependants.slice(0, 20).map((one) => h("li", { key: one.id }, h("span.state", { "data-state": one.state }, glyph(one.state)), h("a.link.cut", { href: one.kind === GROUP ? chainAddress(one.id) : address("jobs", [one.id]) }, one.kind === GROUP ? "group" : one.kind), h("span.mono.faint", shortId(one.id)), h("span.push.faint", label(one.state))))));
}
