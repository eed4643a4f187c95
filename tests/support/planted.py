"""A module of the runtime with one bug planted, to see that a test notices."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace


def planted(module: str, good: str, bad: str) -> SimpleNamespace:
    """The names of `module` with the text `good`, which occurs once, replaced by `bad`. The module itself is
    unchanged."""
    path = importlib.import_module(module).__file__
    assert path is not None
    source = Path(path).read_text(encoding="utf-8")
    assert source.count(good) == 1, f"{source.count(good)} times in {module}: {good!r}"
    scope = {"__name__": f"mutant of {module}", "__file__": path}
    exec(compile(source.replace(good, bad), f"mutant of {path}", "exec"), scope)
    return SimpleNamespace(**scope)


def original(module: str) -> SimpleNamespace:
    """The names of the unchanged module."""
    return SimpleNamespace(**vars(importlib.import_module(module)))
