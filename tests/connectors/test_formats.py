"""A format is one entry: what it declares is all that others ask, and one that leaves something out is refused."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import cq
from cq.cli import execute
from cq.connectors import formats
from cq.connectors.followed import check_followed
from cq.connectors.formats import FORMATS, Format, ending_format, loaded, register
from cq.connectors.readings import csv
from cq.connectors.readings.protocol import TextReading, TypedReading, reading_of
from cq.connectors.sinks.writers import csv_sink
from cq.records import fields, replace

BARRED = {"delimiter": "|"}
READING = replace(
    csv.READING,
    read=lambda text, name, options, *rest: csv.READING.read(text, name, BARRED, *rest),
    guess=lambda head, name, options: csv.READING.guess(head, name, BARRED),
    header=lambda text, name, options, whole: csv.READING.header(text, name, BARRED, whole),
    ends=lambda text, options: csv.READING.ends(text, BARRED),
    begins=lambda head: head.startswith(b"a|"),
    told=lambda head: len(head) >= 2,
)


def barred_sink(path: str, options: Mapping[str, str]):
    """The rows with bars between the cells."""
    return csv_sink(path, BARRED)


@pytest.fixture
def probe() -> Iterator[Format]:
    made = Format(
        name="barred",
        title="Barred",
        endings={".bar": {}},
        magics=(),
        packs=True,
        grows=True,
        pipes=True,
        months=True,
        options={},
        sink_options={},
        reading=f"{__name__}:READING",
        sink=f"{__name__}:barred_sink",
    )
    register(made)
    yield made
    del FORMATS["barred"]


ROWS = "a|b\n1|x\n2|y, z\n"
FOUND = {"a": [1, 2], "b": ["x", "y, z"]}


def read(text: str) -> object:
    return cq.sql(text).run(engine="reference").to_arrow().to_pydict()


@pytest.mark.usefixtures("probe")
def test_a_format_that_declares_everything_is_read_in_files_packed_files_and_several_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("r.bar").write_text(ROWS)
    Path("r.bar.gz").write_bytes(gzip.compress(ROWS.encode()))
    assert read("SELECT * FROM 'r.bar'") == read("SELECT * FROM 'r.bar.gz'") == FOUND
    Path("s.bar").write_text("b|a\nv|3\n")
    assert read("SELECT * FROM '?.bar'") == {"a": [1, 2, 3], "b": ["x", "y, z", "v"]}
    Path("s.bar").write_text("b\nv\n")
    with pytest.raises(cq.CqError, match=r"s\.bar"):  # its header says that it lacks a column
        read("SELECT * FROM '?.bar'")


@pytest.mark.usefixtures("probe")
def test_a_format_that_declares_everything_is_told_by_its_first_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(open_pipe(ROWS)))
    assert read("SELECT * FROM '-'") == FOUND


def open_pipe(text: str) -> io.BufferedReader:
    """The reading end of a pipe that holds this text."""
    there, here = os.pipe()
    os.write(here, text.encode())
    os.close(here)
    return open(there, "rb")


@pytest.mark.usefixtures("probe")
def test_a_format_that_declares_everything_is_written_by_the_ending_of_the_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("r.bar").write_text(ROWS)
    cq.sql("CREATE SINK o WITH (path = 'o.bar'); INSERT INTO o SELECT b, a FROM 'r.bar'").run(engine="reference")
    assert Path("o.bar").read_text() == "b|a\nx|1\ny, z|2\n"


@pytest.mark.usefixtures("probe")
def test_a_format_that_declares_everything_is_generated_by_the_ending_of_the_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert execute(["gen", "tpch_region", "-o", "r.bar"]) == 0
    assert execute(["gen", "tpch_region", "-o", "r.csv"]) == 0
    assert Path("r.bar").read_text() == Path("r.csv").read_text().replace(",", "|") != ""


@pytest.mark.usefixtures("probe")
def test_a_name_of_two_parts_is_taken_for_a_path_whatever_its_ending():
    with pytest.raises(cq.CqError) as caught:
        read("SELECT * FROM r.bar")
    assert "write the path of a file in quotes: 'r.bar'" in caught.value.diagnostics[0].help


def test_a_file_that_grows_is_followed_where_the_format_says_that_it_may_be(probe, tmp_path):
    check_followed({"path": "r.bar"})
    FORMATS["barred"] = replace(probe, grows=False)
    with pytest.raises(cq.CqError, match="Barred file, which is complete only when it is closed"):
        check_followed({"path": "r.bar"})


def test_a_format_that_packs_its_parts_is_not_packed_as_a_whole(probe):
    FORMATS["barred"] = replace(probe, packs=False)
    with pytest.raises(cq.CqError, match="cannot be barred and compressed"):
        formats.codec_of("r.bar.gz", "", "barred")


@pytest.mark.parametrize(
    ("made", "name"), [(made, f.name) for made in (Format, TextReading, TypedReading) for f in fields(made)]
)
def test_a_format_that_leaves_a_declaration_out_is_refused_by_its_name(made, name):
    example = {Format: FORMATS["csv"], TextReading: csv.READING, TypedReading: reading_of("arrow")}[made]
    said = {f.name: getattr(example, f.name) for f in fields(made)}
    made(**said)
    del said[name]
    with pytest.raises(TypeError, match=name):
        made(**said)


@pytest.mark.parametrize("kind", FORMATS)
def test_what_an_entry_names_is_there_and_no_ending_names_two_formats(kind):
    entry = FORMATS[kind]
    reading = reading_of(kind)
    assert callable(loaded(entry.sink)) and isinstance(reading, TextReading if not entry.magics else TypedReading)
    assert not entry.grows or isinstance(reading, TextReading)
    assert [ending_format(f"x{ending}") for ending in entry.endings] == [kind] * len(entry.endings)


def test_one_format_is_what_no_other_is():
    assert [k for k in FORMATS if isinstance(r := reading_of(k), TextReading) and r.begins is None] == ["csv"]


@pytest.mark.parametrize("ending", [".tsv", ".tsv.gz", ".tsv.bz2", ".TSV.lz4"])
def test_the_options_of_an_ending_hold_however_the_file_is_packed(ending):
    """Of .tsv.bz2 and .tsv.lz4 the comma was the delimiter."""
    assert formats.with_ending({}, f"x{ending}") == {"delimiter": "\t"}
    assert formats.with_ending({"format": "csv"}, f"x{ending}") == {"format": "csv"}
