"""The sources of every step of a random query: relations, expressions over them, keys, aggregates, conditions.

Every step asks the binder for the schema of what it reads, so types and event times are known; a step that the binder
refuses is drawn again. Any exception other than CompileError is a finding.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from random_calls import aggregate
from random_expressions import EVERYTHING, Expressions, Vocabulary
from random_functions import prepared
from random_statements import Query, View, quoted, words

from cq.errors import CompileError
from cq.lang.schema import Field
from cq.records import dataclass, field, replace

ATTEMPTS = 8  # attempts at one step, before another step is drawn
MOST_POWER = 4  # streams whose rows are multiplied, in one view
BOUNDS = (("window_start", "window_start"), ("window_end", "window_end"), ("window_time", "window_time"))


@dataclass
class Relation:
    """What a step may read: columns, which of them are event times, and whether it is the result of a keyed window.

    power: the most streams whose rows are multiplied in it.
    """

    name: str
    fields: tuple[Field, ...]
    times: tuple[str, ...]
    keys: tuple[str, ...] = ()
    windowed: bool = False
    ended: bool = False  # groups at the end of the input
    depth: int = 0
    power: int = 1


Draft = tuple[View, Relation]
Step = Callable[[], Draft | None]


def outside_windows(relation: Relation) -> list[Field]:
    """The columns that keep their names when rows are assigned to windows."""
    return [f for f in relation.fields if (f.name, f.name) not in BOUNDS]


@dataclass
class Drawing:
    """A query so far. wild: also draw expressions that can fail.  vocabulary: the parts of expressions."""

    rng: random.Random
    wild: bool = False
    vocabulary: Vocabulary = EVERYTHING
    query: Query = field(init=False)
    relations: list[Relation] = field(default_factory=list)

    def attempt(self, step: Step) -> bool:
        """Whether a draw of the step was accepted by the binder; its relation is then available to others."""
        for _ in range(ATTEMPTS):
            made = step()
            if made is None:
                return False
            view, relation = made
            relation.power = self._power(view)
            if relation.power > MOST_POWER:
                continue
            query = replace(self.query, views=(*self.query.views, view))
            try:
                relation = self.relation(query, view.name, relation)
            except CompileError:
                continue
            self.query = query
            self.relations.append(relation)
            return True
        return False

    def relation(self, query: Query, name: str, draft: Relation) -> Relation:
        bound = prepared(query.head() + f"SELECT * FROM {name};").compiled
        schema = bound.outputs[0].node.schema
        return replace(draft, fields=schema.fields, times=tuple(schema.names[t.column] for t in schema.times))

    def _power(self, view: View) -> int:
        """How many streams' rows are multiplied in one of its selects: those it reads."""
        known = {r.name: r.power for r in self.relations}
        return max(sum(known.get(word, 0) for word in words(select.rest)) for select in view.selects)

    def next(self) -> str:
        return f"v{len(self.query.views)}"

    def choose(self, timed: bool = False) -> Relation | None:
        """A relation to read; recent ones more often, deep ones never."""
        fitting = [r for r in self.relations if r.depth < 5 and (r.times or not timed)]
        if not fitting:
            return None
        return self.rng.choice(fitting[-2:] if self.rng.random() < 0.6 else fitting)

    def expressions(self, *relations: tuple[str, Sequence[Field]]) -> Expressions:
        columns = [(f"{prefix}{quoted(f.name)}", f.type) for prefix, fields in relations for f in fields]
        return Expressions(self.rng, columns, self.wild and self.rng.random() < 0.5, self.vocabulary)

    def items(self, relation: Relation, prefix: str = "", keep_time: float = 0.9) -> list[tuple[str, str]]:
        """Columns and expressions under new names, mostly with event times unchanged."""
        rng, out = self.rng, []
        expressions = self.expressions((prefix, relation.fields))
        for i in range(rng.randint(1, 4)):
            column = expressions.column()
            plain = column is not None and rng.random() < 0.6
            out.append((column if plain else expressions.any(rng.randint(1, 3)), f"c{i}"))
        if rng.random() < keep_time:
            for t in dict.fromkeys([*relation.times, *(("window_start",) if relation.windowed else ())]):
                if t in {f.name for f in relation.fields} - {alias for _, alias in out}:
                    out.append((f"{prefix}{quoted(t)}", t))
        return out

    def where(self, expressions: Expressions, probability: float = 0.3) -> str:
        return expressions.condition() if self.rng.random() < probability else ""

    def keys(self, expressions: Expressions, most: int = 2) -> list[str]:
        rng = self.rng
        keys = []
        for _ in range(rng.choice([0, 1, 1, 1, 2, most])):
            column = expressions.column()
            keys.append(column if column is not None and rng.random() < 0.75 else expressions.any(1))
        return list(dict.fromkeys(keys))

    def aggregates(self, expressions: Expressions, distinct: bool) -> list[str]:
        return [aggregate(expressions, distinct) for _ in range(self.rng.randint(1, 4))]

    def interval(self, low: int = 1, high: int = 8) -> str:
        return f"INTERVAL '{self.rng.randint(low, high)}' {self.query.unit}"

    def having(self, expressions: Expressions, distinct: bool) -> str:
        if self.rng.random() > 0.2:
            return ""
        if self.rng.random() < 0.5:
            return f"COUNT(*) {self.rng.choice(['>', '<', '=', '<>'])} {self.rng.randint(0, 3)}"
        return f"{aggregate(expressions, distinct)} IS {self.rng.choice(['', 'NOT '])}NULL"
