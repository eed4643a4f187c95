"""A plan as one page: its picture, and a table with all facts about each operator. Nothing is fetched."""

from __future__ import annotations

from html import escape

from cq.errors import printable
from cq.planner.measured import rows_text
from cq.planner.pictures.svg import svg_element
from cq.planner.plan_facts import Facts, summary

STYLE = """
:root { color-scheme: light dark; }
body { margin: 1rem; font: 14px system-ui, sans-serif; background: #ffffff; color: #1f2328; }
.picture { overflow-x: auto; text-align: center; }
table { border-collapse: collapse; margin-top: 1rem; } td, th { padding: .3rem .6rem; text-align: left; }
td { border-top: 1px solid #d1d9e0; vertical-align: top; } code { overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { body { background: #0d1117; color: #e6edf3; } td { border-color: #3d444d; } }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # nothing is fetched or run, whatever a text contains


def draw_page(facts: Facts) -> str:
    """The plan as a self-contained HTML file."""
    title = escape("plan of " + printable(", ".join(o["name"] for o in facts["outputs"])))
    rows = "\n".join(map(_row, facts["nodes"]))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="{POLICY}"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<div class="picture">
{svg_element(facts)}
</div>
<table>
<tr><th>operator</th><th>what it does</th><th>what is known of it</th></tr>
{rows}
</table>
</body>
</html>"""


def _row(node: Facts) -> str:
    name = f"#{node['number']} {node['operator']} {printable(node['called'])}".rstrip()
    known = [*summary(node), *([counts] if (counts := rows_text(node)) is not None else [])]
    cells = (escape(name), f"<code>{escape(printable(node['what']))}</code>", escape(" · ".join(known)))
    return f"<tr>{''.join(f'<td>{c}</td>' for c in cells)}</tr>"
