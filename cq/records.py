"""Records: classes that declare their fields and get their methods from that: the part of `dataclasses` that we need.

`dataclasses` writes the methods of each class as text and compiles it where the class is defined: 0.4 ms a class, more
than 0.1 s for the three hundred of `cq check`. Here the methods are written once, and read the fields from the class of
the record they are called on. That takes 0.05 ms a class; building a record takes 0.2 to 1 µs more. A class with many
instances gets its own constructor: constructors with the same number of values share one code object, compiled once, of
which each class has a copy with its own names.

Type checkers see `dataclasses` itself: the names mean the same, and the checks are the same.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from operator import attrgetter
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
else:
    MISSING = type("MISSING", (), {"__repr__": lambda self: "MISSING"})()  # no default; None could be one
    NO_METADATA = MappingProxyType({})
    MANY = 64  # instances from which on its own constructor saves a class more than the 0.1 ms that it takes to build
    _put = object.__setattr__  # even if a record is immutable

    class Field:
        """A field of a record."""

        __slots__ = ("compare", "default", "default_factory", "init", "kw_only", "metadata", "name", "repr")

        def __init__(self, default, default_factory, init, repr, compare, kw_only, metadata):
            self.name = ""  # until its class is known
            self.default, self.default_factory = default, default_factory
            self.init, self.repr, self.compare = init, repr, compare
            self.kw_only, self.metadata = kw_only, metadata

        def standard(self):
            """Return the default value of the field, or MISSING."""
            return self.default if self.default_factory is MISSING else self.default_factory()

        def optional(self):
            """Return whether the constructor may be called without it."""
            return self.default is not MISSING or self.default_factory is not MISSING

    def field(
        *,
        default=MISSING,
        default_factory=MISSING,
        init=True,
        repr=True,
        compare=True,
        kw_only=None,
        metadata=NO_METADATA,
    ):
        """Declare more about a field than its type."""
        return Field(default, default_factory, init, repr, compare, kw_only, metadata)

    class _RecordShape:
        """What the methods need to know about their class.

        fields: all of them by name, those of the bases first.  given: those that the constructor takes, first the
        `places` that it takes by position.  compared: returns a tuple of what makes a record equal to another one.
        built: how many records have been built without the class's own constructor.  kind: the class.
        """

        __slots__ = ("built", "checks", "compared", "fields", "given", "kind", "names", "places", "shown", "unasked")

        def __init__(self, fields, checks):
            self.built = 0
            self.fields = fields
            asked = [f for f in fields.values() if f.init]
            self.given = sorted(asked, key=lambda f: f.kw_only)
            self.names = tuple(f.name for f in self.given)
            self.places = sum(not f.kw_only for f in asked)
            for f, later in pairwise(self.given[: self.places]):
                if f.optional() and not later.optional():
                    raise TypeError(f"{later.name} has no default and stands behind {f.name}, which has one")
            self.unasked = [f for f in fields.values() if not f.init and f.standard() is not MISSING]
            self.shown = [f.name for f in fields.values() if f.repr]
            self.compared = _tuple_of([f.name for f in fields.values() if f.compare])
            self.checks = checks

        def complete(self, given, named):
            """Return a value for each of `names`, or None if that is impossible."""
            if not named and len(given) == len(self.names) == self.places:
                return given
            values = list(given)
            for f in self.given[len(given) :]:
                value = named.get(f.name, MISSING)
                if value is MISSING and (value := f.standard()) is MISSING:
                    return None
                values.append(value)
            rest = self.names[len(given) :]
            return values if len(given) <= self.places and named.keys() <= {*rest} else None

        def constructor(self):
            """Return a function that stores its arguments in the fields of a record of the class."""
            made = tuple(i for i, f in enumerate(self.given) if f.default_factory is not MISSING)
            code = _constructor_code(self.places, len(self.names) - self.places, made, bool(self.unasked), self.checks)
            own = {_parameter(i): name for i, name in enumerate(self.names)}
            code = code.replace(
                co_qualname=f"{self.kind.__qualname__}.__init__",
                co_varnames=tuple(own.get(name, name) for name in code.co_varnames),
                co_consts=tuple(own.get(value, value) for value in code.co_consts),
            )
            makers = {f"make{i}": self.given[i].default_factory for i in made}
            function = FunctionType(code, {"put": _put, "MISSING": MISSING, "unasked": self.unasked, **makers})
            # a factory's value is made when it is needed: its placeholder is MISSING, too
            optional = {f.name: f.default for f in self.given if f.optional()}
            places, named = self.names[: self.places], self.names[self.places :]
            function.__defaults__ = tuple(optional[name] for name in places if name in optional)
            function.__kwdefaults__ = {name: optional[name] for name in named if name in optional}
            return function

    def _parameter(number):
        return f"_{number}"

    @cache
    def _constructor_code(places, named, made, unasked, checks):
        """Return the code of constructors with this many values by position and by name only.

        made: the numbers of those that a function makes if they are omitted.  unasked: other fields have defaults.
        """
        values = [_parameter(i) for i in range(places + named)]
        parameters = ["self", "/", *values[:places], *(["*", *values[places:]] if named else [])]
        lines = [f"def __init__({', '.join(parameters)}):"]
        lines += [f" if _{i} is MISSING: _{i} = make{i}()" for i in made]
        lines += [f" put(self, '{name}', {name})" for name in values]
        lines += [" for f in unasked: put(self, f.name, f.standard())"] if unasked else []
        lines += [" self.__post_init__()"] if checks else []
        return compile("\n".join([*lines, " return"]), __file__, "exec").co_consts[0]

    def _tuple_of(names):
        """Return a function of an object that returns a tuple of its attributes."""
        if not names:
            return lambda record: ()
        return attrgetter(*(names if len(names) > 1 else names * 2))  # with one name, attrgetter returns no tuple

    def _first_constructor(shape):
        """Return the constructor of a class with few records so far."""

        def __init__(self, /, *given, **named):
            shape.built += 1
            values = shape.complete(given, named) if shape.built <= MANY else None
            if values is None:  # there have been many; or the values are wrong, and that constructor says why
                shape.kind.__init__ = shape.constructor()
                shape.kind.__init__(self, *given, **named)
                return
            for name, value in zip(shape.names, values):  # noqa: B905  # as many, and `strict` costs
                _put(self, name, value)
            for f in shape.unasked:
                _put(self, f.name, f.standard())
            if shape.checks:
                self.__post_init__()

        return __init__

    def _repr(self):
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__shape__.shown)
        return f"{self.__class__.__qualname__}({shown})"

    def _eq(self, other):
        if other.__class__ is not self.__class__:
            return NotImplemented
        compared = self.__shape__.compared
        return compared(self) == compared(other)

    def _hash(self):
        return hash(self.__shape__.compared(self))

    def _refuse(self, name, value=None):
        raise AttributeError(f"{self.__class__.__name__} is frozen: '{name}' never changes")

    def _getstate(self):
        return [getattr(self, name) for name in self.__shape__.fields]

    def _setstate(self, state):
        for name, value in zip(self.__shape__.fields, state, strict=True):
            _put(self, name, value)

    def dataclass(kind=None, *, frozen=False, slots=False, eq=True, repr=True, kw_only=False, weakref_slot=False):
        """Make a class a record: its annotations are its fields."""
        if kind is None:
            return lambda kind: dataclass(
                kind, frozen=frozen, slots=slots, eq=eq, repr=repr, kw_only=kw_only, weakref_slot=weakref_slot
            )
        own = _own_fields(vars(kind), kw_only)
        shape = _RecordShape(_inherited(kind) | own, hasattr(kind, "__post_init__"))
        methods = {
            "__shape__": shape,
            "__init__": _first_constructor(shape),
            "__match_args__": shape.names[: shape.places],
        }
        if repr:
            methods["__repr__"] = _repr
        if eq:
            methods |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
        if frozen:
            methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
        said = {
            name for name, value in vars(kind).items() if value is not None
        }  # a class with __eq__ has __hash__ None
        methods = {name: method for name, method in methods.items() if name not in said}
        if slots:
            shape.kind = _with_slots(kind, methods, ("__weakref__",) if weakref_slot else ())
            return shape.kind
        shape.kind = kind
        for name, method in methods.items():
            setattr(kind, name, method)
        for f in own.values():
            if f.default is not MISSING:
                setattr(kind, f.name, f.default)
            elif f.name in vars(kind):
                delattr(kind, f.name)
        return kind

    def _own_fields(body, kw_only):
        """Return the fields declared in the body of this class."""
        found = {}
        for name, annotation in body.get("__annotations__", {}).items():
            if annotation.startswith("ClassVar"):
                continue
            f = body.get(name, MISSING)
            if f.__class__ is not Field:
                f = Field(f, MISSING, True, True, True, None, NO_METADATA)
            if f.default.__class__.__hash__ is None:
                raise TypeError(f"all records would share the default of {name}; use default_factory")
            f.name = name
            f.kw_only = kw_only if f.kw_only is None else f.kw_only
            found[name] = f
        return found

    def _inherited(kind):
        found = {}
        for base in reversed(kind.__mro__[1:]):
            if "__shape__" in vars(base):
                found |= base.__shape__.fields
        return found

    def _with_slots(kind, methods, more):
        """Return the class recreated: slots must be known when a class is created."""
        inherited = {name for base in kind.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
        fields = methods["__shape__"].fields
        body = {name: value for name, value in vars(kind).items() if name not in fields} | methods
        body.pop("__dict__", None)
        body.pop("__weakref__", None)
        body["__slots__"] = tuple(name for name in (*fields, *more) if name not in inherited)
        body["__getstate__"], body["__setstate__"] = _getstate, _setstate
        made = type(kind)(kind.__name__, kind.__bases__, body)
        made.__qualname__ = kind.__qualname__
        _aim_super(body, made)
        return made

    def _aim_super(body, made):
        """Let `super()` refer to the new class: the methods share one cell, which holds the class as written."""
        for member in body.values():
            function = member.fget if member.__class__ is property else member
            if function.__class__ is FunctionType and "__class__" in (names := function.__code__.co_freevars):
                function.__closure__[names.index("__class__")].cell_contents = made
                return

    def fields(kind):
        """Return the fields of a record or of its class, in order."""
        return tuple(kind.__shape__.fields.values())

    def is_dataclass(value):
        """Return whether this is a record or the class of records."""
        return hasattr(value, "__shape__")

    def replace(record, /, **changes):
        """Return a record like this one, with these values replaced."""
        for name in record.__shape__.names:
            if name not in changes:
                changes[name] = getattr(record, name)
        return record.__class__(**changes)


__all__ = ["Field", "dataclass", "field", "fields", "is_dataclass", "replace"]
