// Talks to the server: JSON in both directions, with what proves that this page asks.

let session = null;
/** Of the page that is open: another one has another. */
let visit = new AbortController();
let onEnded = () => {};
let onNews = () => {};
let onSilence = () => {};

export const current = () => session;
export const mayChange = () => session?.role === "admin";
/** @param then: called with the session that has ended, and with the one in its place where another login has taken it. */
export const whenEnded = (then) => { onEnded = then; };

/**
 * @param news: called with every answer of the server, whatever it says.
 * @param silence: called where none came, with why.
 */
export function whenHeard(news, silence) {
  onNews = news;
  onSilence = silence;
}

/** The server was heard of, as by an event. */
export const heard = () => onNews();

/** Another page is open from here on: nobody waits any more for what an earlier one has asked. */
export function turnPage() {
  visit.abort();
  visit = new AbortController();
}

/** What the server refused, in its words. */
export class Refusal extends Error {
  constructor(status, detail, name) {
    super(detail);
    this.status = status;
    this.name = name ?? "refusal";
  }
}

/** Never goes on: what waits for it ends with the page that asked. */
const nobody = () => new Promise(() => {});

async function send(method, address, body, { once, isWatching, isOfPage = true, signal } = {}) {
  const [mine, asker] = [visit, session];
  const isLeft = () => isOfPage && mine !== visit;
  const headers = {};
  if (isWatching) headers["x-rouse-watching"] = "1";
  if (once) headers["idempotency-key"] = once;
  if (body !== undefined) headers["content-type"] = "application/json";
  // Also where nothing is changed: the cookie is the browser's, and may be of a later login by now.
  if (session) headers["x-rouse-csrf"] = session.csrf;
  let answer;
  let text;
  try {
    answer = await fetch(address, {
      method, headers, credentials: "same-origin", cache: "no-store",
      body: body === undefined ? undefined : JSON.stringify(body),
      // A change that was asked for is carried out, whoever waits for it.
      signal: isOfPage && method === "GET" ? mine.signal : signal,
    });
    text = await answer.text();
  } catch {
    if (isLeft()) return nobody();
    onSilence("It does not answer.");
    throw new Refusal(0, "The server does not answer.");
  }
  if (answer.status < 500) onNews();
  let value = {};
  try { if (text) value = JSON.parse(text); } catch { /* Not of this server. */ }
  // What an earlier login is told is nothing to the one that is in now.
  if (asker && asker === session) {
    if (answer.status === 401) end();
    else if (value.type === "urn:rouse:problem:other_session") await pulse();
  }
  if (isLeft()) return nobody();
  if (answer.ok) return value;
  throw new Refusal(answer.status, value.detail ?? `The server answered ${answer.status}.`, value.type);
}

/** Browsers take the steps `.` and `..` out of an address, written `%2e`, too: a `~` before them, which the server takes off, keeps them there. */
const segment = (part) => encodeURIComponent(/^~*\.\.?$/.test(part) ? `~${part}` : part);
/** Parts of a path, each as one segment of it. */
const path = (parts) => "/console/api/" + parts.map(segment).join("/");

const asked = (query) => (query ? "?" + new URLSearchParams(query) : "");

export const get = (parts, query) =>
  send("GET", path(parts) + asked(query));
/** The same, of a page that looks by itself: nobody need be there, and the session may end. */
export const watch = (parts) => send("GET", path(parts), undefined, { isWatching: true });
/** With `once`, a key, a repetition has one effect. */
export const post = (parts, body, once) => send("POST", path(parts), body, { once });
export const put = (parts, body, query) => send("PUT", path(parts) + asked(query), body);
export const patch = (parts, body) => send("PATCH", path(parts), body);
export const remove = (parts) => send("DELETE", path(parts));

/** Who is in, from an earlier page; null: nobody. */
export async function resume() {
  const found = await send("GET", "/console/session", undefined, { isOfPage: false });
  session = found.role ? found : null;
  return session;
}

/** Whether the server is there, and this session in it. A page asks by itself: nobody need be there. */
export async function pulse() {
  const mine = session;
  let found;
  try {
    found = await send("GET", "/console/session", undefined, { isWatching: true, isOfPage: false, signal: AbortSignal.timeout(6000) });
  } catch (refusal) {
    if (refusal.status) onSilence(`It says: ${refusal.message}.`);
    return;
  }
  if (!mine || mine !== session) return;
  if (!found.role) end();
  else if (found.csrf !== mine.csrf) end(found);
}

function end(successor) {
  const ended = session;
  session = null;
  onEnded(ended, successor);
}

export async function login(token) {
  session = await send("POST", "/console/login", { token }, { isOfPage: false });
  return session;
}

export async function logout() {
  await send("POST", "/console/logout", undefined, { isOfPage: false });
  session = null;
}
