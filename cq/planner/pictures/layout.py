"""Layered layout of an acyclic graph: each box below those it reads, few crossings, short lines.

Boxes get layers by the longest path from a source, then an order in their layer (each at the mean of its neighbours,
after Sugiyama), then positions: as near to the mean of their neighbours as the boxes beside them allow. A line that
passes through layers has a bend in each, which is placed in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

from cq.records import dataclass, field

GAP, LAYER_GAP, BEND_WIDTH = 28.0, 46.0, 12.0  # pixels between boxes of a layer, between layers, for a passing line
ORDERINGS, MOVES = 12, 16  # rounds; more of either changed no picture of the shipped queries

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A box to be placed. inputs: the boxes it reads, by index in the list, all before it."""

    width: float
    height: float
    inputs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A line from a box down to one that reads it. points: two for each layer it passes, and its ends."""

    source: int
    target: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class PlacedBoxes:
    """centres: of the boxes, x only.  tops: their upper sides."""

    width: float
    height: float
    centres: tuple[float, ...]
    tops: tuple[float, ...]
    lines: tuple[Line, ...]


@dataclass(slots=True)
class LayeredGraph:
    """Boxes and bends, by number, in layers. above, below: the neighbours of each in the adjacent layers.

    layer_of: of the boxes.
    """

    layers: list[list[int]]
    layer_of: Sequence[int]
    widths: list[float]
    above: list[list[int]]
    below: list[list[int]]
    bends: dict[tuple[int, int], list[int]] = field(
        default_factory=dict
    )  # (target, input number) -> from top to bottom


def layout(boxes: Sequence[Box]) -> PlacedBoxes:
    """The positions of the boxes and their lines."""
    graph = _graph(boxes, _layers(boxes))
    _order(graph)
    centres = _places(graph)
    left = min((centres[i] - w / 2 for i, w in enumerate(graph.widths)), default=0.0) - GAP
    centres = [x - left for x in centres]
    right = max((x + w / 2 for x, w in zip(centres, graph.widths, strict=True)), default=0.0) + GAP
    heights = [max((boxes[i].height for i in at if i < len(boxes)), default=0.0) for at in graph.layers]
    rows = [(GAP + sum(heights[:n]) + n * LAYER_GAP, height) for n, height in enumerate(heights)]
    ends = [(target, number) for target, box in enumerate(boxes) for number in range(len(box.inputs))]
    lines = tuple(_line(boxes, graph, rows, centres, *end) for end in ends)
    bottom = sum(rows[-1]) + GAP if rows else 2 * GAP
    return PlacedBoxes(right, bottom, tuple(centres[: len(boxes)]), tuple(rows[n][0] for n in graph.layer_of), lines)


def _layers(boxes: Sequence[Box]) -> list[int]:
    """The layer of each box; a source is just above the first box that reads it."""
    found: list[int] = []
    first_reader: dict[int, int] = {}
    for number, box in enumerate(boxes):
        assert all(i < number for i in box.inputs), "a box before one that it reads"
        found.append(1 + max((found[i] for i in box.inputs), default=-1))
        for i in box.inputs:
            first_reader[i] = min(first_reader.get(i, found[number]), found[number])
    return [first_reader[n] - 1 if not box.inputs and n in first_reader else found[n] for n, box in enumerate(boxes)]


def _graph(boxes: Sequence[Box], layer_of: Sequence[int]) -> LayeredGraph:
    layers: list[list[int]] = [[] for _ in range(1 + max(layer_of, default=-1))]
    for number, layer in enumerate(layer_of):
        layers[layer].append(number)
    graph = LayeredGraph(layers, layer_of, [b.width for b in boxes], [[] for _ in boxes], [[] for _ in boxes])
    for target, box in enumerate(boxes):
        for number, source in enumerate(box.inputs):
            last = source
            for layer in range(layer_of[source] + 1, layer_of[target]):
                bend = len(graph.widths)
                graph.widths.append(BEND_WIDTH)
                graph.above.append([])
                graph.below.append([])
                layers[layer].append(bend)
                graph.bends.setdefault((target, number), []).append(bend)
                _join(graph, last, bend)
                last = bend
            _join(graph, last, target)
    return graph


def _join(graph: LayeredGraph, upper: int, lower: int) -> None:
    graph.below[upper].append(lower)
    graph.above[lower].append(upper)


def _order(graph: LayeredGraph) -> None:
    """Put the layers into the order with the fewest crossings seen."""
    best, fewest = [list(at) for at in graph.layers], _crossings(graph)
    for turn in range(ORDERINGS):
        down = turn % 2 == 0
        beside = graph.above if down else graph.below
        for at in graph.layers if down else reversed(graph.layers):
            rank = {i: place for layer in graph.layers for place, i in enumerate(layer)}
            at.sort(key=lambda i: _mean([rank[j] for j in beside[i]], rank[i]))
        crossings = _crossings(graph)
        if crossings < fewest:
            best, fewest = [list(at) for at in graph.layers], crossings
    graph.layers[:] = best


def _crossings(graph: LayeredGraph) -> int:
    found = 0
    for upper, lower in zip(graph.layers, graph.layers[1:], strict=False):
        rank = {i: place for place, i in enumerate(lower)}
        ends = [rank[j] for i in upper for j in sorted(graph.below[i], key=rank.__getitem__)]
        found += sum(a > b for n, a in enumerate(ends) for b in ends[n + 1 :])
    return found


def _places(graph: LayeredGraph) -> list[float]:
    """The centre of every box and bend."""
    centres = [0.0] * len(graph.widths)
    for at in graph.layers:
        _settle(graph, at, centres, [0.0] * len(at))
    for turn in range(MOVES):
        down = turn % 2 == 0
        beside = graph.above if down else graph.below
        for at in graph.layers if down else reversed(graph.layers):
            _settle(graph, at, centres, [_mean([centres[j] for j in beside[i]], centres[i]) for i in at])
    return centres


def _settle(graph: LayeredGraph, at: Sequence[int], centres: list[float], wanted: Sequence[float]) -> None:
    """Place the boxes of a layer as near to their wanted positions as possible without overlap: isotonic regression.

    With its distance from the first subtracted, a box must not be left of the one before; if it would be, both form one
    block, at the mean of its members' wanted positions.
    """
    offsets, offset = [], 0.0
    for place, i in enumerate(at):
        offset += (graph.widths[at[place - 1]] + graph.widths[i]) / 2 + GAP if place else 0.0
        offsets.append(offset)
    blocks: list[tuple[float, int]] = []  # (mean, members)
    for want, shift in zip(wanted, offsets, strict=True):
        mean, count = want - shift, 1
        while blocks and blocks[-1][0] > mean:
            other, members = blocks.pop()
            mean, count = (mean * count + other * members) / (count + members), count + members
        blocks.append((mean, count))
    settled = [mean for mean, count in blocks for _ in range(count)]
    for i, base, shift in zip(at, settled, offsets, strict=True):
        centres[i] = base + shift


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _line(
    boxes: Sequence[Box],
    graph: LayeredGraph,
    rows: Sequence[tuple[float, float]],
    centres: Sequence[float],
    target: int,
    number: int,
) -> Line:
    """The line of an input of a box. rows: top and height of each layer."""
    inputs = boxes[target].inputs
    source = inputs[number]
    layer = graph.layer_of[source]
    points = [(centres[source], rows[layer][0] + boxes[source].height)]
    for distance, bend in enumerate(graph.bends.get((target, number), ()), 1):
        top, height = rows[layer + distance]
        points += [(centres[bend], top), (centres[bend], top + height)]
    step = min(40.0, boxes[target].width / (len(inputs) + 1))
    points.append((centres[target] + (number - (len(inputs) - 1) / 2) * step, rows[graph.layer_of[target]][0]))
    return Line(source, target, tuple(points))
