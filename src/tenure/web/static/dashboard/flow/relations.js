// Where a job belongs: the chain that it is a link of, what it waits for, the group or workflow that waits for it.
import { h } from "../lib/dom.js";
import { get, part } from "../lib/api.js";
import { label, plural, shortId } from "../lib/format.js";
import { address } from "../lib/router.js";
import { glyph, link } from "../lib/ui.js";

const GROUP = "tenure.group";

export class Relations {
  constructor(view, id) {
    this.id = id;
    this.chain = null;
    this.kinds = view.use("/kinds", 60);
    this.redraw = () => view.redraw();
  }

  /** Asked for again when the job has another state: then it may have a next link, or wait for something else. */
  async look(job) {
    const version = `${job.state} ${job.next_id}`;
    if (version === this.version) return;
    this.version = version;
    try {
      this.chain = await get(`/chains/${part(this.id)}`);
      this.redraw();
    } catch {
      // A job is shown without them, too.
    }
  }

  isWorkflow(kind) {
    return Boolean(this.kinds.value?.kinds.find((one) => one.name === kind)?.workflow);
  }

  items(job) {
    const { chain } = this;
    const own = chain?.links.find((one) => one.job.id === job.id);
    return [
      this.isWorkflow(job.kind) && line(job.state, ["a workflow: ", link(address("workflows", [job.id]), "its steps and what it waits for")]),
      job.kind === GROUP && line(job.state, ["a group: ", link(address("workflows", ["chains", job.id]), "its members")]),
      own && chain.links.at(-1).number > 1 && line(chain.state, [`link ${own.number} of ${chain.links.at(-1).number} in the chain `, link(address("workflows", ["chains", chain.id]), `${chain.kind} ${shortId(chain.id)}`)], label(chain.state)),
      own?.blockers.length && job.kind !== GROUP ? line("blocked", ["behind ", link(address("workflows", ["chains", chain.id]), plural(own.blockers.length, "chain"))], `${own.blockers.filter((one) => one.ended).length} have ended`) : null,
      ...(chain?.dependants ?? []).slice(0, 20).map((one) => this.dependant(one)),
    ].filter(Boolean);
  }

  dependant({ id, kind, state }) {
    if (kind === GROUP) return line(state, ["a member of the ", link(address("workflows", ["chains", id]), `group ${shortId(id)}`)], label(state));
    if (this.isWorkflow(kind)) return line(state, ["a step of the workflow ", link(address("workflows", [id]), `${kind} ${shortId(id)}`)], label(state));
    return line(state, [link(address("jobs", [id]), `${kind} ${shortId(id)}`), " waits for its chain"], label(state));
  }
}

const line = (state, content, side = "") => h("li", h("span.state", { "data-state": state }, glyph(state)), h("span.cut", content), h("span.push.faint", side));
