"""Explain: a plan and its stages as text, JSON, dot, mermaid or a picture, with all facts about every operator.

All forms are drawn from the facts (`cq.planner.plan_facts`): those that need a layout in `cq.planner.pictures`, run
measurements in `cq.planner.measured`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from cq.errors import printable
from cq.planner.physical.printing import draw_stages
from cq.planner.physical.stages import PhysicalPlan
from cq.planner.pictures.page import draw_page
from cq.planner.pictures.svg import draw_svg
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan_facts import Facts, column_text, headline, plan_facts, rows_name, staged_facts, summary


def explain(
    plan: LogicalPlan, parts: Sequence[PhysicalPlan] | None = None, format: str = "tree", verbose: bool = False
) -> str:
    """The plan, or with `parts` its stages.

    format: tree, json, dot, mermaid, svg or html.  verbose: a tree shows everything known about each operator, not only
    what distinguishes it from others.
    """
    if parts is not None and format == "tree":
        return draw_stages(parts)
    facts = plan_facts(plan) if parts is None else staged_facts(parts)
    return picture(facts, format) if format != "tree" else draw_tree(facts, verbose)


def picture(facts: Facts, format: str) -> str:
    """The facts in a format other than a tree."""
    match format:
        case "json":
            return json.dumps(facts, indent=2)
        case "dot":
            return draw_dot(facts)
        case "mermaid":
            return draw_mermaid(facts)
        case "svg":
            return draw_svg(facts)
        case "html":
            return draw_page(facts)
        case _:
            raise AssertionError(f"no format {format}")


# ----------------------------------------------------------------------------------------------------------- pictures


def draw_tree(facts: Facts, verbose: bool = False) -> str:
    """Each output with the operators below it, one per line; one that is read twice is drawn once and referred to
    afterwards.

    verbose: a second line for each, with all facts, and further lines if they do not fit.
    """
    nodes = facts["nodes"]
    lines: list[str] = []
    drawn: set[int] = set()

    def draw(number: int, first: str, rest: str) -> None:
        node = nodes[number]
        if number in drawn:
            lines.append(f"{first}#{number} {node['operator']}{rows_name(node)}  (above)")
            return
        drawn.add(number)
        if verbose:
            lines.append(first + f"#{number} {node['operator']}{rows_name(node)}  {printable(node['what'])}".rstrip())
            below = rest + ("│ " if node["inputs"] else "  ") + "    "
            lines.append(below + " · ".join(summary(node)))
            lines.extend(below + line for line in node.get("in_detail", ()))
        else:
            lines.append(first + headline(node, nodes))
        for i in node["inputs"]:
            last = i == node["inputs"][-1]
            draw(i, rest + ("└ " if last else "├ "), rest + ("  " if last else "│ "))

    for output in facts["outputs"]:
        limit = f" limit {output['limit']}" if output["limit"] is not None else ""
        lines.append(f"{printable(output['name'])}{limit}: {', '.join(map(column_text, output['columns']))}")
        draw(output["node"], "└ ", "  ")
    return "\n".join(lines)


def draw_dot(facts: Facts) -> str:
    """The plan as a Graphviz graph, stages as clusters."""
    lines = ["digraph plan {", "  rankdir=BT; node [shape=box, fontname=monospace];"]
    for n in facts["nodes"]:
        lines.append(f"  n{n['number']} [label={_quoted(_label(n))}];")
        lines += [f"  n{i} -> n{n['number']};" for i in n["inputs"]]
    for s in facts.get("stages", ()):
        members = " ".join(f"n{n};" for n in s["nodes"])
        lines.append(f"  subgraph cluster_{s['part']}_{s['name']} {{ label={_quoted(_stage_label(s))}; {members} }}")
    for i, o in enumerate(facts["outputs"]):
        lines.append(f"  out{i} [label={_quoted(o['name'])}, shape=ellipse]; n{o['node']} -> out{i};")
    return "\n".join([*lines, "}"])


def draw_mermaid(facts: Facts) -> str:
    """The plan as a mermaid flowchart."""
    lines = ["flowchart BT"]
    for n in facts["nodes"]:
        lines.append(f"  n{n['number']}[{_quoted(_label(n))}]")
        lines += [f"  n{i} --> n{n['number']}" for i in n["inputs"]]
    for s in facts.get("stages", ()):
        head = f"  subgraph {s['name']}{s['part']}[{_quoted(_stage_label(s))}]"
        lines += [head, *(f"    n{n}" for n in s["nodes"]), "  end"]
    for i, o in enumerate(facts["outputs"]):
        lines.append(f"  n{o['node']} --> out{i}(({_quoted(o['name'])}))")
    return "\n".join(lines)


def _stage_label(stage: Facts) -> str:
    return f"{stage['name']}: {stage['runs']}"


def _label(node: Facts) -> str:
    return f"#{node['number']} {node['operator']} {node['what']}"


def _quoted(text: str) -> str:
    """A label that cannot break out of its quotes: anything that would end it, or start markup, is written as an
    entity."""
    safe = printable(text)
    for c, entity in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;"), ("\\", "&#92;")):
        safe = safe.replace(c, entity)
    return f'"{safe}"'
