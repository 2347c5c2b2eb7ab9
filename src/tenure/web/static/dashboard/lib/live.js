// One WebSocket for everything that a page follows. It reconnects by itself, and asks again for what is followed.
const TOO_MANY = 4429;
const topics = new Map(); // topic: {listeners, message}
let socket = null;
let wanted = false;
let tries = 0;
let timer = null;
let onStatus = () => {};

export function whenStatus(listener) {
  onStatus = listener;
}

/** Calls `listener(message)` with the current state and then with each change. Returns a function that ends it. */
export function follow(topic, listener) {
  let entry = topics.get(topic);
  if (!entry) {
    entry = { listeners: new Set(), message: null };
    topics.set(topic, entry);
    queue("subscribe", topic);
  }
  entry.listeners.add(listener);
  if (entry.message) listener(entry.message);
  return () => {
    entry.listeners.delete(listener);
    if (!entry.listeners.size && topics.get(topic) === entry) {
      topics.delete(topic);
      queue("unsubscribe", topic);
    }
  };
}

let pending = new Map();
function queue(type, topic) {
  if (!pending.size) queueMicrotask(flush);
  pending.set(topic, type);
}

function flush() {
  const asked = pending;
  pending = new Map();
  if (socket?.readyState !== WebSocket.OPEN) return;
  for (const type of ["unsubscribe", "subscribe"]) {
    const names = [...asked].filter(([, what]) => what === type).map(([topic]) => topic);
    for (let start = 0; start < names.length; start += 500) send({ type, topics: names.slice(start, start + 500) });
  }
}

const send = (message) => socket?.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));

export function connect() {
  wanted = true;
  clearTimeout(timer);
  if (socket && socket.readyState <= WebSocket.OPEN) return;
  const address = new URL("_api/live", document.baseURI);
  address.protocol = address.protocol.replace("http", "ws");
  address.hash = address.search = "";
  socket = new WebSocket(address);
  const mine = socket;
  mine.onopen = () => {
    tries = 0;
    pending.clear();
    const names = [...topics.keys()];
    for (let start = 0; start < names.length; start += 500) send({ type: "subscribe", topics: names.slice(start, start + 500) });
    onStatus("live");
  };
  mine.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    const entry = topics.get(message.topic);
    if (!entry) return;
    if (message.type !== "error") entry.message = message;
    for (const listener of entry.listeners) listener(message);
  };
  mine.onclose = ({ code }) => {
    if (mine !== socket) return;
    socket = null;
    if (!wanted) return;
    onStatus("lost");
    if (code === TOO_MANY) tries = 5;
    timer = setTimeout(connect, Math.min(15000, 500 * 2 ** tries++) * (0.75 + Math.random() / 2));
  };
}

export function disconnect() {
  wanted = false;
  clearTimeout(timer);
  const old = socket;
  socket = null;
  old?.close();
}

export function reconnectNow() {
  tries = 0;
  if (wanted) connect();
}
