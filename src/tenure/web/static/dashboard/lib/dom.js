// Makes elements, and brings a tree up to date in place. Text is always set as text: there is no way from a string to markup.

const SVG = document.querySelector("svg").namespaceURI; // of the symbols in the page
const SVG_TAGS = new Set(["svg", "g", "path", "rect", "line", "circle", "text", "use", "title"]);
const PROPERTIES = new Set(["value", "checked", "selected", "indeterminate"]);
const WITH_VALUE = new Set(["INPUT", "TEXTAREA", "SELECT", "PROGRESS"]);

/** h("a.link.cut", {href: "#/jobs"}, "Jobs"): an element with classes, attributes, handlers and children. */
export function h(tag, ...rest) {
  const [name, ...classes] = tag.split(".");
  const element = SVG_TAGS.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  const given = rest[0];
  if (given && typeof given === "object" && !(given instanceof Node) && !Array.isArray(given)) {
    rest.shift();
    for (const [key, value] of Object.entries(given)) set(element, key, value);
  }
  append(element, rest);
  return element;
}

function set(element, key, value) {
  if (value === null || value === undefined || value === false) return;
  if (key === "key") element.__key = String(value);
  else if (key === "class") element.setAttribute("class", [element.getAttribute("class"), value].filter(Boolean).join(" "));
  else if (key.startsWith("on")) handle(element, key, value);
  else if (key === "href" && !isOurs(value)) return;
  else if (PROPERTIES.has(key)) element[key] = value;
  else element.setAttribute(key, value === true ? "" : String(value));
}

/** Remembered beside the property: asking an element for each possible handler is slow. What a handler returns is dropped: false would
 * cancel what the browser does with the event, such as typing. */
export function handle(element, name, handler) {
  element[name] = handler && ((event) => { handler(event); });
  (element.__on ??= {})[name] = handler;
}

// Addresses come from data too: only places in this dashboard and web pages can be opened.
const isOurs = (address) => /^(#|static\/|_api\/|https?:\/\/)/.test(address);

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === true) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Replaces the children of `parent` by `wanted`, keeping every element that can stay: focus, scroll and selection survive. */
export function render(parent, ...wanted) {
  const list = [];
  collect(list, wanted);
  morph(parent, list);
}

function collect(list, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === true) continue;
    if (Array.isArray(child)) collect(list, child);
    else list.push(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

function morph(parent, wanted) {
  const keyed = new Map();
  for (let child = parent.firstChild; child; child = child.nextSibling) if (child.__key !== undefined) keyed.set(child.__key, child);
  let at = parent.firstChild;
  for (const want of wanted) {
    const made = want.__kept ?? want;
    const have = want.__key === undefined ? at : keyed.get(want.__key);
    if (!have || !alike(have, made) || have.__key !== want.__key) {
      parent.insertBefore(made, at);
      continue;
    }
    if (have === at) at = at.nextSibling;
    else parent.insertBefore(have, at);
    if (made === want) patch(have, want);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName;

/** Brings an element up to date, so that it is like `want`. */
export function patch(have, want) {
  if (have.nodeType === Node.TEXT_NODE) {
    if (have.nodeValue !== want.nodeValue) have.nodeValue = want.nodeValue;
    return;
  }
  if (have.hasAttribute("data-kept")) return; // it looks after itself
  for (const { name } of [...have.attributes]) if (!want.hasAttribute(name)) have.removeAttribute(name);
  for (const { name, value } of want.attributes) if (have.getAttribute(name) !== value) have.setAttribute(name, value);
  if (have.__on || want.__on) {
    for (const name of Object.keys(have.__on ?? {})) if (!want.__on?.[name]) handle(have, name, null);
    for (const [name, handler] of Object.entries(want.__on ?? {})) handle(have, name, handler);
  }
  if (want.__chart) have.__chart = want.__chart;
  morph(have, [...want.childNodes]);
  if (WITH_VALUE.has(have.tagName) && have !== document.activeElement && have.value !== want.value) have.value = want.value;
  if (have.type === "checkbox") {
    have.checked = want.checked;
    have.indeterminate = want.indeterminate;
  }
}

/** Builds a part again only if what it shows has changed: `part("rows", [version], () => h(...))`. */
export function memo() {
  let before = new Map();
  let now = new Map();
  const build = (key, facts, make) => {
    const known = before.get(key);
    const isSame = known && known.facts.every((fact, n) => fact === facts[n]);
    const entry = isSame ? known : { facts, node: make() };
    entry.node.__key = String(key);
    now.set(key, entry);
    return isSame ? placeholder(entry.node) : entry.node;
  };
  build.next = () => {
    before = now;
    now = new Map();
  };
  return build;
}

/** Stands for an element that is on the page already and stays as it is. */
function placeholder(node) {
  const mark = document.createComment("");
  mark.__key = node.__key;
  mark.__kept = node;
  return mark;
}

export const $ = (selector, within = document) => within.querySelector(selector);
export const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
