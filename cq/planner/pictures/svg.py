"""A plan as one self-contained SVG file: sources above, results below, colours for a light or a dark page.

All text comes from the query or describes it, and is escaped; nothing in the file is fetched, run or linked to.

All text is of the query or about it, and is escaped; nothing in the file is fetched, run or linked to.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator
from html import escape

from cq.errors import printable
from cq.planner.measured import rows_text
from cq.planner.pictures.layout import Box, Line, PlacedBoxes, layout
from cq.planner.plan_facts import Facts, notable
from cq.records import dataclass

CHARACTER, LINE, PADDING, LEAST_WIDTH = 7.25, 17.0, 11.0, 110.0  # pixels; a 12 pixel monospace character is this wide
COLUMNS = 42  # characters of a line in a box
WHAT_LINES, FACT_LINES = 4, 2  # of an operator's description, and of each fact; the tool tip has all
HUES = (210, 28, 140, 275, 335, 180)  # of the stages, repeating

STYLE = """
text { font: 12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328; }
.page { fill: #ffffff; } .box { fill: #f6f8fa; stroke: #8c959f; } .end { fill: #ddf4ff; stroke: #0969da; }
.name { font-weight: 600; } .view { fill: #0969da; font-weight: 600; }
.soft { fill: #59636e; } .count { fill: #1a7f37; }
.line { fill: none; stroke: #8c959f; stroke-width: 1.5; } .tip { fill: #8c959f; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .page { fill: #0d1117; } .box { fill: #161b22; stroke: #6e7681; }
.end { fill: #0c2d4b; stroke: #4493f8; } .view { fill: #4493f8; } .soft { fill: #9198a1; } .count { fill: #3fb950; }
.line { stroke: #6e7681; } .tip { fill: #6e7681; }
}
"""


@dataclass(frozen=True, slots=True)
class Card:
    """The content of a box. lines: (class, text); the first is the title.  hue: of its stage.  whole: the tool tip."""

    lines: tuple[tuple[str, str], ...]
    inputs: tuple[int, ...]
    kind: str = "box"
    view: str = ""
    hue: int | None = None
    whole: str = ""

    @property
    def box(self) -> Box:
        widest = max(
            _wide(text) + (_wide(self.view) + 2 if self.view and not n else 0) for n, (_, text) in enumerate(self.lines)
        )
        width = max(LEAST_WIDTH, widest * CHARACTER + 2 * PADDING)
        return Box(width, len(self.lines) * LINE + 2 * PADDING - 4, self.inputs)


def draw_svg(facts: Facts) -> str:
    """The plan, or its stages, as a file."""
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + svg_element(facts)


def svg_element(facts: Facts) -> str:
    """The picture as an element, for a page."""
    shown = cards(facts)
    placed = layout([c.box for c in shown])
    legend = list(_legend(facts))
    width, height = max(placed.width, 320.0), placed.height + LINE * len(legend)
    label = escape("plan of " + printable(", ".join(o["name"] for o in facts["outputs"])))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" '
            f'height="{_n(height)}" role="img" aria-label="{label}">',
            f"<style>{STYLE}</style>",
            f'<rect class="page" width="{_n(width)}" height="{_n(height)}"/>',
            *legend,
            f'<g transform="translate({_n((width - placed.width) / 2)} {_n(LINE * len(legend))})">',
            *map(_curve, placed.lines),
            *(_card(c, n, placed) for n, c in enumerate(shown)),
            "</g>",
            "</svg>",
        ]
    )


def cards(facts: Facts) -> list[Card]:
    """A card for every operator, by its number, and for every output after them."""
    nodes = facts["nodes"]
    hues = {n: HUES[place % len(HUES)] for place, s in enumerate(facts.get("stages", ())) for n in s["nodes"]}
    found = []
    for node in nodes:
        said = [("soft", line) for fact in notable(node, nodes) for line in _wrapped(fact, FACT_LINES)]
        if (counts := rows_text(node)) is not None:
            said.append(("count", counts))
        what = printable(node["what"])
        lines = [
            ("name", node["operator"].replace("_", " ")),
            *(("", line) for line in _wrapped(what, WHAT_LINES)),
            *said,
        ]
        whole = f"#{node['number']} {node['operator']} {what}"
        view, hue = _cut(printable(node["called"]), COLUMNS // 2), hues.get(node["number"])
        found.append(Card(tuple(lines), tuple(node["inputs"]), "box", view, hue, whole))
    for output in facts["outputs"]:
        names = [printable(c["name"]) for c in output["columns"]]
        limit = [("soft", f"the first {output['limit']:,} rows")] if output["limit"] is not None else []
        lines = [
            ("name", _cut(printable(output["name"]), COLUMNS)),
            *(("soft", t) for t in _wrapped(", ".join(names), 3)),
        ]
        found.append(Card((*lines, *limit), (output["node"],), "end", whole=", ".join(names)))
    return found


def _wrapped(text: str, lines: int) -> list[str]:
    """At most this many lines; an ellipsis ends the last if there is more. Wide characters take two columns."""
    wide = COLUMNS if _wide(text) == len(text) else COLUMNS // 2
    found = textwrap.wrap(text, wide, break_on_hyphens=False)
    return found if len(found) <= lines else [*found[: lines - 1], _cut(found[lines - 1], wide - 1) + "…"]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _wide(text: str) -> int:
    """Columns that the text takes."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _legend(facts: Facts) -> Iterator[str]:
    """What the colours mean and, for a run, how long it took: a line each."""
    texts: list[tuple[int | None, str]] = []
    if (run := facts.get("run")) is not None:
        end = "" if run["over"] else ", stopped before its end"
        texts.append((None, f"{run['seconds']:.2f} s{end}: read {run['rows_in']:,} rows, wrote {run['rows_out']:,}"))
    for place, stage in enumerate(facts.get("stages", ())):
        busy = f" · busy {stage['busy_ns'] / 1e9:.2f} s" if "busy_ns" in stage else ""
        texts.append((HUES[place % len(HUES)], f"stage {printable(stage['name'])}: {stage['runs']}{busy}"))
    for line, (hue, text) in enumerate(texts, 1):
        y = line * LINE + 4
        if hue is not None:
            yield f'<rect x="{_n(PADDING)}" y="{_n(y - 9)}" width="10" height="10" rx="2" fill="hsl({hue} 60% 50%)"/>'
        yield f'<text x="{_n(PADDING + (16 if hue is not None else 0))}" y="{_n(y)}">{escape(text)}</text>'


def _card(card: Card, number: int, placed: PlacedBoxes) -> str:
    box = card.box
    x, y = placed.centres[number] - box.width / 2, placed.tops[number]
    head = (
        f'<rect class="{card.kind}" x="{_n(x)}" y="{_n(y)}" width="{_n(box.width)}" height="{_n(box.height)}" rx="6"/>'
    )
    parts = ["<g>", f"<title>{escape(card.whole)}</title>", head]
    if card.hue is not None:
        stripe = f'x="{_n(x)}" y="{_n(y + 5)}" width="4" height="{_n(box.height - 10)}"'
        parts.append(f'<rect {stripe} fill="hsl({card.hue} 60% 50%)"/>')
    for line, (kind, text) in enumerate(card.lines):
        view = f' <tspan class="view">{escape(card.view)}</tspan>' if card.view and not line else ""
        at = f'x="{_n(x + PADDING)}" y="{_n(y + PADDING + 9 + line * LINE)}"'
        parts.append(f'<text {at} class="{kind}" xml:space="preserve">{escape(text)}{view}</text>')
    return "\n".join([*parts, "</g>"])


def _curve(line: Line) -> str:
    """Curves between layers, straight down through them, and a tip."""
    (x, y), *rest = line.points
    path = [f"M{_n(x)} {_n(y)}"]
    for place, (to_x, to_y) in enumerate(rest):
        middle = (y + to_y) / 2
        across = place % 2 == 0
        path.append(
            f"C{_n(x)} {_n(middle)} {_n(to_x)} {_n(middle)} {_n(to_x)} {_n(to_y)}" if across else f"V{_n(to_y)}"
        )
        x, y = to_x, to_y
    tip = f"M{_n(x)} {_n(y)}l-4 -7h8z"
    return f'<path class="line" d="{"".join(path)}"/><path class="tip" d="{tip}"/>'


def _n(value: float) -> str:
    """A number of pixels, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")
