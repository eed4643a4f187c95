"""Records against dataclasses: the same classes, written once as the one and once as the other, do the same."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar  # noqa: F401  # the classes as text are of this module

import pytest

from cq import records

CLASSES = '''
class Place(Base):
    """A place."""
    KIND: ClassVar[int] = 7
    x: int
    y: float = 2.0
    seen: list[int] = field(default_factory=list, compare=False)
    label: str = field(default="here", kw_only=True, repr=False)

class Higher(Place):
    y: float = 3.0
    z: int = field(default=0, metadata={"unit": "m"})
    sum: float = field(init=False)
    told: str = field(default="no", init=False)

    def __post_init__(self):
        object.__setattr__(self, "sum", self.x + self.z)

class Named(Base):
    only: object
    def __repr__(self):
        return "named"
    def __hash__(self):
        return 5

class Empty(Base):
    pass

class Loose(Base):
    a: int = 1
    b: int = 2
'''
OPTIONS = [{"frozen": True, "slots": True}, {"slots": True}, {}, {"frozen": True, "slots": True, "kw_only": True}]
OPTIONS += [{"frozen": True, "slots": True, "eq": False, "repr": False}, {"slots": True, "weakref_slot": True}]


class Base:
    """A base that is neither."""

    __slots__ = ()


def written(module: Any, options: dict[str, Any]) -> SimpleNamespace:
    """The classes as those of one module."""
    text = CLASSES.replace("\nclass", f"\n@dataclass(**{options})\nclass")
    names = {"dataclass": module.dataclass, "field": module.field, "Base": Base, "__name__": __name__}
    exec("from __future__ import annotations\n" + text, names)
    return SimpleNamespace(**names, replace=module.replace, fields=module.fields, known=module.is_dataclass)


def told(do: Callable[[], Any]) -> Any:
    """What a call returns, or the family of error it ends with."""
    try:
        return do()
    except (TypeError, AttributeError) as error:
        return TypeError if isinstance(error, TypeError) else AttributeError


def seen(of: SimpleNamespace, options: dict[str, Any]) -> list[Any]:
    """Everything that can be asked of the classes, as values that compare."""
    place = told(lambda: of.Place(1, 4.0))
    by_name, higher = of.Place(x=1, y=4.0, label="there"), of.Higher(x=1, z=5)
    alike, other = of.Place(x=1, y=4.0, seen=[3], label="there"), of.Place(x=2)
    everything = [place, by_name, higher, alike, other, of.Named(only=None), of.Empty(), of.Loose()]
    named = [] if options.get("repr") is False else [repr(x) for x in everything]
    hashes = [told(lambda x=x: hash(x)) for x in (by_name, of.Named(only=2))] if "eq" not in options else []
    changed = of.replace(higher, y=9.0, seen=[1])
    return [
        named,
        hashes,
        [a == b for a in everything for b in everything],
        of.Named(only=float("nan")) == of.Named(only=1),
        [(f.name, f.init, f.repr, f.compare, f.kw_only, dict(f.metadata)) for f in of.fields(higher)],
        [f.name for f in of.fields(of.Empty)],
        [of.known(x) for x in (place, of.Place, 1, Base)],
        [c.__match_args__ for c in (of.Place, of.Higher, of.Named, of.Empty)],
        [(changed.x, changed.y, changed.z, changed.seen, changed.sum, changed.told)],
        [getattr(c, "__slots__", None) for c in (of.Place, of.Higher, of.Empty)],
        [(c.__name__, c.__qualname__, c.__module__) for c in (of.Place, of.Higher)],
        of.Place.KIND,
        of.Place.__doc__,
        told(lambda: of.Place()),
        told(lambda: of.Place(1, 2, [], "by position")),
        told(lambda: of.Place(1, x=2)),
        told(lambda: of.Place(x=1, nothing=2)),
        told(lambda: setattr(by_name, "x", 2)),
        told(lambda: delattr(of.Loose(), "a")),
        [getattr(of.Loose, "b", None) == 2],
        copy.copy(by_name).label,
        [copy.deepcopy(higher).sum, copy.deepcopy(alike).seen],
        of.Place(x=1).seen is of.Place(x=1).seen,
    ]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_records_do_what_dataclasses_do(options: dict[str, Any]) -> None:
    assert seen(written(records, options), options) == seen(written(dataclasses, options), options)


@records.dataclass(frozen=True, slots=True)
class Kept:
    """A record at a place where pickle finds it."""

    x: int
    y: tuple[int, ...] = ()

    def total(self) -> int:
        return self.x

    @property
    def name(self) -> str:
        return "kept"


def test_records_are_pickled_and_matched() -> None:
    kept = Kept(1, (2, 3))
    assert pickle.loads(pickle.dumps(kept)) == kept  # noqa: S301
    match kept:
        case Kept(x, (first, *_)):
            assert (x, first) == (1, 2)


def test_a_default_that_all_records_would_share_is_refused() -> None:
    with pytest.raises(TypeError, match="default_factory"):

        @records.dataclass
        class _Shared:
            values: list[int] = []  # noqa: RUF012


def test_a_field_without_a_default_behind_one_with_one_is_refused() -> None:
    with pytest.raises(TypeError, match="second has no default"):

        @records.dataclass
        class _Behind:
            first: int = 0
            second: int  # type: ignore[misc]  # which type checkers refuse, too


def test_super_means_the_base_of_a_record_with_slots() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Method(Kept):
        def total(self) -> int:
            return super().total() + sum(self.y)

    @records.dataclass(frozen=True, slots=True)
    class Property(Kept):
        @property
        def name(self) -> str:
            return super().name + " too"

    assert (Method(1, (2, 3)).total(), Property(1).name) == (6, "kept too")


def test_a_class_of_many_records_builds_them_as_it_built_the_first() -> None:
    for options in OPTIONS:
        of, plain = written(records, options), written(dataclasses, options)
        for n in range(200):
            assert repr(of.Higher(x=n, seen=[n])) == repr(plain.Higher(x=n, seen=[n])) or options.get("repr") is False
        assert of.Higher.__init__ is not of.Loose.__init__, "it has no constructor of its own"
        for _ in range(2):
            assert seen(of, options) == seen(plain, options)


def test_what_is_wrong_with_the_values_is_told_as_python_tells_it() -> None:
    for arguments, message in (((), "missing 1 required"), ((1, (), 3), "takes from 2 to 3 positional arguments")):
        with pytest.raises(TypeError, match=message):
            Kept(*arguments)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Kept(1, z=2)  # type: ignore[call-arg]  # which type checkers refuse, too


def test_a_constructor_of_the_class_itself_builds_on_that_of_its_base() -> None:
    for module in (records, dataclasses):

        @module.dataclass(slots=True)
        class Two(Kept):
            z: int = 0

            def __init__(self, x: int, z: int) -> None:
                Kept.__init__(self, x)
                object.__setattr__(self, "z", z)

        for n in range(200):  # more than it takes for a constructor of the base's own
            two = Two(n, 5)
            assert (two.x, two.y, two.z) == (n, (), 5)
