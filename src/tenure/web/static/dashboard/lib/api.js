// The REST API. Addresses are relative to the page, so that it works below any path.
let csrf = null;
let onUnauthorized = () => {};

export class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `the server answered ${status}`);
    this.status = status;
    this.problem = problem;
    this.errors = problem.errors ?? [];
  }
}

export function signedIn(identity) {
  csrf = identity.csrf;
}

export function whenUnauthorized(listener) {
  onUnauthorized = listener;
}

export async function request(method, path, body) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET") headers["Tenure-Source"] = "dashboard"; // for the audit log
  if (csrf && method !== "GET") headers["X-CSRF-Token"] = csrf;
  let response;
  try {
    response = await fetch(`_api${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin" });
  } catch {
    throw new ApiError(0, { detail: "The server cannot be reached. The page stays as it was and tries again by itself." });
  }
  if (response.status === 204) return null;
  const text = await response.text();
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    content = { detail: text.slice(0, 300) };
  }
  if (!response.ok) {
    if (response.status === 401 && path !== "/session") onUnauthorized();
    throw new ApiError(response.status, content);
  }
  return content;
}

export const get = (path, query) => request("GET", path + (query ? `?${search(query)}` : ""));
export const post = (path, body = {}) => request("POST", path, body);
export const patch = (path, body) => request("PATCH", path, body);
export const put = (path, body) => request("PUT", path, body);
export const remove = (path) => request("DELETE", path);

export function search(query) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== null && value !== undefined && value !== "") params.set(name, value);
  return params.toString();
}

export const part = encodeURIComponent;
