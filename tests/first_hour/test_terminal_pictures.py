"""The pictures of the documentation show what stands on the screen today, and browsers draw the plans."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
import screens
from terminal import on_terminal

from cq.compiler.passes import compile

SVG = "{http://www.w3.org/2000/svg}"
STILL = [s for s in screens.SCENES if not s.changing and s.name != "screen_shell"]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def lines_of(name: str) -> list[str]:
    """The lines of a picture, from above."""
    root = ElementTree.parse(screens.PICTURES / f"{name}.svg").getroot()
    rows: dict[float, list[tuple[float, str]]] = {}
    for text in root.iter(f"{SVG}text"):
        if "clip-path" in text.attrib:
            rows.setdefault(float(text.attrib["y"]), []).append((float(text.attrib["x"]), text.text or ""))
    joined = ("".join(part for _, part in sorted(row)) for _, row in sorted(rows.items()))
    return [line.replace("\xa0", " ").rstrip() for line in joined]


def test_every_scene_has_its_picture_and_is_shown() -> None:
    drawn = {p.stem for p in screens.PICTURES.glob("screen_*.svg")}
    assert drawn == {s.name for s in screens.SCENES}, "python -m tests.support.screens draws them anew"
    pages = [screens.ROOT / "README.md", *(screens.ROOT / "docs").glob("*.md")]
    texts = "".join(p.read_text(encoding="utf-8") for p in pages)
    assert {name for name in drawn if f"pictures/{name}.svg" in texts} == drawn


@pytest.mark.parametrize("picture", sorted(screens.PICTURES.glob("*.svg")), ids=lambda p: p.stem)
def test_picture_fetches_nothing(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"' )]*", text)) == {"http://www.w3.org/2000/svg"}
    assert "<script" not in text and "@import" not in text and "url(h" not in text


@pytest.mark.parametrize("scene", STILL, ids=lambda s: s.name)
def test_picture_shows_what_the_command_says_today(scene: screens.Scene, place: Path) -> None:
    screens.files(place)
    ((typed, _),) = scene.steps
    command = typed.rstrip("\n").removeprefix("cq ")
    seen = on_terminal(command, columns=scene.columns, rows=scene.lines).rstrip("\n").split("\n")
    folded = [line[i : i + scene.columns] for line in seen for i in range(0, max(1, len(line)), scene.columns)]
    shown = lines_of(scene.name)
    assert shown[0] == screens.PROMPT + typed.rstrip("\n")
    said = [line for line in folded if not line.startswith("cq: ")]
    assert shown[1 : 1 + len(said)] == said, "python -m tests.support.screens draws it anew"


MEASURE = """<script>
const faults = [], box = e => e.getBoundingClientRect();
const page = box(document.querySelector('svg'));
for (const group of document.querySelectorAll('svg g')) {
  const rect = group.querySelector(':scope > rect.box, :scope > rect.end');
  if (!rect) continue;
  const around = box(rect);
  for (const text of group.querySelectorAll(':scope > text')) {
    const b = box(text);
    if (b.left < around.left || b.right > around.right || b.top < around.top - 1 || b.bottom > around.bottom + 1)
      faults.push(text.textContent);
  }
  if (around.left < page.left || around.right > page.right || around.bottom > page.bottom) faults.push('a box');
}
const boxes = document.querySelectorAll('svg rect.box, svg rect.end').length;
document.body.innerHTML = '<pre>' + JSON.stringify({boxes, faults}).replace(/</g, '&lt;') + '</pre>';
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
@pytest.mark.parametrize("format_", ["svg", "html"])
def test_browser_finds_every_text_of_a_plan_inside_its_box(format_: str, tmp_path: Path) -> None:
    query = compile((screens.ROOT / "queries" / "lr_tolls.cq").read_text(encoding="utf-8"))
    drawn = query.explain(format=format_)
    allowed = "default-src 'none'; script-src 'unsafe-inline'"  # the page itself runs nothing
    page = drawn.replace("default-src 'none'", allowed).replace("</body>", MEASURE + "</body>")
    if format_ == "svg":
        page = f"<!doctype html><body>{drawn.partition('?>')[2]}{MEASURE}</body>"
    (tmp_path / "plan.html").write_text(page, encoding="utf-8")
    assert BROWSER is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    address = (tmp_path / "plan.html").as_uri()
    done = subprocess.run([BROWSER, *options, address], check=True, capture_output=True, text=True, timeout=120)
    told = re.search(r"<pre>(.*?)</pre>", done.stdout, re.DOTALL)
    assert told is not None, done.stdout[-500:]
    boxes = len(re.findall(r'<rect class="(?:box|end)"', drawn))
    assert boxes > 10 and json.loads(html.unescape(told[1])) == {"boxes": boxes, "faults": []}
