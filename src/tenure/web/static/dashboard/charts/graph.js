// A graph in layers: columns are depth, rows keep the given order. Nodes: {id, name, meta, state, depth, href, isChosen, isTodo}; edges:
// [from, to]. A node without an address is the one that the page is about.
import { h } from "../lib/dom.js";
import { label } from "../lib/format.js";
import { go } from "../lib/router.js";

const WIDTH = 156;
const HEIGHT = 48;
const GAP_X = 32;
const GAP_Y = 16;

export function graph(nodes, edges, name) {
  const rows = new Map();
  const places = new Map(nodes.map((node) => {
    const row = rows.get(node.depth) ?? 0;
    rows.set(node.depth, row + 1);
    return [node.id, { node, column: node.depth, row }];
  }));
  const tallest = Math.max(...rows.values());
  const x = ({ column }) => 8 + column * (WIDTH + GAP_X);
  const y = ({ row, column }) => 8 + (row + (tallest - rows.get(column)) / 2) * (HEIGHT + GAP_Y);
  const width = 16 + Math.max(...nodes.map((node) => node.depth)) * (WIDTH + GAP_X) + WIDTH;
  const height = 16 + tallest * (HEIGHT + GAP_Y) - GAP_Y;
  return h("div.graph-wrap", { tabindex: "0", role: "group", "aria-label": name },
    h("svg.graph", { width, height, viewBox: `0 0 ${width} ${height}` },
      h("g", edges.filter(([a, b]) => places.has(a) && places.has(b)).map(([a, b]) => edge(places.get(a), places.get(b), x, y))),
      [...places.values()].map((place) => box(place, x(place), y(place)))));
}

function edge(from, to, x, y) {
  const [x1, y1, x2, y2] = [x(from) + WIDTH, y(from) + HEIGHT / 2, x(to), y(to) + HEIGHT / 2];
  const bend = y2 > y1 ? 8 : -8;
  const middle = x2 - GAP_X / 2;
  const d = Math.abs(y1 - y2) < 1 ? `M${x1} ${y1}H${x2}` : Math.abs(y1 - y2) < 16 ? `M${x1} ${y1}L${x2} ${y2}` : `M${x1} ${y1}H${middle - 8}q8 0 8 ${bend}V${y2 - bend}q0 ${bend} 8 ${bend}H${x2}`;
  return h("path.edge", { class: to.node.isTodo ? "todo" : null, d });
}

function box({ node }, x, y) {
  const open = () => node.href && go(node.href);
  const text = node.name.length > 17 ? `${node.name.slice(0, 16)}…` : node.name;
  const name = [node.href ? "open" : "here", node.isTodo ? "todo" : ""].join(" ").trim();
  return h("g.node", { key: node.id, "data-state": node.state, transform: `translate(${x} ${y})`, tabindex: node.href ? "0" : null, role: node.href ? "link" : "img", "data-name": node.name, "aria-label": `${text} ${node.meta}, ${label(node.state)}${text === node.name ? "" : `, ${node.name}`}`, "aria-current": node.isChosen ? "true" : null, class: name, onclick: open, onkeydown: (event) => event.key === "Enter" && open() },
    node.href && !node.isChosen ? null : h("rect.ring", { x: -4, y: -4, width: WIDTH + 8, height: HEIGHT + 8, rx: 10 }),
    h("rect.box", { width: WIDTH, height: HEIGHT, rx: 7 }),
    h("svg.g", { x: 12, y: 12, width: 12, height: 12 }, h("use", { href: `#s-${node.state}` })),
    h("text", { x: 31, y: 21 }, text), " ", h("text.meta", { x: 31, y: 38 }, node.meta), text === node.name ? null : h("title", node.name));
}
