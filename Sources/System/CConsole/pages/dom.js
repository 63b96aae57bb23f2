// Elements from calls. Text is always set as text: nothing that a server says becomes markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(9)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** Shows these in place of what was there; what is false or nothing is left out. */
export function into(element, ...children) {
  element.replaceChildren();
  return fill(element, {}, children);
}

export const h = (name, attributes, ...children) =>
  fill(document.createElement(name), attributes, children);
export const s = (name, attributes, ...children) =>
  fill(document.createElementNS(SVG, name), attributes, children);

const looks = new WeakMap();

/**
 * Begins to look anew at what `place` shows. What it returns says whether this is still the newest
 * look: the answer of an older one, come late, must not be drawn over it.
 */
export function looking(place) {
  const mine = (looks.get(place) ?? 0) + 1;
  looks.set(place, mine);
  return () => looks.get(place) === mine;
}

/** Says something to a screen reader, when it has time. */
export function say(text) {
  const said = document.getElementById("said");
  said.textContent = "";
  setTimeout(() => { said.textContent = text; }, 50);
}

const parts = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" };
const stamp = new Intl.DateTimeFormat(undefined, parts);
const stampOfYear = new Intl.DateTimeFormat(undefined, { year: "numeric", ...parts });
/** With its year where that is not this one. */
const told = (date) => (date.getFullYear() === new Date().getFullYear() ? stamp : stampOfYear).format(date);

/** A moment as the reader's own clock shows it, with the server's words behind it. */
export const time = (text) =>
  text ? h("time", { datetime: text, title: text }, told(new Date(text))) : "–";

/** A path that breaks where it has its slashes. */
export const path = (text) =>
  h("code", { class: "path" }, text.split("/").flatMap((part, index) => index ? ["/", h("wbr"), part] : [part]));


export const number = (value) => value === undefined || value === null ? "–" : value.toLocaleString();

const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

export function duration(seconds) {
  if (seconds === undefined || seconds === null) return "–";
  if (seconds === 0) return "0 s";
  const [size, unit] = units.find(([size]) => seconds % size === 0) ?? [1, "s"];
  return `${(seconds / size).toLocaleString()} ${unit}`;
}

const tones = {
  good: ["active", "serving", "sending", "online", "done", "finished", "wakeable", "synced", "running", "ok", "accepted", "on", "here"],
  warn: ["paused", "waiting", "waking", "canary", "holding", "held", "unreachable", "off", "scheduled", "late", "draining", "ending", "silent"],
  bad: ["no-show", "tripped", "deactivated", "rejected", "failed", "suspended", "wrong", "expired", "gone"],
  calm: ["production", "development", "key", "certificate", "admin", "read-only"],
};

/** A word of a closed set, with a colour that only repeats it. */
export function badge(word) {
  const tone = Object.keys(tones).find((tone) => tones[tone].includes(word));
  return h("span", { class: `badge ${tone ?? ""}` }, word ?? "unknown");
}

export const sheet = (title, ...children) =>
  h("section", { class: "sheet" }, title && h("h2", {}, title), ...children);

export const facts = (pairs) =>
  h("dl", { class: "facts" },
    pairs.filter(([, value]) => value !== undefined && value !== null && value !== "")
      .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

/**
 * A table whose rows become cards on a phone.
 * columns: {name, of(row), numeric?, head?, acts?}
 */
export function table(caption, columns, rows, empty) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  return h("div", { class: "scroll" }, h("table", { class: "cards" },
    h("caption", { class: "unseen" }, caption),
    h("thead", {}, h("tr", {}, columns.map((column) =>
      h("th", { scope: "col", class: column.numeric ? "num" : undefined },
        column.acts ? h("span", { class: "unseen" }, column.name) : column.name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, columns.map((column) => cell(column, column.of(row))))))));
}

function cell(column, value) {
  if (column.head) return h("th", { scope: "row" }, value);
  if (column.acts) return h("td", { class: "acts" }, value);
  // A card has no line for what is not there.
  const names = [column.numeric && "num", value === "–" && "none"].filter(Boolean);
  return h("td", { class: names.join(" ") || undefined, "data-name": column.name }, value);
}

let fieldNumber = 0;

/** An input with its label and hint; `control` may be any element that takes a value. */
export function field(name, label, options = {}) {
  const id = `f${++fieldNumber}`;
  const hint = options.hint ? `${id}h` : undefined;
  const shared = { id, name, "aria-describedby": hint, required: options.required };
  let control;
  if (options.choices) {
    control = h("select", shared, options.choices.map(([value, text]) =>
      h("option", { value, selected: String(options.value ?? "") === value }, text)));
  } else if (options.lines) {
    control = h("textarea", { ...shared, rows: options.lines, spellcheck: "false" });
    control.value = options.value ?? "";
  } else {
    control = h("input", {
      ...shared, type: options.type ?? "text", value: options.value ?? "", min: options.min,
      max: options.max, autocomplete: options.autocomplete ?? "off", placeholder: options.placeholder,
      spellcheck: "false", disabled: options.disabled,
    });
  }
  return h("div", { class: options.wide ? "field wide" : "field" },
    h("label", { for: id }, label), control,
    options.hint && h("p", { class: "hint", id: hint }, options.hint));
}

export const values = (form) => Object.fromEntries(new FormData(form));

/** A box that tells what happened; it takes the focus where it is about a mistake. */
export function note(tone, ...children) {
  const box = h("div", { class: `note ${tone}`, role: tone === "bad" ? "alert" : "status", tabindex: "-1" }, children);
  return box;
}

/** Runs what a button or a form asks for, once at a time, and shows what was refused beside it. */
export async function carryOut(place, button, work) {
  button.disabled = true;
  into(place);
  try {
    return await work();
  } catch (refusal) {
    const box = note("bad", refusal.message);
    into(place, box);
    box.focus();
    return undefined;
  } finally {
    button.disabled = false;
  }
}

/** Asks before something that cannot be taken back. */
export function confirm(title, text, word) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": "ask" },
      h("h2", { id: "ask" }, title), h("p", {}, text),
      h("div", { class: "acts-row" },
        h("button", { class: "bad", type: "button", onclick: () => dialog.close("yes") }, word),
        h("button", { type: "button", autofocus: true, onclick: () => dialog.close("no") }, "Keep it as it is")));
    dialog.addEventListener("close", () => {
      const said = dialog.returnValue;
      dialog.remove();
      resolve(said === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
