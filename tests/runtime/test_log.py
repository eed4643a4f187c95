"""Keyed logs against lists in a dictionary: what is held, in which order, what is due, what waits for a proof."""

from __future__ import annotations

import random

import pytest
from both_ways import Compiled, Interpreted

from cq.runtime.base.native import native
from cq.runtime.base.ops import ld_i64, shr_u, st_i64
from cq.runtime.base.simulation import Memory
from cq.runtime.containers import log as c
from cq.runtime.containers import log_saving as cs
from cq.runtime.containers import log_words as w
from cq.runtime.containers import strings as x
from cq.runtime.containers import table_words as t
from cq.runtime.containers.log import log_append, log_forget, log_unlist
from cq.runtime.containers.log_words import (
    LOG_HEAD,
    LOG_NEXT,
    LOG_RECORD_BYTES,
    LOG_TABLE,
    RECORD_EXPIRY,
    RECORD_NEXT,
    RECORD_PROOF,
    log_chunk,
    log_record,
    log_since,
)
from cq.runtime.containers.strings import hash_word, string_store
from cq.runtime.containers.table_words import (
    NUMBER_MASK,
    TABLE_COUNT,
    TABLE_ENTRIES,
    TABLE_INDEX,
    TABLE_MASK,
    TABLE_SHIFT,
    TABLE_STRIDE,
    TABLE_WORDS,
)
from cq.runtime.containers.tables import table_insert
from cq.runtime.layout.abi import NEVER

LIST = 4
ENTRY_WORDS = LIST + w.LIST_WORDS  # tag, key, name (2 words), what the log knows of the key's records
KEY, NAME = 1, 2
VALUE, TEXT = w.RECORD_VALUES, w.RECORD_VALUES + 1
RECORD_WORDS = TEXT + 2


@native("i64(i64, i64, i64)", export=True)
def key_entry(log: int, hash32: int, key: int) -> int:
    """The entry of a key, made if it is missing; 0 without memory."""
    table = ld_i64(log, LOG_TABLE)
    mask = ld_i64(table, TABLE_MASK)
    slot = shr_u(hash32, ld_i64(table, TABLE_SHIFT))
    index = ld_i64(table, TABLE_INDEX)
    while ld_i64(index, slot) != 0:
        item = ld_i64(index, slot)
        entry = ld_i64(table, TABLE_ENTRIES) + (item & NUMBER_MASK) * ld_i64(table, TABLE_STRIDE)
        if shr_u(item, 32) == hash32 and ld_i64(entry, KEY) == key:
            return entry
        slot = (slot + 1) & mask
    entry = table_insert(table, hash32, 0)
    if entry != 0:
        st_i64(entry, KEY, key)
    return entry


@native("i64(i64, i64, i64, i64, i64, i64)", export=True)
def put_row(log: int, entry: int, expiry: int, serial: int, waits: int, value: int) -> int:
    """What generated code does with a row: the reference of its record, or 0."""
    reference = log_append(log, entry, expiry, serial, waits)
    if reference != 0:
        chunk = log_chunk(log, reference)
        st_i64(log_record(chunk, reference, ld_i64(log, LOG_RECORD_BYTES)), VALUE, value)
    return reference


@native("i64(i64, i64, i64, i64)", export=True)
def put_text(log: int, reference: int, address: int, length: int) -> int:
    """The text of a record just made."""
    chunk = log_chunk(log, reference)
    return string_store(chunk, log_record(chunk, reference, ld_i64(log, LOG_RECORD_BYTES)), TEXT, address, length)


@native("i64(i64, i64)", export=True)
def match_row(log: int, reference: int) -> int:
    """The record has a match: it waits for no proof."""
    chunk = log_chunk(log, reference)
    st_i64(log_record(chunk, reference, ld_i64(log, LOG_RECORD_BYTES)), RECORD_PROOF, 0)
    return 0


@native("i64(i64, i64, i64)", export=True)
def rows_since(log: int, entry: int, since: int) -> int:
    """Where a search begins for the rows of the key that expire at `since` or later."""
    records = entry + ld_i64(log, LOG_HEAD) * 8
    return log_since(log, records, since, ld_i64(log, LOG_RECORD_BYTES))


@native("i64(i64, i64, i64, i64)", export=True)
def pass_rows(log: int, first: int, last: int, width: int) -> int:
    """Rows of ever new keys come, each to be gone `width` later; 0, or -1 without memory."""
    for n in range(first, last):
        entry = key_entry(log, hash_word(n), n)
        if entry == 0 or log_append(log, entry, n + width, n, 0) == 0:
            return -1
        if ld_i64(log, LOG_NEXT) <= n:
            log_forget(log, n)
    return 0


@native("i64(i64, i64, i64, i64)", export=True)
def meet_rows(log: int, count: int, spread: int, bound: int) -> int:
    """Rows of one key come, row n at n, less up to `spread`; how many have come before each and are at most `bound`
    earlier, or -1. All are kept. Times are in milliseconds.
    """
    entry = key_entry(log, 7, 7)
    size = ld_i64(log, LOG_RECORD_BYTES)
    met = 0
    for n in range(count):
        time = (n - shr_u(hash_word(n + 1) * spread, 32)) * 1000
        since = time - bound * 1000
        reference = rows_since(log, entry, since) if n > 0 else 0
        while reference != 0:
            record = log_record(log_chunk(log, reference), reference, size)
            met += 1 if since <= ld_i64(record, RECORD_EXPIRY) <= time else 0
            reference = ld_i64(record, RECORD_NEXT)
        if log_append(log, entry, time, n, 0) == 0:
            return -1
    return met


@native("i64(i64, i64)", export=True)
def meet_once(log: int, count: int) -> int:
    """Rows of one key come and are met once each; how many are met, or -1 without memory."""
    size = ld_i64(log, LOG_RECORD_BYTES)
    met = 0
    for n in range(count):
        entry = key_entry(log, 7, 7)
        kept = log_append(log, entry, 1, n, 0)
        if kept == 0:
            return -1
        reference = rows_since(log, entry, 0)
        while reference != 0:
            met += 1
            reference = ld_i64(log_record(log_chunk(log, reference), reference, size), RECORD_NEXT)
        log_unlist(log, kept)
    return met


@native("i64(i64, i64, i64)", export=True)
def poke(address: int, index: int, value: int) -> int:
    st_i64(address, index, value)
    return 0


FUNCTIONS = (
    c.log_new, c.log_drop, c.log_append, c.log_unlist, c.log_proof, c.log_proved, c.log_forget, cs.log_save,
    cs.log_load, cs.log_saved_words, cs.log_arrivals, cs.log_take, cs.log_taken, c.log_held_bytes, w.log_search,
    x.string_store, key_entry, put_row, put_text, match_row, rows_since, pass_rows, meet_rows, meet_once, poke,
)  # fmt: skip


@pytest.fixture(params=[Interpreted, Compiled], ids=lambda way: way.__name__.lower())
def run(request):
    with request.param(*FUNCTIONS) as made:
        yield made


def lead(words):
    """How much later than a record those before it expire at most, in units, as it says."""
    return words[w.RECORD_HASH] >> 32 & w.MOST_LEAD


def latest_said(words):
    """When the last of the records up to this one expires, as it says."""
    expiry = words[w.RECORD_EXPIRY]
    if lead(words) == w.MOST_LEAD:
        return NEVER
    return ((expiry >> w.LEAD_LOG) + lead(words)) * w.LEAD_UNIT if lead(words) else expiry


class Model:
    """A log, and what it should hold: chunks of rows, a row being [key, expiry, serial, value, text, waits, listed]."""

    def __init__(self, run, hashes, places=4):
        self.run, self.hashes, self.places = run, hashes, places
        self.chunks, self.open, self.references = [], [], {}
        self.log = run.log_new(ENTRY_WORDS, 1 << NAME, RECORD_WORDS, 1 << TEXT)
        run.poke(self.log, w.LOG_PLACES, places)

    def hash(self, key):
        return self.hashes[key % len(self.hashes)]

    @property
    def rows(self):
        """Those in the lists of their keys."""
        return sorted((r for chunk in (*self.chunks, self.open) for r in chunk if r[6]), key=lambda row: row[3])

    def append(self, key, expiry, serial, value, text, waits):
        if len(self.open) == self.places:
            self.chunks.append(self.open)
            self.open = []
        entry = self.run.key_entry(self.log, self.hash(key), key)
        name = b"the name of key %d" % key
        if not any(row[0] == key for row in self.rows):
            table = self.run.words(self.log, w.LOG_WORDS)[w.LOG_TABLE]
            assert self.run.string_store(table, entry, NAME, self.run.place(name + bytes(16)), len(name)) == 1
        reference = self.run.put_row(self.log, entry, expiry, serial, waits, value)
        assert self.run.put_text(self.log, reference, self.run.place(text + bytes(16)), len(text)) == 1
        self.open.append([key, expiry, serial, value, text, waits, True])
        self.references[value] = reference

    def match(self, row):
        row[5] = 0
        self.run.match_row(self.log, self.references[row[3]])

    def unlist(self, row):
        busy = [chunk for chunk in self.chunks if any(r[6] for r in chunk)]
        if len(self.chunks) > 2 * len(busy):
            self.chunks = busy
        row[5], row[6] = 0, False
        self.run.log_unlist(self.log, self.references[row[3]])

    def forget(self, instant):
        self.chunks = [chunk for chunk in self.chunks if max(row[1] for row in chunk) > instant]
        if self.open and max(row[1] for row in self.open) <= instant:
            self.open = []
        self.run.log_forget(self.log, instant)

    def record(self, reference):
        log = self.run.words(self.log, w.LOG_WORDS)
        chunk = self.run.words(log[w.LOG_CHUNKS] + 8 * (reference >> w.PLACE_BITS), 1)[0]
        place = reference & (w.MOST_PLACES - 1)
        at = chunk + w.CHUNK_HEAD_BYTES + place * log[w.LOG_RECORD_BYTES]
        words = self.run.words(at, RECORD_WORDS)
        return words, self.text(at, words, TEXT, chunk)

    def text(self, at, words, word, holder):
        size = words[word] & 0xFFFFFFFF
        arena = self.run.words(holder, t.TABLE_WORDS)[t.TABLE_ARENA]
        return self.run.read(at + 8 * word + 4 if size <= x.INLINE_STRING_BYTES else arena + words[word + 1], size)

    def listed(self):
        """The rows of each key from first to last.

        Checked are their links back, and that none expires later than those behind it and its key say.
        """
        table = self.run.words(self.log, w.LOG_WORDS)[w.LOG_TABLE]
        header, found = self.run.words(table, t.TABLE_WORDS), {}
        for number in range(1, header[t.TABLE_COUNT] + header[t.TABLE_DEAD] + 1):
            at = header[t.TABLE_ENTRIES] + number * header[t.TABLE_STRIDE]
            entry = self.run.words(at, ENTRY_WORDS)
            if entry[t.ENTRY_TAG] == 0:
                continue
            key, before, latest = entry[KEY], 0, -NEVER
            last, reference = divmod(entry[LIST + w.LIST_ENDS], 1 << 32)
            assert self.text(at, entry, NAME, table) == b"the name of key %d" % key
            found[key] = []
            while reference:
                words, text = self.record(reference)
                assert words[w.RECORD_BEFORE] == before
                latest = max(latest, words[w.RECORD_EXPIRY])
                assert latest <= latest_said(words)
                found[key].append((words[w.RECORD_EXPIRY], words[w.RECORD_SERIAL], words[VALUE], text))
                before, reference = reference, words[w.RECORD_NEXT]
            assert last == before
            assert entry[LIST + w.LIST_LATEST] >= latest
        return found

    def lists(self):
        """What `listed` should give."""
        wanted = {}
        for key, expiry, serial, value, text, *_ in self.rows:
            wanted.setdefault(key, []).append((expiry, serial, value, text))
        return wanted

    def since(self, key, time):
        """The values of the rows of a key from where one has to look for those that expire at the time or later."""
        reference, found = self.run.rows_since(self.log, self.run.key_entry(self.log, self.hash(key), key), time), []
        while reference:
            words, _ = self.record(reference)
            found.append(words[VALUE])
            reference = words[w.RECORD_NEXT]
        return found

    def latest(self, key):
        """When the last row of the key expires, as its entry says."""
        entry = self.run.key_entry(self.log, self.hash(key), key)
        return self.run.words(entry, ENTRY_WORDS)[LIST + w.LIST_LATEST]

    def check_since(self, dice):
        """Where a search for rows that expire at a time or later begins, all of them are still to come."""
        rows = self.rows
        for key in {row[0] for row in rows}:
            mine = [row for row in rows if row[0] == key]
            time = dice.choice(mine)[1] + dice.choice([-9, 0, 1])
            seen = self.since(key, time)
            assert seen == [row[3] for row in mine][len(mine) - len(seen) :]
            assert {row[3] for row in mine if row[1] >= time} <= set(seen)

    def check(self):
        assert self.listed() == self.lists()
        words = self.run.words(self.log, w.LOG_WORDS)
        assert words[w.LOG_RECORDS] == len(self.rows)
        held = [chunk for chunk in range(1, words[w.LOG_NUMBERS] + 1) if chunk not in self.free_numbers(words)]
        assert len(held) == len(self.chunks) + (words[w.LOG_OPEN] != 0)
        latest = [max(row[1] for row in chunk) for chunk in (*self.chunks, self.open) if chunk]
        first = min([*latest, *(row[1] for row in self.rows if row[5])], default=NEVER)
        assert words[w.LOG_NEXT] <= first
        if not any(row[5] for row in self.rows):
            self.run.log_proof(self.log, -NEVER)
            self.run.log_forget(self.log, -NEVER)
            assert self.run.words(self.log, 1)[w.LOG_NEXT] == first

    def free_numbers(self, words):
        """The numbers of chunks that are to be used again."""
        found, number = set(), words[w.LOG_FREE]
        while number:
            found.add(number)
            (number,) = self.run.words(words[w.LOG_CHUNKS] + 8 * number, 1)
        return found

    def prove(self, instant):
        """The values of the rows proved until the instant, in order; they wait no more."""
        found = []
        while reference := self.run.log_proof(self.log, instant):
            assert self.run.log_proof(self.log, instant) == reference
            found.append(self.record(reference)[0][VALUE])
            self.run.log_proved(self.log)
        return found

    def due(self, instant):
        """What `prove` should give."""
        found = sorted((r for r in self.rows if r[5] and r[1] <= instant), key=lambda row: (row[1], row[3]))
        for row in found:
            row[5] = 0
        return [row[3] for row in found]


def text_of(dice):
    return dice.choice([b"t", b"u", b"v"]) * dice.choice([0, 3, 12, 13, 40])


def fill(model, dice, count, first=0, keys=range(9), serial=0):
    for n in range(first, first + count):
        serial += dice.randrange(2)
        model.append(dice.choice(keys), dice.randrange(60), serial, n, text_of(dice), dice.randrange(2))
    return serial


@pytest.mark.parametrize("hashes", ["alike", "few", "spread"])
@pytest.mark.parametrize("places", [1, 4, 500])
@pytest.mark.one_in(2)
def test_a_log_holds_what_has_not_expired_and_what_shares_a_chunk_with_it(run, hashes, places):
    dice = random.Random(f"{hashes} {places}")
    made = {"alike": [7], "few": [n << 29 for n in range(8)], "spread": [x.hash_word(n) for n in range(40)]}[hashes]
    model, now, serial = Model(run, made, places), 0, 0
    for n in range(700):
        turn = dice.random()
        if turn < 0.75:
            serial += dice.randrange(2)
            expiry = now + dice.choice([1, 3, 8, dice.randrange(1, 40)])
            model.append(dice.randrange(40), expiry, serial, n, text_of(dice), dice.randrange(2))
        elif turn < 0.85 and model.rows:
            for row in dice.sample(model.rows, min(dice.choice([1, 1, 9, 40]), len(model.rows))):
                dice.choice([model.match, model.unlist, model.unlist])(row)
            model.check()
        else:
            now += dice.choice([0, 1, 2, 9])
            assert model.prove(now) == model.due(now)
            model.forget(now)
            model.check()
            model.check_since(dice)
    assert model.prove(now + 100) == model.due(now + 100)
    model.forget(now + 100)
    model.check()
    assert model.rows == []
    run.log_drop(model.log)


@pytest.mark.parametrize("scale", [1, w.LEAD_UNIT // 2, 1 << 40])
def test_a_record_knows_how_much_later_those_before_it_expire(run, scale):
    """In units, begun ones too."""
    dice, latest = random.Random(scale), -NEVER
    model = Model(run, [x.hash_word(5)])
    for n in range(300):
        expiry = (dice.randrange(-60, 60) + n // 4) * scale
        model.append(3, expiry, n, n, b"", 0)
        latest = max(latest, expiry)
        beyond = -(-latest // w.LEAD_UNIT) - expiry // w.LEAD_UNIT
        assert model.latest(3) == latest
        assert lead(model.record(model.references[n])[0]) == (0 if latest == expiry else min(beyond, w.MOST_LEAD))
        model.check_since(dice)
    run.log_drop(model.log)


@pytest.mark.parametrize(("spread", "bound"), [(1, 0), (1, 40), (30, 40), (1000, 5)])
def test_rows_within_a_bound_are_met_from_where_they_begin(run, spread, bound):
    log = run.log_new(ENTRY_WORDS, 0, RECORD_WORDS, 0)
    times = [n - (x.hash_word(n + 1) * spread >> 32) for n in range(300)]
    wanted = sum(0 <= t - before <= bound for n, t in enumerate(times) for before in times[:n])
    assert run.meet_rows(log, 300, spread, bound) == wanted
    run.log_drop(log)


def test_rows_within_a_bound_take_little_longer_of_one_key_with_many():
    """As long as the square of their number would be minutes."""
    with Compiled(*FUNCTIONS) as run:
        log = run.log_new(ENTRY_WORDS, 0, RECORD_WORDS, 0)
        assert run.meet_rows(log, 300_000, 50, 50) > 5_000_000
        run.log_drop(log)


def check_latest(model):
    """Of each key the log knows when its last row expires: it has lost none."""
    for key, rows in model.listed().items():
        assert model.latest(key) == max(expiry for expiry, *_ in rows)


def saved(run, log):
    most = run.log_saved_words(log)
    room = run.zeros(8 * most + 8)
    assert run.log_save(log, room) <= most
    return room


@pytest.mark.parametrize("count", [0, 1, 3, 150])
def test_pieces_of_a_saved_log_are_one_again(run, count):
    """Key by key into four logs, then what they save into one that has rows of other keys already."""
    hashes, dice = [x.hash_word(n) for n in range(64)], random.Random(count)
    source = Model(run, hashes)
    serial = fill(source, dice, count, keys=range(40))
    assert source.prove(30) == source.due(30)
    source.forget(30)
    for row in source.rows[::7]:
        source.unlist(row)
    saved(run, source.log)  # no key is dead
    table = run.words(source.log, w.LOG_TABLE + 1)[-1]
    header = run.words(table, TABLE_WORDS)
    entries = [header[TABLE_ENTRIES] + n * header[TABLE_STRIDE] for n in range(1, header[TABLE_COUNT] + 1)]
    target = Model(run, hashes, places=3)
    fill(target, dice, 10, first=count, keys=range(40, 60), serial=serial)
    for lane in (2, 0, 3, 1):
        piece = Model(run, hashes, places=5)
        for entry in entries:
            if run.words(entry, 1)[0] % 4 == lane:
                assert run.log_take(piece.log, source.log, entry) == 1
        assert run.log_taken(piece.log) == 1
        assert piece.listed() == {k: rows for k, rows in source.listed().items() if hashes[k] % 256 % 4 == lane}
        check_latest(piece)
        room = saved(run, piece.log)
        assert run.log_load(target.log, room) == run.log_save(piece.log, room)
        run.log_drop(piece.log)
    assert target.listed() == {**source.listed(), **target.lists()}
    check_latest(target)
    proofs = [r for r in (*source.rows, *target.rows) if r[5]]
    assert target.prove(99) == [r[3] for r in sorted(proofs, key=lambda r: (r[1], r[2], r[3]))]
    run.log_forget(target.log, 99)
    assert run.words(target.log, w.LOG_WORDS)[w.LOG_RECORDS] == 0
    for made in (source, target):
        run.log_drop(made.log)


def test_a_log_of_other_records_is_refused(run):
    model = Model(run, [1])
    other = run.log_new(ENTRY_WORDS, 1 << NAME, RECORD_WORDS + 1, 1 << TEXT)
    more = run.log_new(ENTRY_WORDS + 1, 1 << NAME, RECORD_WORDS, 1 << TEXT)
    assert run.log_load(other, saved(run, model.log)) == 0
    assert run.log_load(more, saved(run, model.log)) == 0
    for log in (other, more, model.log):
        run.log_drop(log)


def test_a_log_makes_no_more_chunks_than_references_can_name(run):
    model = Model(run, [1], places=1)
    model.append(1, 5, 0, 0, b"", 0)
    run.poke(model.log, w.LOG_NUMBERS, w.MOST_NUMBERS - 1)
    assert run.put_row(model.log, run.key_entry(model.log, 1, 1), 5, 0, 0, 1) == 0
    run.poke(model.log, w.LOG_NUMBERS, 1)
    model.append(1, 5, 0, 1, b"", 0)
    model.check()
    run.log_drop(model.log)


def test_one_row_far_in_the_future_holds_back_its_chunk_only(run):
    model = Model(run, [x.hash_word(n) for n in range(64)])
    for n in range(200):
        model.append(n % 64, 10**9 if n == 77 else n + 5, n, n, b"more than twelve bytes", 0)
        model.forget(n)
    model.forget(1000)
    model.check()
    assert len(model.rows) == model.places
    assert run.log_held_bytes(model.log) < 30_000
    run.log_drop(model.log)


def test_a_chunk_whose_rows_are_gone_is_filled_again(run):
    """As when rows expire as fast as they come: its number, its memory and that of its texts stay as they were."""
    model, chunks = Model(run, [x.hash_word(n) for n in range(64)]), set()
    for n in range(60):
        for place in range(3):
            model.append(n % 64, n + 1, n, 3 * n + place, b"more than twelve bytes", 0)
        model.forget(n)
        model.check()
        model.forget(n + 1)
        model.check()
        assert model.rows == []
        words = run.words(model.log, w.LOG_WORDS)
        assert (words[w.LOG_NUMBERS], words[w.LOG_OPEN], words[w.LOG_NEXT]) == (1, 1, NEVER)
        (chunk,) = run.words(words[w.LOG_CHUNKS] + 8, 1)
        chunks.add((chunk, run.words(chunk, t.TABLE_WORDS)[t.TABLE_ARENA_CAPACITY]))
    assert len(chunks) == 1
    run.log_drop(model.log)


def test_rows_off_their_lists_are_not_saved(run):
    """A log that was saved and loaded saves as many words and the same texts, whatever was in its memory."""
    model = Model(run, [x.hash_word(n) for n in range(64)])
    fill(model, random.Random(2), 60, keys=range(9))
    for row in model.rows[::2]:
        model.unlist(row)
    other, found = Model(run, model.hashes, places=5), []
    for log, rest in ((model.log, 7), (other.log, -7)):
        most = run.log_saved_words(log)
        room = run.zeros(8 * most)
        for word in range(most):
            run.poke(room, word, rest)
        count = run.log_save(log, room)
        words = run.words(room, count)
        texts = words[cs.SAVED_STRINGS]
        found.append((count, texts, words[count - -(-texts // 8) :], run.log_arrivals(log, 0)))
        if log == model.log:
            assert run.log_load(other.log, room) == count < most
            assert run.log_arrivals(log, 0) == len(model.rows)
    assert found[0] == found[1]
    assert found[0][1] % 8 != 0
    assert other.listed() == model.listed()
    for made in (model, other):
        run.log_drop(made.log)


def test_rows_off_their_lists_do_not_slow_down_those_of_their_key():
    """As long as the square of their number would be minutes."""
    with Compiled(*FUNCTIONS) as run:
        log = run.log_new(ENTRY_WORDS, 0, RECORD_WORDS, 0)
        assert run.meet_once(log, 300_000) == 300_000
        run.log_drop(log)


@pytest.mark.parametrize("width", [1, 50, 2000])
def test_memory_stays_flat_however_many_keys_pass(run, width):
    rounds = 1_000_000 if run.compiled else 3000
    log = run.log_new(2 + w.LIST_WORDS, 0, RECORD_WORDS, 0)
    first = min(4 * width, 2500)
    assert run.pass_rows(log, 0, first, width) == 0
    held = run.log_held_bytes(log)
    assert run.pass_rows(log, first, rounds, width) == 0
    assert run.log_held_bytes(log) <= 2 * held
    assert run.words(log, w.LOG_WORDS)[w.LOG_NUMBERS] <= width // 512 + 4
    assert run.log_held_bytes(0) == 0
    run.log_drop(log)


@pytest.mark.parametrize("fail_at", range(26))
def test_without_memory_a_log_says_so_and_can_be_freed(fail_at):
    with Memory(fail_at=fail_at) as memory:
        log = c.log_new(ENTRY_WORDS, 1 << NAME, RECORD_WORDS, 1 << TEXT)
        if log == 0:
            memory.check_no_leaks()
            return
        st_i64(log, w.LOG_PLACES, 2)
        text = memory.place(b"a string that takes its own bytes" + bytes(16))
        whole = True
        for n in range(60):
            entry = key_entry(log, x.hash_word(n % 50), n % 50)
            reference = put_row(log, entry, n, n, n % 2, n) if entry else 0
            if reference == 0 or put_text(log, reference, text, 33) == 0:
                whole = False
                break
        assert not whole or fail_at > 8
        if whole:
            room = memory.place(bytes(8 * cs.log_saved_words(log) + 8), True)
            cs.log_save(log, room)
            other = c.log_new(ENTRY_WORDS, 1 << NAME, RECORD_WORDS, 1 << TEXT)
            assert other == 0 or cs.log_load(other, room) in {0, cs.log_saved_words(log)}
            c.log_drop(other)
            while reference := c.log_proof(log, 99):
                assert reference
                c.log_proved(log)
            c.log_forget(log, 99)
            assert ld_i64(log, w.LOG_RECORDS) == 0
        c.log_drop(log)
        memory.check_no_leaks()
