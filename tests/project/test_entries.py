"""An entry that lacks something, contradicts itself or takes a name again is refused when it is registered.

Of operators: planner/test_operator_protocol.py. That no field of an entry has a default: runtime/test_registries.py,
connectors/test_formats.py.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from docs_pages import ROOT

from cq import workloads
from cq.codegen import flow
from cq.codegen import operators as _of_kernels  # noqa: F401  they register themselves
from cq.codegen.expressions import emit, forms
from cq.codegen.state import aggregates as recipes
from cq.codegen.state import array_aggregates, entry_moves
from cq.connectors import formats
from cq.connectors.access import FileAccess
from cq.connectors.generator import _OURS
from cq.connectors.option_kinds import OptionDef, OptionKind
from cq.connectors.registry import SINKS, SOURCES, SinkConnector, SourceConnector, register_sink, register_source
from cq.connectors.sinks.writers import open_sink
from cq.entries import BadEntry, refuse
from cq.lang import aggregates, functions
from cq.lang.aggregates.registry import Grows, Keeps
from cq.lang.schema import Field
from cq.lang.types import BIGINT
from cq.planner.binding.functions import foreign_calls, shorthands
from cq.planner.binding.settings import SETTINGS
from cq.planner.physical import choose, printing
from cq.planner.rewriting import rules
from cq.records import replace
from cq.reference import operator as reference
from cq.reference import operators as _of_the_reference  # noqa: F401  they register themselves
from cq.runtime.containers import protocol as containers
from cq.runtime.engine.ways import placement
from cq.runtime.engine.ways import protocol as runners
from cq.runtime.engine.ways.chains import register_scheme, register_together
from cq.runtime.engine.ways.lock import lock_admit, lock_finish, lock_ready
from cq.spark import context as spark
from cq.spark import operators as _of_spark  # noqa: F401  they register themselves
from cq.ways import HEURISTICS, PLACEMENTS, SCHEMES, TRAITS, WAY_OF_SCHEME, Way, verify
from cq.workloads import WORKLOADS

ABS, SQRT = functions.SCALARS["abs"], functions.SCALARS["sqrt"]
SUM, ANY_VALUE = aggregates.AGGREGATES["sum"], aggregates.AGGREGATES["any_value"]
TABLE, PANES = containers.containers()["table"], containers.containers()["panes"]
LOOP, LANES = runners.runners()[Way.LOOP], runners.runners()[Way.LANES]
CSV, BIDS = formats.FORMATS["csv"], WORKLOADS["bids"]
CLASH = OptionDef(OptionKind.TEXT, "another one")


def scalar(of: functions.Scalar = ABS, **changes: Any) -> Callable[[], object]:
    return lambda: functions.register(replace(of, **{"name": "probe", **changes}))


def aggregate(of: aggregates.AggregateFunction = SUM, **changes: Any) -> Callable[[], object]:
    return lambda: aggregates.register(replace(of, **{"name": "probe", **changes}))


def container(of: containers.Container = TABLE, **changes: Any) -> Callable[[], object]:
    return lambda: containers.register(replace(of, **{"name": "probe", **changes}))


def file_format(of: formats.Format = CSV, **changes: Any) -> Callable[[], object]:
    bare = {"name": "probe", "endings": {}, "magics": (), "options": {}, "sink_options": {}}
    return lambda: formats.register(replace(of, **{**bare, **changes}))


def source(of: SourceConnector = SOURCES["file"], **changes: Any) -> Callable[[], object]:
    return lambda: register_source(replace(of, **{"name": "probe", **changes}))


def sink(of: SinkConnector = SINKS["file"], **changes: Any) -> Callable[[], object]:
    return lambda: register_sink(replace(of, **{"name": "probe", **changes}))


def runner(of: runners.Runner = LOOP, **changes: Any) -> Callable[[], object]:
    return lambda: runners.register(replace(of, **changes))


def workload(**changes: Any) -> Callable[[], object]:
    return lambda: workloads.register(replace(BIDS, **{"name": "probe", **changes}))


def parameter(name: str, **changes: Any) -> Callable[[], object]:
    return workload(parameters={**BIDS.parameters, name: replace(BIDS.parameters["rows"], **changes)})


def traits(way: Way, **changes: Any) -> Callable[[], object]:
    return lambda: verify({**TRAITS, way: replace(TRAITS[way], **changes)}, WAY_OF_SCHEME)


def listed(what: str, problems: Iterable[str]) -> Callable[[], object]:
    return lambda: refuse(what, problems)


def decorated(register: Callable[[Any], Any], doc: str = "A probe.") -> Callable[[], object]:
    def probe() -> None: ...

    probe.__doc__ = doc
    return lambda: register(probe)


REFUSED: dict[str, Callable[[], object]] = {
    "function probe: has no docstring": scalar(doc=""),
    "function probe: has no shape": scalar(shape=""),
    "function probe: has fewer than four examples, or none with NULL": scalar(examples=("abs(1) = 1",) * 4),
    "function probe: its example abs(1) is not 'expression = value'": scalar(examples=(*ABS.examples, "abs(1)")),
    "function probe: fails with CQ9999, which is no code of cq.errors": scalar(fails=(*ABS.fails, "CQ9999")),
    "function probe: an example fails with CQ0705, and `fails` does not name it": scalar(fails=()),
    "function probe: is never_null and may_be_null": scalar(never_null=True, may_be_null=True, handles_null=True),
    "function probe: says for which types it is exact, and never fails": scalar(SQRT, exact=bool),
    "function probe: says which literals settle that it does not fail, and never fails": scalar(SQRT, settled=bool),
    "function probe: is typed, fails and names no kernel form: its body cannot be compiled as it is": scalar(native=""),
    "function probe: is never_null and does not handle NULL: then it is NULL for one": scalar(never_null=True),
    "function probe: is walked and fails": scalar(walked=True),
    "function probe: its Spark text names no argument, such as {0}": scalar(spark="abs"),
    "function probe: there is another function abs": lambda: functions.register(replace(ABS, name="probe"), "abs"),
    "functions: there is no probe, which an overload, a part or a unit names": listed(
        "functions", functions.unknown(["abs", "probe"])
    ),
    "aggregate probe: has no docstring": aggregate(doc=""),
    "aggregate probe: has no example over nothing": aggregate(examples=SUM.examples[:1] * 4),
    "aggregate probe: names no kernel form": aggregate(native=""),
    "aggregate probe: is never_null and may_be_null": aggregate(never_null=True, may_be_null=True),
    "aggregate probe: its result is all it remembers, and it keeps more than words": aggregate(keeps=Keeps.VALUES),
    "aggregate probe: is not idempotent, and grows by the lesser of both": aggregate(grows=Grows.LEAST),
    "aggregate probe: its Spark text names no argument, {0}": aggregate(spark="sum"),
    "aggregate probe: asks which row came first, and its Spark text does not, {2}": aggregate(
        ANY_VALUE, spark="f({0})"
    ),
    "aggregate probe: has options, and its Spark text takes none": aggregate(spark="f({0})", options=(None,)),
    "aggregate sum: there is another aggregate sum": aggregate(name="sum"),
    "kernel form reverse: there is another kernel form of that name": decorated(forms.form("reverse")),
    "recipe of an aggregate sum: there is another": decorated(recipes.recipe("sum")),
    "kernel forms: there is no form reverse": listed(
        "kernel forms", emit.unmatched({*forms.FORMS, *forms.PURE} - {"reverse"})
    ),
    "kernel forms: no function names form probe": listed(
        "kernel forms", emit.unmatched({*forms.FORMS, *forms.PURE, "probe"})
    ),
    "recipes: there is no recipe sum, which aggregate sum names": listed(
        "recipes", array_aggregates.unmatched(recipes.RECIPES.keys() - {"sum"})
    ),
    "recipes: no aggregate names recipe probe": listed(
        "recipes", array_aggregates.unmatched({*recipes.RECIPES, "probe"})
    ),
    "rule limit_into_sort: its docstring states no law; there is another": lambda: rules.plan_rule(
        rules.Phase.PRUNE, type("", (), {"__name__": "limit_into_sort", "__doc__": None})()
    ),
    "short form probe: has no docstring": decorated(shorthands.shorthand("probe"), doc=""),
    "short form nvl2: there is another": decorated(shorthands.shorthand("nvl2")),
    "restated call topk: there is another": decorated(foreign_calls._named("topk")),
    "operator of the reference filter: there is another": decorated(reference.runs("filter")),
    "operator of Spark filter: there is another": decorated(spark.lowers("filter")),
    "@consumes filter: there is another": decorated(flow.consumes("filter", copies_text=False)),
    "@closes session: there is another": decorated(flow.closes("session")),
    "@holds session: there is another": decorated(entry_moves.holds("session")),
    "container probe: drop is no native function that is exported": container(drop=lambda table: 0),
    "container probe: save is called with 2 arguments and takes 1": container(save=TABLE.drop),
    "container probe: settle is called with 1 arguments and takes 2": container(settle=TABLE.save),
    "container probe: hand_over is called with 4 arguments and takes 2": container(
        PANES, apart=containers.Apart(PANES.save, PANES.save)
    ),
    "container table: there is another container of that name": container(name="table"),
    "runner Way.LOOP: there is another runner of that name": runner(),
    "runner Way.LOOP: serve is called with 2 arguments and takes 1": runner(serve=LOOP.idle),
    "runner Way.LOOP: flush is called with 1 arguments and takes 2": runner(flush=LOOP.serve),
    "runner Way.LANES: has one worker at a time, and spreads work: lanes": runner(LANES, alone=True),
    "runner Way.LOOP: runs transactions together; its traits do not say so": lambda: register_together(Way.LOOP, print),
    "runner Way.LOCK: ready is called with 2 arguments and takes 1": lambda: register_scheme(
        Way.LOCK, lock_admit, LOOP.idle, lock_finish, in_turn=True, at_once=True
    ),
    "runner Way.CHAINS: its transactions ask for their places; its traits do not say so": lambda: register_scheme(
        Way.CHAINS, lock_admit, lock_ready, lock_finish, in_turn=True, at_once=True
    ),
    "way PAT: has no traits": lambda: verify({w: t for w, t in TRAITS.items() if w is not Way.PAT}, WAY_OF_SCHEME),
    "reasons: way LOOP has no reason": listed("reasons", choose.unreasoned([Way.LOOP])),
    "placements: placement probe has no order of shares": listed("placements", placement.unordered(["probe"])),
    "placements: placement probe has no text": listed("placements", printing.without_text(["probe"])),
    "way LANES: is lanes and hands_over": traits(Way.LANES, hands_over=True),
    "way ANY: is shares, and no operator with state runs so": traits(Way.ANY, shares=True),
    "way LOOP: its transactions ask for their places, and are not run together": traits(Way.LOOP, asks=True),
    "way LOOP: is that of no scheme, and together=True": traits(Way.LOOP, together=True),
    "way PAT: is that of pat and probe, and together=True": lambda: verify(TRAITS, {**WAY_OF_SCHEME, "probe": Way.PAT}),
    "format probe: '.PRB' is no ending": file_format(endings={".PRB": {}}),
    "format probe: '.gz' is no ending": file_format(endings={".gz": {}}),
    "format probe: .prb stands for the unknown option delimiter": file_format(endings={".prb": {"delimiter": "|"}}),
    "format probe: .csv is an ending of csv": file_format(endings={".csv": {}}),
    "format probe: files of parquet begin with b'PAR1', its own with b'PAR'": file_format(magics=(b"PAR",)),
    "format probe: its option header is another one than that of csv": file_format(options={"header": CLASH}),
    "format probe: its option way has no choices": file_format(options={"way": OptionDef(OptionKind.CHOICE, "")}),
    "format probe: its option way does not accept its default x": file_format(
        sink_options={"way": OptionDef(OptionKind.INTEGER, "", "x")}
    ),
    "format probe: cq.connectors.readings.probe:READING names no module": file_format(
        reading="cq.connectors.readings.probe:READING"
    ),
    "format probe: cq.probe.probe:sink names no module": file_format(sink="cq.probe.probe:sink"),
    "format probe: cq.connectors.sinks.writers names no module": file_format(sink="cq.connectors.sinks.writers"),
    "format csv: there is another format of that name": file_format(name="csv"),
    "source probe: cq.probe:opened names no module": source(open="cq.probe:opened"),
    "source probe: cq.probe:columns names no module": source(columns="cq.probe:columns"),
    "source probe: its option way has no choices": source(options={"way": OptionDef(OptionKind.CHOICE, "")}),
    "source file: there is another source of that name": source(name="file"),
    "sink probe: cq.connectors.sinks.writers names no module": sink(open="cq.connectors.sinks.writers"),
    "sink file: there is another sink of that name": sink(name="file"),
    "workload bids: there is another workload of that name": workload(name="bids"),
    "workload probe: is not described": workload(description=""),
    "workload probe: `build` takes rows, which is no parameter": workload(parameters={}),
    "workload probe: `build` does not take its parameter probe": parameter("probe"),
    "workload probe: its parameter rows is not explained": parameter("rows", doc=""),
    "workload probe: its parameter rows does not take its default -1": parameter("rows", default=-1),
    "workload probe: its parameter rows does not take its default 1.0": parameter("rows", default=1.0),
}
"""The beginning of the message, and the call that registers such an entry."""


@pytest.mark.parametrize("told", REFUSED)
def test_a_bad_entry_is_refused_by_its_name_and_with_what_is_wrong(told: str) -> None:
    with pytest.raises(BadEntry) as caught:
        REFUSED[told]()
    assert str(caught.value).startswith(told)


# ------------------------------------------------------------------------------------ the checks run, and on all files

LOADING = """
import json, sys
from cq import entries
checked = []
def refuse(entry, problems, told=entries.refuse):
    checked.append(entry)
    told(entry, problems)
entries.refuse = refuse
import cq.codegen.pipeline, cq.connectors.sources, cq.planner.binding.binder, cq.planner.physical.choose
import cq.planner.rewriting.rewrite, cq.reference.operators, cq.spark.operators, cq.workloads
from cq.runtime.containers.protocol import containers
from cq.runtime.engine.ways.protocol import runners
containers(), runners()
print(json.dumps([checked, list(sys.modules)]))
"""
REGISTER = {
    *("register", "scalar", "form", "pure", "recipe", "rule", "plan_rule", "shorthand", "operator", "runs", "lowers"),
    *("consumes", "holds", "register_together", "register_scheme"),
}


@pytest.fixture(scope="module")
def loaded() -> tuple[set[str], set[str]]:
    """What is checked when the registries are loaded, and the modules that are there then."""
    done = subprocess.run([sys.executable, "-c", LOADING], cwd=ROOT, capture_output=True, text=True, check=True)
    checked, modules = json.loads(done.stdout)
    return set(checked), set(modules)


def test_entries_are_checked_when_they_are_loaded(loaded: tuple[set[str], set[str]]) -> None:
    expected = {"functions", "kernel forms", "recipes of aggregates", "reasons"}
    named = {
        "function": functions.SCALARS, "aggregate": aggregates.AGGREGATES, "container": containers.containers(),
        "runner": runners.runners(), "format": formats.FORMATS, "workload": WORKLOADS, "rule": rules.RULES,
        "source": SOURCES, "sink": SINKS,
        "recipe of an aggregate": recipes.RECIPES, "kernel form": forms.FORMS, "pure kernel form": forms.PURE,
    }  # fmt: skip
    expected |= {f"{kind} {name}" for kind, registry in named.items() for name in registry}
    expected |= {f"way {way.name}" for way in Way}
    missing = expected - loaded[0]
    assert not missing


def registering(root: Path) -> set[str]:
    """The modules below a directory that import what registers entries."""
    found = set()
    for path in (root / "cq").rglob("*.py"):
        imported = (n for n in ast.walk(ast.parse(path.read_bytes())) if isinstance(n, ast.ImportFrom))
        if any(a.name in REGISTER for n in imported for a in n.names):
            module = ".".join(path.relative_to(root).with_suffix("").parts)
            found.add(module.removesuffix(".__init__"))
    return found


def test_a_file_that_registers_entries_is_loaded_with_the_others(
    loaded: tuple[set[str], set[str]], tmp_path: Path
) -> None:
    """One that its package does not list would define a function that no query finds."""
    missing = registering(ROOT) - loaded[1]
    assert not missing
    (tmp_path / "cq" / "lang" / "aggregates").mkdir(parents=True)
    (tmp_path / "cq/lang/aggregates/probe.py").write_text("from cq.lang.aggregates.registry import register, Keeps")
    assert registering(tmp_path) - loaded[1] == {"cq.lang.aggregates.probe"}


@pytest.mark.parametrize("name", WORKLOADS)
def test_no_parameter_of_a_workload_is_hidden_by_an_option_of_its_connector(name: str) -> None:
    assert not WORKLOADS[name].parameters.keys() & {"connector", *_OURS}


@pytest.mark.parametrize(
    ("setting", "names"), [("heuristic", HEURISTICS), ("transactions", SCHEMES), ("placement", PLACEMENTS)]
)
def test_what_a_setting_may_be_is_said_of_each(setting: str, names: tuple[str, ...]) -> None:
    assert not [name for name in names if f"'{name}'" not in SETTINGS[setting]]


@pytest.mark.parametrize("name", SINKS)
def test_a_connector_whose_options_are_listed_opens_a_sink(name: str, tmp_path: Path) -> None:
    """One that `open_sink` does not know would be accepted by `cq check`, and end in CQ0999."""
    options = {"connector": name} | ({"path": "rows.csv"} if "path" in SINKS[name].options else {})
    open_sink([Field("k", BIGINT, True)], options, FileAccess(tmp_path)).abort()
