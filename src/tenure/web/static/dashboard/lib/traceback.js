// A stored error: its exception, and the frames of its traceback, with those of libraries folded.
import { h } from "./dom.js";
import { icon } from "./ui.js";

const FRAME = /^\s*File "(.+?)", line (\d+), in (.+)$/;
const LIBRARY = /site-packages|dist-packages|[/\\]lib[/\\]python|[/\\]tenure[/\\](worker|client|simulate\/run)|<frozen|[/\\]asyncio[/\\]/;

/** {type, message, parts: [{file, line, name, source, isOwn} | {text}]} */
export function parse(error) {
  const start = error.search(/^\s*(\+ )?(Exception Group )?Traceback /m);
  const head = start < 0 ? error : error.slice(0, start);
  const named = head.trim().match(/^([\w.]+(?:\.[A-Z]\w*)?|[\w.<>]+): ?([\s\S]*)$/);
  const parts = [];
  for (const line of (start < 0 ? "" : error.slice(start)).split("\n")) {
    const frame = line.match(FRAME);
    const last = parts.at(-1);
    if (frame) parts.push({ file: frame[1], line: frame[2], name: frame[3], source: "", isOwn: !LIBRARY.test(frame[1]) });
    else if (last?.file && /^\s{4,}/.test(line)) {
      if (!/^[\s^~]+$/.test(line)) last.source += `${last.source ? "\n" : ""}${line.trim()}`;
    } else if (line.trim() && !/^(Traceback|\s*\+ Exception Group)/.test(line)) parts.push({ text: line });
  }
  return { type: named?.[1] ?? null, message: (named ? named[2] : head).trim(), parts };
}

const shortFile = (file) => file.split(/[/\\]/).slice(-2).join("/");
const packageOf = (file) => file.match(/(?:site|dist)-packages[/\\]([\w.-]+)/)?.[1] ?? (/[/\\]tenure[/\\]/.test(file) ? "tenure" : "Python");

export function traceback(error, name = "") {
  const { type, message, parts } = parse(error);
  const items = [];
  for (let k = 0; k < parts.length; k++) {
    const part = parts[k];
    if (part.text !== undefined) {
      if (k < parts.length - 1 || !type) items.push(h("li", part.text));
    } else if (part.isOwn) items.push(frame(part));
    else {
      const folded = [part];
      while (parts[k + 1]?.file && !parts[k + 1].isOwn) folded.push(parts[++k]);
      items.push(fold(folded));
    }
  }
  return h("ol.trace", { class: name, tabindex: "0", "aria-label": "Traceback" }, items, h("li.exc", type ? [h("b", type.split(".").at(-1)), `: ${message}`] : message || "no reason given"));
}

const frame = ({ file, line, name, source, isOwn }) => h("li", { class: isOwn ? "own" : null, title: file }, h("span.at", `${shortFile(file)}:${line} in `, h("span.fn", name)), source && h("span.src", source));

function fold(frames) {
  const names = [...new Set(frames.map((one) => packageOf(one.file)))].slice(0, 3).join(", ");
  return h("li.folded", h("details", h("summary.fold", icon("right", 12), ` ${frames.length} ${frames.length === 1 ? "frame" : "frames"} in ${names}`), h("ol", frames.map(frame))));
}
