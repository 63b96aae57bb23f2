// Drawings as SVG: lines over time, and a device's life.

import { h, into, s } from "./dom.js";

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const short = (value) =>
  value >= 1000 ? `${+(value / 1000).toFixed(1)}k` : value >= 100 ? value.toFixed(0) : `${+value.toFixed(value < 1 ? 2 : 1)}`;

/** A round number not below `value`, to end an axis at. */
function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value);
}

/**
 * A graph of one or more lines.
 * series: {name, of(point): number|null, colour?}; `unit` stands behind numbers.
 * A point's `at` is its place, by a clock that nobody sets; its `wall` is what clocks showed then.
 */
export class Graph {
  constructor(title, unit, series, hint) {
    this.title = title;
    this.unit = unit;
    this.series = series;
    this.now = h("span", { class: "now" }, "–");
    this.place = h("div", {});
    this.legend = h("ul", { class: "legend" });
    this.words = h("p", { class: "unseen" });
    this.element = h("figure", { class: "sheet" },
      h("figcaption", {}, h("h2", {}, title), hint && h("span", { class: "soft" }, hint), this.now),
      this.place, this.legend, this.words);
  }

  draw(points) {
    // Letters keep their size where the drawing is narrow.
    const narrow = window.matchMedia("(max-width: 46rem)").matches;
    const [width, height, left, bottom, top] = [narrow ? 340 : 460, 150, 40, 20, 8];
    const all = this.series.map((line) => points.map((point) => line.of(point)));
    const numbers = all.flat().filter((value) => value !== null && value !== undefined);
    const most = ceiling(Math.max(0, ...numbers));
    // Ten minutes wide, or as much as there is.
    const end = points.at(-1)?.at ?? 0;
    const begin = Math.min(points[0]?.at ?? end, end - 60_000);
    const wall = points.at(-1)?.wall ?? Date.now();
    const x = (at) => left + (at - begin) / (end - begin) * (width - left - 6);
    const y = (value) => top + (1 - value / most) * (height - top - bottom);
    const parts = [];
    for (const share of [0, .5, 1]) {
      const level = y(most * share);
      parts.push(s("line", { class: "rule", x1: left, x2: width, y1: level, y2: level }));
      parts.push(s("text", { class: "axis", x: left - 6, y: level + 4, "text-anchor": "end" }, short(most * share)));
    }
    parts.push(s("text", { class: "axis", x: left, y: height - 4 }, clock.format(wall - (end - begin))));
    parts.push(s("text", { class: "axis", x: width - 6, y: height - 4, "text-anchor": "end" }, clock.format(wall)));
    // Of several lines those that never left the ground are not drawn over the others.
    const flat = all.map((line) => line.every((value) => !value));
    this.series.forEach((line, index) => {
      if (flat[index] && index !== 0) return;
      const pieces = [];
      let piece = [];
      points.forEach((point, place) => {
        const value = all[index][place];
        if (value === null || value === undefined) {
          if (piece.length) pieces.push(piece);
          piece = [];
        } else {
          piece.push(`${x(point.at).toFixed(1)},${y(value).toFixed(1)}`);
        }
      });
      if (piece.length) pieces.push(piece);
      const group = s("g", { class: `c${line.colour ?? index % 6 + 1}` });
      for (const dots of pieces) {
        if (this.series.length === 1 && dots.length > 1) {
          const [first, last] = [dots[0].split(",")[0], dots.at(-1).split(",")[0]];
          group.append(s("polygon", { class: "area", points: `${first},${y(0)} ${dots.join(" ")} ${last},${y(0)}` }));
        }
        group.append(dots.length > 1
          ? s("polyline", { class: "line", points: dots.join(" ") })
          : s("circle", { cx: dots[0].split(",")[0], cy: dots[0].split(",")[1], r: 3, fill: "currentColor" }));
      }
      parts.push(group);
    });
    const last = all.map((line) => line.findLast((value) => value !== null && value !== undefined));
    const told = (value) => value === undefined ? "–" : `${short(value)}${this.unit ? " " + this.unit : ""}`;
    this.now.textContent = this.series.length === 1 ? told(last[0]) : "";
    into(this.legend, ...(this.series.length === 1 ? [] : this.series.map((line, index) =>
      h("li", { class: `c${line.colour ?? index % 6 + 1}` }, h("span", {}, `${line.name} ${told(last[index])}`)))));
    this.words.textContent = this.series.map((line, index) =>
      `${line.name}: now ${told(last[index])}, at most ${told(numbers.length ? Math.max(...all[index].filter((value) => value !== null)) : undefined)}`).join("; ");
    into(this.place, s("svg", {
      viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${this.title}, the last minutes`,
    }, parts));
  }
}

/** The value below which a share of the observations between two points lies, in milliseconds. */
export function quantile(bounds, before, after, share) {
  const counts = after.map((count, index) => count - (before[index] ?? 0));
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all <= 0) return null;
  let seen = 0;
  for (let index = 0; index < counts.length; index += 1) {
    seen += counts[index];
    if (seen >= all * share) return (bounds[index] ?? bounds.at(-1)) * 1000;
  }
  return null;
}

const tones = { good: "c1", calm: "c2", warn: "c3", bad: "c6", soft: "c5" };
const instant = new Intl.DateTimeFormat(undefined, {
  month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit",
});
/** How long something took, in the unit that suits it. */
export const between = (milliseconds) =>
  milliseconds < 1000 ? `${milliseconds} ms` : milliseconds < 60_000 ? `${(milliseconds / 1000).toFixed(1)} s`
    : milliseconds < 3_600_000 ? `${Math.round(milliseconds / 60_000)} min`
      : milliseconds < 86_400_000 ? `${(milliseconds / 3_600_000).toFixed(1)} h` : `${Math.round(milliseconds / 86_400_000)} d`;

/**
 * A life as a picture: one moment below the other, with how long lay between.
 * moments: {at, until?, title, text?, tone}, in the order in which they are shown.
 */
export function timeline(title, moments) {
  const narrow = window.matchMedia("(max-width: 46rem)").matches;
  const [width, row] = [narrow ? 350 : 760, narrow ? 62 : 50];
  const left = narrow ? 16 : 168;
  const height = moments.length * row + 16;
  const parts = [s("line", { class: "rule", x1: left, x2: left, y1: 10, y2: height - 10 })];
  moments.forEach((moment, index) => {
    const y = index * row + 24;
    const group = s("g", { class: tones[moment.tone] ?? "c5" });
    if (moment.until) group.append(s("line", { class: "span", x1: left, x2: left, y1: y, y2: y + row * .62 }));
    group.append(s("circle", { class: moment.at ? "dot full" : "dot", cx: left, cy: y, r: 6 }));
    const when = moment.at ? instant.format(new Date(moment.at)) : "now";
    const room = narrow ? 44 : 84;
    const cut = (text) => text.length > room ? text.slice(0, room - 1) + "…" : text;
    if (narrow) {
      group.append(s("text", { class: "axis", x: left + 18, y: y - 8 }, when));
      group.append(s("text", { x: left + 18, y: y + 8, "font-weight": 600 }, cut(moment.title)));
      if (moment.text) group.append(s("text", { class: "axis", x: left + 18, y: y + 24 }, cut(moment.text)));
    } else {
      group.append(s("text", { class: "axis", x: left - 16, y: y + 4, "text-anchor": "end" }, when));
      group.append(s("text", { x: left + 18, y: y + 4, "font-weight": 600 }, cut(moment.title)));
      if (moment.text) group.append(s("text", { class: "axis", x: left + 18, y: y + 21 }, cut(moment.text)));
    }
    const next = moments[index + 1];
    if (!narrow && next?.at && moment.at) {
      const gap = Math.abs(new Date(next.at) - new Date(moment.at));
      if (gap > 0) group.append(s("text", { class: "axis", x: left - 16, y: y + 22, "text-anchor": "end" }, `+ ${between(gap)}`));
    }
    group.append(s("title", {}, [when, moment.title, moment.text].filter(Boolean).join(" – ")));
    parts.push(group);
  });
  return h("figure", { class: "time" },
    s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title }, parts),
    // The same for who cannot see it.
    h("ol", { class: "unseen" }, moments.map((moment) =>
      h("li", {}, `${moment.at ? instant.format(new Date(moment.at)) : "now"}: ${moment.title}${moment.text ? ", " + moment.text : ""}`))));
}

/** Shares of a whole. parts: {name, count, tone}. */
export function shares(title, parts) {
  const all = parts.reduce((sum, part) => sum + part.count, 0);
  let x = 0;
  return h("div", {},
    h("div", { class: "bar" }, s("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img",
      "aria-label": `${title}: ${parts.map((part) => `${part.count} ${part.name}`).join(", ")}` },
    parts.map((part) => {
      const width = all ? part.count / all * 100 : 0;
      const box = s("rect", { class: tones[part.tone], x, y: 0, width, height: 10, fill: "currentColor" });
      x += width;
      return box;
    }))),
    h("ul", { class: "legend" }, parts.map((part) =>
      h("li", { class: tones[part.tone] }, h("span", {}, `${part.name} ${part.count.toLocaleString()}`)))));
}
