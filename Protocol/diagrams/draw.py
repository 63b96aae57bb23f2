#!/usr/bin/python3
"""Draws states.json: one SVG a diagram, and README.md with every arrow as text.

draw.py [FOLDER]: writes into FOLDER, else beside this script. Needs nothing but Python 3.

In states.json a state has a name, a line of text, and the place of its centre; an arrow has its
two states, the `label` that is drawn, and the `events` that lead along it. `bend` moves the middle
of an arrow sideways (to the left of its direction), `at` its label along it (0 to 1).
"""

import json
import math
import pathlib
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 156, 46
LINE = 13


def clip(centre, towards):
    """Where the line from a box's centre leaves the box."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    if dx == 0 and dy == 0:
        return centre
    scale = min(
        (WIDTH / 2 + 2) / abs(dx) if dx else math.inf,
        (HEIGHT / 2 + 2) / abs(dy) if dy else math.inf,
    )
    return centre[0] + dx * scale, centre[1] + dy * scale


def arrow(edge, places, reverse):
    start, end = places[edge["from"]], places[edge["to"]]
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    bend = edge.get("bend", 22 if reverse else 0)
    middle = (
        (start[0] + end[0]) / 2 + dy / length * bend * 2,
        (start[1] + end[1]) / 2 - dx / length * bend * 2,
    )
    a, b = clip(start, middle), clip(end, middle)
    at = edge.get("at", 0.5)
    x = (1 - at) ** 2 * a[0] + 2 * at * (1 - at) * middle[0] + at**2 * b[0]
    y = (1 - at) ** 2 * a[1] + 2 * at * (1 - at) * middle[1] + at**2 * b[1]
    path = (
        f'<path class="arrow" d="M {a[0]:.1f} {a[1]:.1f} Q {middle[0]:.1f} {middle[1]:.1f} '
        f'{b[0]:.1f} {b[1]:.1f}"><title>{escape("; ".join(edge["events"]))}</title></path>'
    )
    lines = edge["label"].split("\n")
    widest = max(len(line) for line in lines) * 6.1 + 6
    top = y - len(lines) * LINE / 2
    label = [
        f'<rect class="back" x="{x - widest / 2:.1f}" y="{top:.1f}" width="{widest:.1f}" '
        f'height="{len(lines) * LINE:.1f}"/>'
    ]
    for number, line in enumerate(lines):
        label.append(
            f'<text class="label" x="{x:.1f}" y="{top + number * LINE + 10:.1f}">'
            f"{escape(line)}</text>"
        )
    return path, "\n".join(label)


def draw(diagram):
    states = diagram["states"]
    places = {state["name"]: (state["x"], state["y"]) for state in states}
    edges = diagram["edges"]
    pairs = {(edge["from"], edge["to"]) for edge in edges}
    drawn = [arrow(edge, places, (edge["to"], edge["from"]) in pairs) for edge in edges]
    width = max(x for x, _ in places.values()) + WIDTH / 2 + diagram.get("margin", 40)
    height = max(y for _, y in places.values()) + HEIGHT / 2 + diagram.get("margin", 40)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(diagram['title'])}</title>",
        "<style>text { font-family: Helvetica, Arial, sans-serif; text-anchor: middle }",
        ".state { fill: #eef3fa; stroke: #345; stroke-width: 1.5 }",
        ".name { font-size: 14px; font-weight: bold; fill: #123 }",
        ".text { font-size: 10px; fill: #345 }",
        ".label { font-size: 11px; fill: #222 }",
        ".back { fill: #fff; opacity: 0.85 }",
        ".arrow { fill: none; stroke: #567; stroke-width: 1.3; marker-end: url(#head) }</style>",
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M 0 0 L 10 5 L 0 10 z" fill="#567"/></marker>'
        "</defs>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>',
    ]
    parts += [path for path, _ in drawn]
    for state in states:
        x, y = places[state["name"]]
        parts.append(
            f'<rect class="state" x="{x - WIDTH / 2}" y="{y - HEIGHT / 2}" rx="8" '
            f'width="{WIDTH}" height="{HEIGHT}"/>'
        )
        parts.append(f'<text class="name" x="{x}" y="{y - 3}">{escape(state["name"])}</text>')
        parts.append(f'<text class="text" x="{x}" y="{y + 13}">{escape(state["text"])}</text>')
    parts += [label for _, label in drawn]
    return "\n".join(parts) + "\n</svg>\n"


def page(diagrams):
    lines = [
        "# State diagrams",
        "",
        "Drawn by `draw.py` from `states.json`. Tests walk the real state machines over their",
        "states and events and compare every arrow with this page.",
    ]
    for diagram in diagrams:
        lines += ["", f"## {diagram['title']}", "", diagram["text"], ""]
        lines += [f"![{diagram['title']}]({diagram['name']}.svg)", ""]
        lines += ["| state | is |", "|---|---|"]
        lines += [f"| {state['name']} | {state['text']} |" for state in diagram["states"]]
        lines += ["", "| from | to | on |", "|---|---|---|"]
        lines += [
            f"| {edge['from']} | {edge['to']} | {'; '.join(edge['events'])} |"
            for edge in diagram["edges"]
        ]
    return "\n".join(lines) + "\n"


def main():
    here = pathlib.Path(__file__).resolve().parent
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    diagrams = json.loads((here / "states.json").read_text(encoding="utf-8"))["diagrams"]
    for diagram in diagrams:
        (folder / f"{diagram['name']}.svg").write_text(draw(diagram), encoding="utf-8")
    (folder / "README.md").write_text(page(diagrams), encoding="utf-8")


if __name__ == "__main__":
    main()
