"""Pictures of a terminal for the documentation: `python -m tests.support.screens` redraws docs/pictures/screen_*.

Each scene is typed into a shell in tmux, and its screen then becomes an SVG that fetches nothing. Needs tmux (`apt-get
install tmux`). `tests/first_hour/test_terminal_pictures.py` compares the scenes whose text is always the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cq.records import dataclass

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
PROMPT = "$ "
WAIT_S = 30.0  # for a text to appear: the first run may compile the runtime
BIDS = """auction,price,ts
1,10,2024-01-01 10:00:05
2,30,2024-01-01 10:00:20
1,25,2024-01-01 10:00:50
2,45,2024-01-01 10:01:10
1,40,2024-01-01 10:02:30
"""
PER_MINUTE = """-- How many bids did each auction receive in each minute, and what were they worth?
CREATE STREAM bid (auction BIGINT NOT NULL, price BIGINT, ts TIMESTAMP, WATERMARK FOR ts)
WITH (connector = 'file', path = 'bids.csv', format = 'csv');

SELECT window_start, auction, COUNT(*) AS bids, SUM(price) AS total
FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
GROUP BY window_start, window_end, auction;
"""
MISTAKEN = PER_MINUTE.replace("SELECT window_start, auction,", "SELECT window_start, auctoin,")
LONG = """CREATE STREAM bid (WATERMARK FOR ts) WITH (connector = 'generator', workload = 'bids', rows = 400000000);
SELECT auction, MAX(price) AS best FROM bid GROUP BY auction;
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """steps: text to type, and the text to wait for before the next step. changing: it varies between runs."""

    name: str
    title: str
    columns: int
    lines: int
    steps: tuple[tuple[str, str], ...]
    changing: bool = False


SCENES = (
    Scene(
        "screen_first_run",
        "a first run",
        92,
        19,
        (("cat per_minute.cq\n", "auction;\n$"), ("cq run per_minute.cq\n", " · ran ")),
        changing=True,
    ),
    Scene("screen_table", "a table", 58, 9, (("cq run -q \"SELECT * FROM 'trips.csv'\"\n", "--wide"),)),
    Scene("screen_error", "an error", 104, 9, (("cq check mistaken.cq\n", "help: did you mean"),)),
    Scene(
        "screen_shell",
        "the shell, while Tab completes",
        76,
        15,
        (
            ("cq\n", "cq>"),
            ("CREATE STREAM bid WITH (path = 'bids.csv');\n", ";\ncq>"),
            ("SELECT auction, MAX(price) AS best FROM bid GROUP BY auction;\n", "45\ncq>"),
            ("SELECT date_\t", "date_from_unix_date"),
        ),
    ),
    Scene("screen_progress", "progress", 100, 4, (("cq run long.cq -o best.csv\n", " left"),), changing=True),
    Scene("screen_explain", "a plan", 158, 7, (("cq explain per_minute.cq\n", "scan"),)),
    Scene("screen_diff", "two engines compared", 84, 5, (("cq diff per_minute.cq\n", "equal"),)),
)


def files(directory: Path) -> None:
    """The files that the scenes read."""
    texts = {
        "bids.csv": BIDS,
        "per_minute.cq": PER_MINUTE,
        "mistaken.cq": MISTAKEN,
        "long.cq": LONG,
        "trips.csv": TRIPS,
    }
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")


TRIPS = """trip,zip,fare,tip,started,driver,comment
1,00501,12.5,,2024-01-01 10:00:05,Ann,the airport and back
2,10001,8.25,1.5,2024-01-01 10:04:20,Bo,
3,94103,31,4,2024-01-01 10:09:00,Cid,two stops on the way
"""


class Terminal:
    """A shell in tmux."""

    def __init__(self, scene: Scene, directory: Path) -> None:
        self._socket = f"cq-{scene.name}-{os.getpid()}"  # not that of the previous scene, which may still be exiting
        home = directory / ".home"
        home.mkdir(exist_ok=True)
        keep = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8"}
        cached = {k: v for k in ("CQ_CACHE_DIR", "XDG_CACHE_HOME") if (v := os.environ.get(k))}
        keep |= cached or {"XDG_CACHE_HOME": str(Path("~/.cache").expanduser())}
        pairs = [f"{k}={v}" for k, v in {**keep, "PS1": PROMPT, "TERM": "xterm-256color"}.items()]
        shell = ["env", "-i", *pairs, "bash", "--norc", "--noprofile"]
        size = ["-x", str(scene.columns), "-y", str(scene.lines)]
        self._tmux("-f", os.devnull, "new-session", "-d", "-c", str(directory), *size, *shell)
        self._tmux("set", "-g", "status", "off")

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(["tmux", "-L", self._socket, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    def screen(self, colours: bool = False) -> str:
        """The text on the screen."""
        return self._tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def wait(self, text: str) -> None:
        """Wait until the screen shows this text."""
        until = time.monotonic() + WAIT_S
        while text not in self.screen():
            if time.monotonic() > until:
                raise SystemExit(f"{text!r} did not appear:\n{self.screen()}")
            time.sleep(0.05)

    def type(self, text: str) -> None:
        """Type keys like a person."""
        self._tmux("send-keys", "-l", text.replace("\n", "\r"))

    def close(self) -> None:
        self._tmux("kill-server")


FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def drawn(screen: str, scene: Scene) -> str:
    """The picture of a screen with its colours."""
    from rich.console import Console
    from rich.text import Text

    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=scene.columns, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print(Text.from_ansi(screen.rstrip("\n") + "\n"), soft_wrap=False, overflow="crop", no_wrap=True)
    return console.export_svg(title=scene.title, code_format=FORMAT, unique_id=scene.name.replace("_", "-"))


def taken(scene: Scene, directory: Path) -> str:
    """The screen of a scene, with its colours."""
    terminal = Terminal(scene, directory)
    try:
        terminal.wait(PROMPT.rstrip())
        for text, shown in scene.steps:
            terminal.type(text)
            terminal.wait(shown)
        time.sleep(0.3)  # the rest of a line, the prompt
        return terminal.screen(colours=True)
    finally:
        terminal.close()


def main() -> None:
    """Draw the scenes named, or all."""
    if shutil.which("tmux") is None:
        raise SystemExit("tmux is not installed: apt-get install tmux")
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="cq-screens-") as directory:
        files(Path(directory))
        for scene in SCENES:
            if not wanted or scene.name in wanted:
                (PICTURES / f"{scene.name}.svg").write_text(
                    drawn(taken(scene, Path(directory)), scene), encoding="utf-8"
                )
                print(f"docs/pictures/{scene.name}.svg")


if __name__ == "__main__":
    main()
