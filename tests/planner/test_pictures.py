"""Pictures of plans: boxes that do not overlap, files that are well formed and fetch nothing, whatever a query says."""

from __future__ import annotations

import random
import re
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from paths import QUERIES, SHIPPED
from planner_fixture import bound, infer, plan_of

from cq.codegen.lane_keys import decides_lane
from cq.errors import SourceText
from cq.grammar.parser import parse
from cq.planner.binding.binder import bind
from cq.planner.binding.catalog import Environment
from cq.planner.explain import explain, picture
from cq.planner.physical.choose import choose
from cq.planner.pictures.layout import GAP, LAYER_GAP, Box, PlacedBoxes, layout
from cq.planner.pictures.svg import COLUMNS, cards
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan_facts import plan_facts

SVG = "{http://www.w3.org/2000/svg}"


def shipped(name: str) -> LogicalPlan:
    text = (QUERIES / name).read_text(encoding="utf-8")
    return bind(parse(SourceText(name, text)), Environment(infer=infer)).plan


def drawn_boxes(seed: int) -> list[Box]:
    """A graph in which most boxes read a recent one, and some two."""
    draw = random.Random(seed)
    made: list[Box] = []
    for number in range(draw.randint(1, 100)):
        recent = range(max(0, number - 8), number)
        inputs = draw.sample(recent, min(len(recent), draw.choice((0, 1, 1, 1, 2))))
        made.append(Box(draw.uniform(80, 330), draw.uniform(40, 160), tuple(inputs)))
    return made


def check_places(boxes: list[Box], placed: PlacedBoxes) -> None:
    """Everything is inside the picture, no two boxes touch, lines go down from box to box."""
    sides = [(x - b.width / 2, x + b.width / 2) for x, b in zip(placed.centres, boxes, strict=True)]
    spans = [(top, top + b.height) for top, b in zip(placed.tops, boxes, strict=True)]
    assert all(left >= 0 and right <= placed.width for left, right in sides)
    assert all(top >= 0 and bottom <= placed.height for top, bottom in spans)
    for a, b in combinations(range(len(boxes)), 2):
        beside = sides[a][1] + GAP <= sides[b][0] + 1e-6 or sides[b][1] + GAP <= sides[a][0] + 1e-6
        assert beside or spans[a][1] < spans[b][0] or spans[b][1] < spans[a][0]
    assert sorted((n.source, n.target) for n in placed.lines) == sorted(
        (i, target) for target, b in enumerate(boxes) for i in b.inputs
    )
    for line in placed.lines:
        assert line.points[0][1] == pytest.approx(spans[line.source][1])
        assert line.points[-1][1] == pytest.approx(spans[line.target][0])
        assert all(a[1] <= b[1] + 1e-6 for a, b in pairwise(line.points))


@pytest.mark.parametrize("seed", range(12))
def test_boxes_of_any_graph_stand_apart(seed: int) -> None:
    boxes = drawn_boxes(seed)
    check_places(boxes, layout(boxes))


def test_chain_is_straight_and_a_source_stands_above_its_reader() -> None:
    #  0 - 1 - 2 - 4   and 3 - 4
    boxes = [Box(100, 50), Box(60, 50, (0,)), Box(140, 50, (1,)), Box(100, 30), Box(80, 50, (2, 3))]
    placed = layout(boxes)
    assert placed.centres[0] == pytest.approx(placed.centres[1]) == pytest.approx(placed.centres[2])
    assert placed.tops[3] == placed.tops[2] and placed.tops[1] - placed.tops[0] == 50 + LAYER_GAP


def test_lines_of_a_simple_graph_do_not_cross() -> None:
    # two chains whose boxes come in turn, the second first in the lower layer
    boxes = [Box(50, 20), Box(50, 20), Box(50, 20, (1,)), Box(50, 20, (0,))]
    placed = layout(boxes)
    assert (placed.centres[0] < placed.centres[1]) == (placed.centres[3] < placed.centres[2])


def test_nothing_is_laid_out_as_nothing() -> None:
    assert layout([]).lines == ()


@pytest.mark.parametrize("name", [str(p.relative_to(QUERIES)) for p in SHIPPED[::5]])
def test_pictures_of_shipped_queries_are_well_formed_and_show_every_operator(name: str) -> None:
    plan = shipped(name)
    for text in (explain(plan, format="svg"), explain(plan, choose(plan, 2, decides_lane), "svg")):
        root = ElementTree.fromstring(text.encode())
        boxes = [r for r in root.iter(SVG + "rect") if r.get("class") == "box"]
        assert len(boxes) >= len(plan.nodes()) and root.get("viewBox")
    check_places(found := [c.box for c in cards(plan_facts(plan))], layout(found))


def test_text_of_a_box_fits_into_it() -> None:
    for card in cards(plan_facts(shipped("lr_tolls.cq"))):
        assert all(len(text) + len(card.view) <= COLUMNS + 8 for _, text in card.lines)
        assert len(card.lines) < 12


HOSTILE = '</text></title></style><script>alert("1")</script>]]>&amp;'


@pytest.mark.parametrize("format", ["svg", "html"])
def test_hostile_text_stays_text(format: str) -> None:
    name = HOSTILE.replace('"', '""')
    facts = plan_facts(bound(f"SELECT price AS \"{name}\" FROM bid WHERE item <> '{HOSTILE}';").plan)
    facts["nodes"][0]["what"] += "\x1b\u202e\ufffe\ud800\x00"  # a query cannot say these, a parameter can
    text = picture(facts, format)
    document = text if format == "svg" else text.removeprefix("<!DOCTYPE html>\n")
    tags = {e.tag.removeprefix(SVG) for e in ElementTree.fromstring(document.encode()).iter()}
    assert "script" not in tags and "\x1b" not in text and "\u202e" not in text
    assert "alert(" in text, "it is shown"


def test_pictures_fetch_nothing() -> None:
    plan = shipped("lr_tolls.cq")
    for format in ("svg", "html"):
        text = explain(plan, format=format).replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert not re.search(r"https?:|url\(|@import|href|src=", text)
    assert "default-src 'none'" in text


def test_names_of_views_and_wide_characters_are_in_the_picture() -> None:
    text = explain(
        plan_of("CREATE VIEW 顧客 AS SELECT price FROM bid WHERE price > 1; SELECT price FROM 顧客;"), format="svg"
    )
    assert '<tspan class="view">顧客</tspan>' in text


def test_long_texts_are_wrapped_and_cut_but_whole_in_the_tool_tip() -> None:
    names = ", ".join(f"price AS a_rather_long_name_of_a_column_{n}" for n in range(60))
    plan = plan_of(f"SELECT {names} FROM bid;")
    text = explain(plan, format="svg")
    root = ElementTree.fromstring(text.encode())
    shown = [e.text or "" for e in root.iter(SVG + "text")]
    assert max(map(len, shown)) <= COLUMNS and any(t.endswith("…") for t in shown)
    assert any("column_59" in (e.text or "") for e in root.iter(SVG + "title"))
