// Talks to the server: JSON in both directions, with what proves that this page asks.

let session = null;
let onLoggedOut = () => {};

export const current = () => session;
export const mayChange = () => session?.role === "admin";
export const whenLoggedOut = (then) => { onLoggedOut = then; };

/** What the server refused, in its words. */
export class Refusal extends Error {
  constructor(status, detail, name) {
    super(detail);
    this.status = status;
    this.name = name ?? "refusal";
  }
}

async function send(method, address, body, once, isWatching) {
  const headers = {};
  if (isWatching) headers["x-rouse-watching"] = "1";
  if (once) headers["idempotency-key"] = once;
  if (body !== undefined) headers["content-type"] = "application/json";
  if (session && method !== "GET") headers["x-rouse-csrf"] = session.csrf;
  let answer;
  try {
    answer = await fetch(address, {
      method, headers, credentials: "same-origin", cache: "no-store",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refusal(0, "The server does not answer.");
  }
  const text = await answer.text();
  let value = {};
  try { if (text) value = JSON.parse(text); } catch { /* Not of this server. */ }
  if (answer.ok) return value;
  if (answer.status === 401 && session) {
    session = null;
    onLoggedOut("The session is over. Log in again.");
  }
  throw new Refusal(answer.status, value.detail ?? `The server answered ${answer.status}.`, value.type);
}

/** Parts of a path, each as one segment of it. */
const path = (parts) => "/console/api/" + parts.map((part) => encodeURIComponent(part)).join("/");

export const get = (parts, query) =>
  send("GET", path(parts) + (query ? "?" + new URLSearchParams(query) : ""));
/** The same, of a page that looks by itself: nobody need be there, and the session may end. */
export const watch = (parts) => send("GET", path(parts), undefined, undefined, true);
/** With `once`, a key, a repetition has one effect. */
export const post = (parts, body, once) => send("POST", path(parts), body, once);
export const put = (parts, body) => send("PUT", path(parts), body);
export const patch = (parts, body) => send("PATCH", path(parts), body);
export const remove = (parts) => send("DELETE", path(parts));

/** Who is in, from an earlier page; null: nobody. */
export async function resume() {
  const found = await send("GET", "/console/session");
  session = found.role ? found : null;
  return session;
}

export async function login(token) {
  session = await send("POST", "/console/login", { token });
  return session;
}

export async function logout() {
  try { await send("POST", "/console/logout"); } finally { session = null; }
}
