// A page that is open: what it uses ends with it, and it is drawn at most once per frame.
import { render } from "./dom.js";
import * as data from "./data.js";
import { follow } from "./live.js";
import { onTick } from "./clock.js";

export class View {
  constructor(root, place) {
    this.root = root;
    this.place = place;
    this.ends = [];
    this.draw = () => [];
    this.onPlace = null;
    this.keys = {};
    this.closed = false;
    this.drawn = false;
  }

  get params() {
    return this.place.params;
  }

  /** Uses an answer of the API for as long as the page is open. */
  use(path, every = 0) {
    const found = data.resource(path, every);
    this.ends.push(found.use(() => this.redraw()));
    return found;
  }

  /** Several answers of which the addresses change with the page's parameters. */
  slot(every = 0) {
    const slot = { path: null, resource: null, end: null };
    const choose = (path) => {
      if (path !== slot.path) {
        slot.end?.();
        slot.path = path;
        slot.resource = path === null ? null : data.resource(path, every);
        slot.end = slot.resource?.use(() => this.redraw()) ?? null;
      }
      return slot.resource;
    };
    this.ends.push(() => slot.end?.());
    return choose;
  }

  useFleet() {
    this.ends.push(data.useFleet(() => this.redraw()));
  }

  follow(topic, listener) {
    const end = follow(topic, (message) => !data.status.paused && listener(message));
    this.ends.push(end);
    return end;
  }

  everySecond(listener) {
    this.ends.push(onTick(listener));
  }

  redraw() {
    if (this.closed || this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (!this.closed) this.drawNow();
    });
  }

  drawNow() {
    render(this.root, this.draw());
    this.drawn = true;
    this.afterDraw?.();
  }

  close() {
    this.closed = true;
    for (const end of this.ends) end();
  }
}
