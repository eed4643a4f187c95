"""Every planted bug has the one place it is planted in: mutants run seldom, and code moves."""

from __future__ import annotations

import importlib
import sys

import pytest
from mutate import Mutant
from paths import ROOT, TESTS

FILES = sorted(TESTS.rglob("test_*mutants.py"))


@pytest.mark.parametrize("name", [f.stem for f in FILES])
def test_each_mutant_finds_its_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = (f for f in FILES if f.stem == name)
    monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
    lost = []
    for title, mutant in importlib.import_module(name).MUTANTS.items():
        if isinstance(mutant, Mutant):
            source = (ROOT / (mutant.module.replace(".", "/") + ".py")).read_text(encoding="utf-8")
            for old, new in ((mutant.old, mutant.new), *mutant.more):
                if source.count(old) != 1:
                    lost.append(f"{title}: {source.count(old)} places like {old!r}")
                source = source.replace(old, new)
    assert not lost
