// Places in the dashboard are in the hash, so that the server needs to know one address only: #/jobs/<id>?tab=log
const listeners = new Set();

export function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [page, ...rest] = path.split("/").map(decoded);
  return { page: page || "overview", rest, params: new URLSearchParams(query) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function address(page, rest = [], params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value !== null && value !== undefined && value !== "") query.set(name, value);
  const text = query.toString();
  return `#/${[page, ...rest].map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export const go = (hash) => {
  location.hash = hash;
};

/** Changes the parameters of the current page: a new entry of the browser's history, or not. */
export function setParams(changes, { replace = false } = {}) {
  const { page, rest, params } = place();
  for (const [name, value] of Object.entries(changes)) value === null || value === undefined || value === "" ? params.delete(name) : params.set(name, value);
  const hash = address(page, rest, Object.fromEntries(params));
  if (replace) {
    history.replaceState(null, "", hash);
    for (const listener of listeners) listener();
  } else location.hash = hash;
}

export function onPlace(listener) {
  listeners.add(listener);
}

window.addEventListener("hashchange", () => {
  for (const listener of listeners) listener();
});
