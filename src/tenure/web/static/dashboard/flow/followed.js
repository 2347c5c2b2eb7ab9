// A chain or a workflow that is kept up to date: by the live connection; by asking, for limited tokens and what is too large for a message.
import { AnswerOrder } from "../lib/answer_order.js";
import { get, part } from "../lib/api.js";
import * as data from "../lib/data.js";

const ASK_EVERY = 3000; // ms

export class Followed {
  constructor(view, subject, id) {
    this.view = view;
    this.subject = subject;
    this.path = `/${subject}s/${part(id)}`;
    this.value = null;
    this.error = null;
    this.order = new AnswerOrder();
    this.mustAsk = data.isLimited();
    if (!this.mustAsk) view.follow(`${subject}:${id}`, (message) => this.received(message));
    this.load();
  }

  received(message) {
    if (message.type !== this.subject) return;
    this.mustAsk = message.omitted;
    if (message.omitted || !message[this.subject]) return this.load();
    this.order.received();
    this.put(message[this.subject]);
  }

  put(value, error = null) {
    this.value = value;
    this.error = error;
    this.view.redraw();
  }

  async load() {
    this.askedAt = Date.now();
    const question = this.order.ask();
    const [value, error] = await get(this.path).then((found) => [found, null], (problem) => [this.value, problem]);
    if (this.order.isPast(question) || !this.order.accept(question)) return;
    this.put(value, error);
  }

  /** Called every second. `changes`: there may be changes that are not sent. */
  again(changes = false) {
    if ((this.mustAsk || changes) && !data.status.paused && !document.hidden && Date.now() - this.askedAt >= ASK_EVERY) this.load();
  }
}
