"""The table of options says what is meant where a text says nothing."""

from __future__ import annotations

import re

from docs_pages import ROOT

from cq.connectors.csv.rows import STANDARD
from cq.connectors.csv.source import CsvOptions
from cq.connectors.formats import CSV_OPTIONS
from cq.connectors.registry import SOURCES, option


def test_what_nobody_writes_is_as_the_table_says() -> None:
    for name, connector in SOURCES.items():
        for key, definition in connector.options.items():
            assert option({"connector": name}, key) == definition.default
    written = CsvOptions.of({key: definition.default for key, definition in CSV_OPTIONS.items()})
    assert CsvOptions.of({}) == CsvOptions() == written
    assert written.dialect == STANDARD


def test_no_default_stands_a_second_time_where_an_option_is_read() -> None:
    keys = "|".join({key for c in SOURCES.values() for key, d in c.options.items() if d.default})
    second = re.compile(rf"""(?:get|option)\("({keys})", ["'][^"']""")
    assert not [p for p in (ROOT / "cq").rglob("*.py") if second.search(p.read_text(encoding="utf-8"))]
