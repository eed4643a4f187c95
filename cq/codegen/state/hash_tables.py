"""Hash tables in generated code: key words, hashes, and the probe loop.

`Keys` turns SQL values into the words that an entry holds and compares (cq/runtime/containers/tables.py).
`TableLocals` keeps a table's words in locals while a function runs; anything that may move entries is followed by
`reload`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from cq.codegen.values import Coded, Scope, Val, any_null, value_words
from cq.codegen.writer import Fill, Writer, expr
from cq.errors import NOWHERE
from cq.lang.expressions import Expr
from cq.lang.types import NAN_BITS, DataType, Kind, Physical
from cq.records import dataclass
from cq.runtime.containers.strings import HASH_FACTOR, INLINE_STRING_BYTES
from cq.runtime.containers.table_words import (
    ENTRY_FIRST,
    ENTRY_KEYS,
    ENTRY_TAG,
    FETCH_NOTHING,
    NUMBER_MASK,
    TABLE_BIRTHS,
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_EPOCH,
    TABLE_INDEX,
    TABLE_MASK,
    TABLE_SHIFT,
    TABLE_STRIDE,
    entry_at,
    spread_stride,
    what_to_fetch,
)
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.layout.words import Word, beside

NULLS_A_WORD = 62  # bits of a null word: those of an i64 that shift without the sign
# with 64-byte entries a quarter MiB: such a table stays in the second-level cache
SMALL_TABLE_SLOTS = Word(4096, "SMALL_TABLE_SLOTS")
# The same for a lane: a worker goes from one to the next of its four, and finds of each what the others have left in
# the cache. The kernel of a window join of 10,000 keys in eight lanes took 78 ns a row with 4096 slots, 33 with these
# (busy AMD EPYC).
SMALL_LANE_SLOTS = Word(1024, "SMALL_LANE_SLOTS")


@dataclass(frozen=True, slots=True)
class EntryField:
    """A SQL value inside an entry: its first word, and the bit of the word that says it is NULL (-1: never)."""

    type: DataType
    word: int
    null_word: int = -1
    null_bit: int = -1

    @property
    def words(self) -> int:
        return words_of(self.type)

    def at(self, n: int) -> int:
        """Its word `n`."""
        return self.word if n == 0 else beside(self.word, n, "HIGH")


def words_of(type_: DataType) -> int:
    """How many words of an entry a value takes."""
    return 2 if type_.physical in {Physical.BYTES, Physical.I128} else 1


def lay_out(
    columns: Sequence[tuple[DataType, bool]], first_word: int, name: str = "VALUE"
) -> tuple[tuple[EntryField, ...], int]:
    """Fields of (type, nullable) columns from `first_word` on, their null words after them; the next free word.

    name: the prefix of their names in generated code, before their number.
    """
    fields: list[EntryField] = []
    word, nulls = first_word, 0
    first_null_word = first_word + sum(words_of(type_) for type_, _ in columns)
    for number, (type_, nullable) in enumerate(columns):
        null_word, bit = -1, -1
        if nullable:
            n, bit = divmod(nulls, NULLS_A_WORD)
            null_word = Word(first_null_word + n, f"{name}_NULLS{n}")
        fields.append(EntryField(type_, Word(word, f"{name}{number}"), null_word, bit))
        word += words_of(type_)
        nulls += nullable
    return tuple(fields), word + -(-nulls // NULLS_A_WORD)


def null_words(fields: Sequence[EntryField]) -> tuple[int, ...]:
    """The words that say which of the fields are NULL, in order."""
    return tuple(sorted({f.null_word for f in fields if f.null_bit >= 0}))


def string_words(fields: Sequence[EntryField]) -> tuple[int, ...]:
    """The words where strings begin."""
    return tuple(f.word for f in fields if f.type.physical is Physical.BYTES)


def as_words(scope: Scope, value: Val) -> list[ast.expr]:
    """The words of a value that is not a string; doubles as bits, -0.0 as 0.0 and every NaN alike; NULL is 0."""
    match value.type:
        case t if t.is_float:
            bits = expr("pick(X == X, f64_bits(X + 0.0), NAN)", X=value.it, NAN=NAN_BITS)
            words = [scope.let(bits, "bits")]
        case t if t.kind is Kind.BOOLEAN:
            words = [scope.let(expr("pick(X, 1, 0)", X=value.it), "bit")]
        case _:
            words = list(value.parts)
    if value.null is not None:
        words = [expr("pick(N, 0, W)", N=value.null, W=word) for word in words]
    return [scope.let(word, "key") for word in words]


def store_words(scope: Scope, record: Fill, f: EntryField, value: Val) -> None:
    """Write the words of a value that is not a string and is kept rather than compared: doubles bit by bit."""
    for n, word in enumerate(value_words(value)):
        scope.writer.code("st_i64(R, W, V)", R=record, W=f.at(n), V=word)


def null_bits(values: Sequence[Val], fields: Sequence[EntryField], word: int) -> ast.expr:
    """The value of one of the fields' null words."""
    total: ast.expr = ast.Constant(0)
    for value, f in zip(values, fields, strict=True):
        if f.null_word == word and value.null is not None:
            total = expr("T | pick(N, BIT, 0)", T=total, N=value.null, BIT=1 << f.null_bit)
    return total


def load_fields(scope: Scope, fields: Sequence[EntryField], entry: ast.expr, table: ast.expr | None) -> list[Val]:
    """The SQL values of the fields of an entry. table: None if texts are addresses and lengths, not in the table."""
    nulls = {w: scope.let(expr("ld_i64(E, W)", E=entry, W=w), "nulls") for w in null_words(fields)}
    return [load_field(scope, f, entry, table, nulls.get(f.null_word)) for f in fields]


def store_nulls(scope: Scope, fields: Sequence[EntryField], entry: Fill, values: Sequence[Val]) -> None:
    """Write the null words of an entry."""
    for word in null_words(fields):
        scope.writer.code("st_i64(E, W, N)", E=entry, W=word, N=null_bits(values, fields, word))


def load_field(scope: Scope, f: EntryField, entry: ast.expr, table: ast.expr | None, nulls: ast.expr | None) -> Val:
    """The SQL value of a field of an entry. nulls: its null word, if it may be NULL.  table: as for
    `load_fields`."""
    word = expr("ld_i64(E, W)", E=entry, W=f.word)
    hint = f"{f.word.name.lower()}_" if isinstance(f.word, Word) else "v"
    null: ast.expr | None = None
    if f.null_bit >= 0:
        assert nulls is not None
        null = scope.let(expr("N & BIT != 0", N=nulls, BIT=1 << f.null_bit), f"{hint}null")
    if f.type.physical is Physical.BYTES and table is not None:
        length = scope.let(expr("string_length(E, W)", E=entry, W=f.word), f"{hint}length")
        address = scope.let(expr("string_address(T, E, W)", T=table, E=entry, W=f.word), hint)
        return Val(f.type, (address, length), null)
    if f.type.is_float:
        return Val(f.type, (scope.let(expr("ld_f64(E, W)", E=entry, W=f.word), hint),), null)
    if f.type.kind is Kind.BOOLEAN:
        return Val(f.type, (scope.let(expr("W != 0", W=word), hint),), null)
    low = scope.let(word, hint)
    if f.words == 2:
        return Val(f.type, (low, scope.let(expr("ld_i64(E, W)", E=entry, W=f.at(1)), f"{hint}high")), null)
    return Val(f.type, (low,), null)


def store_field(scope: Scope, f: EntryField, entry: ast.expr, table: ast.expr | None, value: Val) -> None:
    """Write the value's words (not its null bit) into an entry; the entry stays where it is. table: as for
    `load_fields`."""
    if f.type.physical is Physical.BYTES and table is not None:
        address, length = value.parts
        if value.null is not None:
            length = scope.let(expr("pick(N, 0, L)", N=value.null, L=length), "length")
        stored = expr("string_store(T, E, W, A, L) == 0", T=table, E=entry, W=f.word, A=address, L=length)
        with scope.when(stored):
            scope.fail(ErrorCode.NO_MEMORY, "text in state", NOWHERE)
    else:
        store_words(scope, entry, f, value)


def outlives(scope: Scope, value: Val) -> Val:
    """A text of an entry, copied to bytes that live for the step: the entry may change. Other values are unchanged."""
    if value.type.physical is not Physical.BYTES:
        return value
    address, length = value.parts
    kept = scope.let(expr("step_bytes(state, L)", L=length), "kept")
    with scope.when(expr("K == 0", K=kept)):
        scope.fail(ErrorCode.NO_MEMORY, "text of a step", NOWHERE)
    scope.writer.code("copy(K, A, L)", K=kept, A=address, L=length)
    return Val(value.type, (kept, length), value.null)


@dataclass(slots=True)
class TableLocals:
    """A table's words in locals of the function being written."""

    scope: Scope
    entry_bytes: int
    table: str
    entries: str
    mask: str
    shift: str
    epoch: str
    index: str  # 0 if entries are in slots
    fetch: str  # what to prefetch of the table: FETCH_NOTHING, FETCH_SLOT or FETCH_INDEX

    @staticmethod
    def declare(scope: Scope, entry_words: int) -> TableLocals:
        """Locals without a table: `use` assigns one."""
        zero = ast.Constant(0)
        table, *words = (scope.writer.hoist(zero, h) for h in ("table", *(hint for hint, _ in _WORDS), "fetch"))
        return TableLocals(scope, Word(entry_words * 8, "ENTRY_BYTES"), table, *words)

    @staticmethod
    def fixed(scope: Scope, entry_words: int, table: ast.expr) -> TableLocals:
        """Locals of the table whose address `table` is, for the whole function."""
        name = scope.writer.hoist(table, "table")
        words = (scope.writer.hoist(expr("ld_i64(T, W)", T=name, W=word), hint) for hint, word in _WORDS)
        entries, mask, shift, epoch, index = words
        fetch = scope.writer.hoist(_fetched(scope, mask, index), "fetch")
        entry_bytes = Word(entry_words * 8, "ENTRY_BYTES")
        return TableLocals(scope, entry_bytes, name, entries, mask, shift, epoch, index, fetch)

    def use(self, table: ast.expr) -> None:
        """Use this table from here on."""
        self.scope.writer.set(self.table, table)
        self.reload()

    def reload(self) -> None:
        """Read the table's words again."""
        for name, (_, word) in zip(self._words(), _WORDS, strict=True):
            self.scope.writer.set(name, expr("ld_i64(T, W)", T=self.table, W=word))
        self.scope.writer.set(self.fetch, _fetched(self.scope, self.mask, self.index))

    def _words(self) -> tuple[str, ...]:
        return self.entries, self.mask, self.shift, self.epoch, self.index

    def is_large(self) -> ast.expr:
        """Whether the table has outgrown a cache."""
        return expr("F != NOTHING", F=self.fetch, NOTHING=FETCH_NOTHING)

    def fetches(self, what: int) -> ast.expr:
        """Whether this is what to prefetch of the table."""
        return expr("F == WHAT", F=self.fetch, WHAT=what)

    def in_slot(self, slot: ast.expr | str) -> ast.expr:
        """The address of the entry in a slot, if entries are in slots."""
        log = spread_stride(self.entry_bytes).bit_length() - 1
        return expr("E + shl(S, LOG)", E=self.entries, S=slot, LOG=Word(log, "SLOT_BITS"))

    def numbered(self, item: ast.expr | str) -> ast.expr:
        """The address of the entry that a slot of the index points to."""
        return expr("E + (I & NUMBER) * SIZE", E=self.entries, I=item, NUMBER=NUMBER_MASK, SIZE=self.entry_bytes)

    @property
    def address(self) -> ast.expr:
        return ast.Name(self.table, ast.Load())


def _fetched(scope: Scope, mask: str, index: str) -> ast.expr:
    """What to prefetch of a table with these words."""
    small = SMALL_LANE_SLOTS if scope.in_lanes else SMALL_TABLE_SLOTS
    return expr(f"{what_to_fetch.__name__}(M, SMALL, I)", M=mask, SMALL=small, I=index)


_WORDS = (
    ("entries", TABLE_ENTRIES),
    ("mask", TABLE_MASK),
    ("shift", TABLE_SHIFT),
    ("epoch", TABLE_EPOCH),
    ("index", TABLE_INDEX),
)


@dataclass(frozen=True, slots=True)
class Births:
    """Words of a table whose entries are visited by birth, in locals; meanwhile none is made or deleted."""

    words: tuple[str, str, str]
    count: str

    @property
    def entries(self) -> str:
        return self.words[0]

    @staticmethod
    def of(writer: Writer, table: str) -> Births:
        def word(hint: str, which: int) -> str:
            return writer.let(expr("ld_i64(T, W)", T=table, W=which), hint)

        words = (word("entries", TABLE_ENTRIES), word("births", TABLE_BIRTHS), word("stride", TABLE_STRIDE))
        return Births(words, word("n", TABLE_COUNT))

    def entry(self, number: Fill) -> ast.expr:
        """The address of the entry with this birth number, from 0."""
        entries, births, stride = self.words
        return expr(f"{entry_at.__name__}(E, B, S, N)", E=entries, B=births, S=stride, N=number)


@dataclass(slots=True)
class Keys:
    """The key of an entry: its fields, followed by null words if one may be NULL.

    They begin at ENTRY_KEYS if the order of first arrivals matters, else at ENTRY_FIRST: entries are smaller then.
    """

    fields: tuple[EntryField, ...]
    next_word: int

    @staticmethod
    def of(columns: Sequence[tuple[DataType, bool]], ordered: bool = True, name: str = "KEY") -> Keys:
        """Lay the keys out. ordered: the order of first arrivals matters.  name: as in `lay_out`."""
        # without a key nothing would overwrite the serial at the start of a new entry
        return Keys(*lay_out(columns, ENTRY_KEYS if ordered or not columns else ENTRY_FIRST, name))

    @property
    def begins_with_text(self) -> bool:
        """Whether a text takes the word of the serial, which is then not the length of a text that was there before."""
        return bool(self.fields) and self.fields[0].word == ENTRY_FIRST and string_words(self.fields[:1]) != ()

    @property
    def has_short_hash(self) -> bool:
        """Whether its hash takes only one multiplication."""
        return [f.words for f in self.fields] == [1] and not null_words(self.fields)

    def hash(self, scope: Scope, values: Sequence[Val]) -> ast.expr:
        """The 32-bit hash of key values."""
        return _hash(scope, _key_words(scope, self, values))

    def find(self, t: TableLocals, values: Sequence[Val]) -> ast.expr:
        """Write the search for the entry with these key values: its address, or 0."""
        return _search(self, t, values, None, None)

    def probe(
        self, t: TableLocals, values: Sequence[Val], serial: ast.expr, fresh: Callable[[ast.expr], None],
        likely: ast.expr | None = None,
    ) -> ast.expr:  # fmt: skip
        """Write the search for the entry with these key values, made if missing; return its address.

        serial: of the row that causes it.  fresh(entry): writes code for a new entry, whose keys are set.
        likely: the address of a slot of a spread table to look into first, or 0.
        """
        return _search(self, t, values, serial, fresh, likely)

    def recall(
        self, t: TableLocals, values: Sequence[Val], serial: ast.expr, fresh: Callable[[ast.expr], None]
    ) -> ast.expr:
        """As `probe`, for a table with one owner that remembers the entry of each code
        (cq/runtime/containers/known_codes.py)."""
        coded = coded_key(values)
        if coded is None:
            return self.probe(t, values, serial, fresh)
        scope, writer = t.scope, t.scope.writer
        has_code = expr("D != 0", D=coded.dictionary)
        null = any_null(values)
        if null is not None:
            has_code = expr("HAS and not N", HAS=has_code, N=null)
        has_code = scope.let(has_code, "has_code")
        entry = writer.let(ast.Constant(0), "entry")
        with scope.when(has_code):
            writer.set(entry, expr("table_recall(T, D, C)", T=t.table, D=coded.dictionary, C=coded.code))
        with scope.when(expr("E == 0", E=entry)):
            writer.set(entry, self.probe(t, values, serial, fresh))
            with scope.when(has_code):
                writer.code(
                    "table_learn(T, D, N, C, E)", T=t.table, D=coded.dictionary, N=coded.texts, C=coded.code, E=entry
                )
        return ast.Name(entry, ast.Load())


def coded_key(values: Sequence[Val]) -> Coded | None:
    """The code of a key that consists of one text of a source."""
    return values[0].coded if len(values) == 1 else None


def lane_hash(scope: Scope, keys: tuple[tuple[Expr, ...], ...], values: Sequence[Val]) -> ast.expr:
    """The 32-bit hash of a row's key in lanes. keys: of every port.

    A part that may be NULL in one port is hashed as nullable in all ports, so that equal keys meet in one lane.
    """
    columns = [(parts[0].type, any(p.nullable for p in parts)) for parts in zip(*keys, strict=True)]
    assert all(n or v.null is None for (_, n), v in zip(columns, values, strict=True)), "a NULL that no port has"
    return Keys.of(columns).hash(scope, values)


@dataclass(frozen=True, slots=True)
class Sought:
    """Key values in locals, as the words of an entry and their hash, and the table to search."""

    keys: Keys
    t: TableLocals
    values: Sequence[Val]
    words: list[_Word]
    hash32: ast.expr

    @staticmethod
    def of(keys: Keys, t: TableLocals, values: Sequence[Val]) -> Sought:
        words = _key_words(t.scope, keys, values)
        return Sought(keys, t, values, words, _hash(t.scope, words))

    def same(self, hashes: ast.expr, entry: str) -> ast.expr:
        """Whether an entry has these key words, if its hash is the same."""
        return ast.BoolOp(ast.And(), [hashes, *(w.equals(self.t, entry) for w in self.words)]) if self.words else hashes

    def walk_index(self, slot: str, entry: str, end: Callable[[], None], found: Callable[[], None]) -> None:
        """Write the walk over the slots of the index from `slot` on. end, found: at a free slot, at an entry of the
        key; `end` writes what leaves the loop."""
        scope, writer = self.t.scope, self.t.scope.writer
        with writer.while_(True), scope.block():
            item = writer.let(expr("ld_i64(I, S)", I=self.t.index, S=slot), "item")
            with writer.if_(expr("X == 0", X=item)):
                end()
            writer.set(entry, self.t.numbered(item))
            with scope.when(self.same(expr("shr_u(X, 32) == H", X=item, H=self.hash32), entry)):
                found()
            writer.set(slot, expr("(S + 1) & M", S=slot, M=self.t.mask))

    def make(self, entry: str, made: ast.expr) -> None:
        """Write code that makes an entry with this key: `made` is its address, or 0 if out of memory."""
        scope, writer = self.t.scope, self.t.scope.writer
        writer.set(entry, made)
        with scope.when(expr("E == 0", E=entry)):
            scope.fail(ErrorCode.NO_MEMORY, "groups", NOWHERE)
        self.t.reload()
        _store_keys(scope, self.keys, self.t, entry, self.values, self.words)


def _search(
    keys: Keys, t: TableLocals, values: Sequence[Val], serial: ast.expr | None,
    fresh: Callable[[ast.expr], None] | None, likely: ast.expr | None = None,
) -> ast.expr:  # fmt: skip
    scope, writer = t.scope, t.scope.writer
    sought = Sought.of(keys, t, values)
    hash32 = sought.hash32
    slot = writer.let(expr("shr_u(H, S)", H=hash32, S=t.shift), "slot")
    entry = writer.let(ast.Constant(0) if likely is None else likely, "entry")
    absent = writer.let(ast.Constant(0), "absent")
    place: ast.expr = ast.Name(entry, ast.Load())
    with nullcontext() if likely is None else scope.when(_is_other(sought, entry)):
        with scope.when(expr("I == 0", I=t.index)):
            want = scope.let(expr("EPOCH | H", EPOCH=t.epoch, H=hash32), "want")
            with writer.while_(True), scope.block():
                writer.set(entry, t.in_slot(slot))
                tag = writer.let(expr("ld_i64(E, W)", E=entry, W=ENTRY_TAG), "tag")
                writer.code("if SAME:\n    break", SAME=sought.same(expr("T == W", T=tag, W=want), entry))
                writer.code("if T < EPOCH:\n    A = 1\n    break", T=tag, EPOCH=t.epoch, A=absent)
                writer.set(slot, expr("(S + 1) & M", S=slot, M=t.mask))
        with scope.otherwise():
            sought.walk_index(slot, entry, lambda: writer.code("A = 1\nbreak", A=absent), lambda: writer.code("break"))
    with scope.when(expr("A == 1", A=absent)):
        if serial is None or fresh is None:
            writer.set(entry, 0)
        else:
            first = ast.Constant(0) if keys.begins_with_text else serial
            made = expr("table_insert_at(T, H, S, P, N)", T=t.table, H=hash32, S=first, P=slot, N=t.entry_bytes)
            sought.make(entry, made)
            fresh(place)
    return place


def _is_other(sought: Sought, entry: str) -> ast.expr:
    """Whether a slot of a spread table, or 0, is not the place of the entry."""
    tagged = expr("ld_i64(E, W) == (EPOCH | H)", E=entry, W=ENTRY_TAG, EPOCH=sought.t.epoch, H=sought.hash32)
    return expr("E == 0 or not SAME", E=entry, SAME=sought.same(tagged, entry))


@dataclass(slots=True)
class _Word:
    """One word to compare; strings take two, the second of which may need a comparison of bytes; wide DECIMALs two."""

    word: int
    value: ast.expr
    high: ast.expr | None = None
    tail: ast.expr | None = None
    length: ast.expr | None = None
    address: ast.expr | None = None

    def equals(self, t: TableLocals, entry: str) -> ast.expr:
        first = expr("ld_i64(E, W) == V", E=entry, W=self.word, V=self.value)
        if self.high is not None:
            return expr("F and ld_i64(E, W) == H", F=first, E=entry, W=beside(self.word, 1, "HIGH"), H=self.high)
        if self.tail is None:
            return first
        return expr(
            "F and (L <= SHORT and ld_i64(E, W) == T or L > SHORT and string_is(TABLE, E, W0, A) == 1)",
            F=first, L=self.length or 0, SHORT=INLINE_STRING_BYTES, E=entry, W=beside(self.word, 1, "TAIL"),
            T=self.tail, TABLE=t.table, W0=self.word, A=self.address or 0,
        )  # fmt: skip


def _key_words(scope: Scope, keys: Keys, values: Sequence[Val]) -> list[_Word]:
    words: list[_Word] = []
    for f, value in zip(keys.fields, values, strict=True):
        if f.type.physical is not Physical.BYTES:
            words.append(_Word(f.word, *as_words(scope, value)))
            continue
        address, length = value.parts
        if value.null is not None:
            length = scope.let(expr("pick(N, 0, L)", N=value.null, L=length), "length")
        known = value.key if value.null is None else None
        head, tail = known or text_key(scope, address, length)
        words.append(_Word(f.word, head, None, tail, length, address))
    for null_word in null_words(keys.fields):
        words.append(_Word(null_word, scope.let(null_bits(values, keys.fields, null_word), "key_nulls")))
    return words


def text_key(scope: Scope, address: ast.expr, length: ast.expr) -> tuple[ast.expr, ast.expr]:
    """The two words of a text as a key: length and first bytes; the bytes after them, or their hash."""
    head = ast.Name(scope.writer.let(ast.Constant(0), "head"), ast.Load())
    tail = ast.Name(scope.writer.let(ast.Constant(0), "tail"), ast.Load())
    with scope.when(expr("L > 0", L=length)):
        scope.writer.set(head.id, expr("string_head(A, L)", A=address, L=length))
        scope.writer.set(tail.id, expr("string_tail(A, L)", A=address, L=length))
        with scope.when(expr("L > SHORT", L=length, SHORT=INLINE_STRING_BYTES)):
            scope.writer.set(tail.id, expr("hash_bytes(A, L)", A=address, L=length))
    return head, tail


def _hash(scope: Scope, words: list[_Word]) -> ast.expr:
    """The 32-bit hash: Fibonacci for one word, a multiplicative mix for more, 0 for none."""
    parts = [p for w in words for p in (w.value, w.high, w.tail) if p is not None]
    if not parts:
        return ast.Constant(0)
    if len(parts) == 1:
        return scope.let(expr("hash_word(K)", K=parts[0]), "hash")
    state: ast.expr = expr("wmul(K, F)", K=parts[0], F=HASH_FACTOR)
    for part in parts[1:]:
        state = expr("hash_mix(S, K)", S=state, K=part)
    return scope.let(expr("shr_u(S, 32)", S=state), "hash")


def _store_keys(
    scope: Scope, keys: Keys, t: TableLocals, entry: str, values: Sequence[Val], words: list[_Word]
) -> None:
    place: ast.expr = ast.Name(entry, ast.Load())
    for f, value, word in zip(keys.fields, values, words, strict=False):
        if f.type.physical is Physical.BYTES:
            store_field(scope, f, place, t.address, value)
            continue
        for n, part in enumerate((word.value, word.high)):
            if part is not None:
                scope.writer.code("st_i64(E, W, V)", E=entry, W=f.at(n), V=part)
    for nulls in words[len(keys.fields) :]:
        scope.writer.code("st_i64(E, W, V)", E=entry, W=nulls.word, V=nulls.value)
