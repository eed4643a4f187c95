// The loops of the benchmark queries as an engineer would write them by hand for these very columns: the same hashing
// family, the same checks for overflow and NULL, groups in order of first arrival, results into buffers that are used
// again for every batch. Compiled by loops.py with -O3 -march=native; one thread.
//
// Every function: columns as Arrow buffers without offset, rows, the rows of a batch, parameters, and either null or one
// word a result column where the results are summed up for comparison. It returns the number of result rows, or -1
// after an overflow.

#include "loops.hpp"

namespace {

struct Group {  // of the tumbling aggregate
    u64 epoch;
    i64 id, count, low, high, least, most, spare;
    bool is(i64 key) const { return id == key; }
    i64 key() const { return id; }
    void start(i64 key, i32) { id = key, count = low = high = 0, least = INT64_MAX, most = INT64_MIN; }
};
struct Running {  // of the running sum: it is checked at every row, so one word is enough
    u64 epoch;
    i64 id, sum, spare;
    bool is(i64 key) const { return id == key; }
    i64 key() const { return id; }
    void start(i64 key, i32) { id = key, sum = 0; }
};
struct Counted {  // of the hopping count
    u64 epoch;
    i64 id, count, spare;
    bool is(i64 key) const { return id == key; }
    i64 key() const { return id; }
    void start(i64 key, i32) { id = key, count = 0; }
};
struct Road {
    i64 way, direction, segment;
};
struct Segment {
    u64 epoch;
    Road road;
    i64 cars, reports, low;
    i32 number;
    i32 high;  // of the sum of speeds, with `low`; 2^95 is out of reach for a count of rows in 64 bits
    bool is(const Road &r) const { return road.way == r.way && road.direction == r.direction && road.segment == r.segment; }
    Road key() const { return road; }
    void start(const Road &r, i32 n) { road = r, cars = reports = low = 0, high = 0, number = n; }
};
struct Car {
    i64 group, vehicle;
};
struct Seen {
    u64 epoch;
    Car car;
    i64 spare;
    bool is(const Car &c) const { return car.group == c.group && car.vehicle == c.vehicle; }
    Car key() const { return car; }
    void start(const Car &c, i32) { car = c; }
};

inline u64 hash(const Road &r) { return mixed(mixed(hash(r.way), r.direction), r.segment); }
inline u64 hash(const Car &c) { return mixed(hash(c.group), c.vehicle); }

i64 window_of(i64 time, i64 size) { return time - ((time % size) + size) % size; }

bool emit_groups(Table<Group, i64> &table, i64 start, Results &out) {
    for (i32 slot : table.births) {
        const Group &g = table.entries[slot];
        i128 sum = (static_cast<i128>(g.high) << 64) + static_cast<u64>(g.low);
        if (!fits(sum)) return false;
        i64 at = out.used;
        out[0][at] = start, out[1][at] = g.id, out[2][at] = g.count;
        out[3][at] = static_cast<i64>(sum), out[4][at] = g.least, out[5][at] = g.most;
        out.row_done();
    }
    table.clear();
    return true;
}

}  // namespace

// SELECT auction, price * 2 + 1, ts WHERE price > parameters[0]; columns: price, auction, ts
extern "C" i64 filtered(const void **columns, i64 rows, i64 batch, const i64 *parameters, i64 *sums) {
    const i64 *price = words_of(columns, 0), *auction = words_of(columns, 1), *ts = words_of(columns, 2);
    const i64 least = parameters[0], factor = parameters[1], more = parameters[2];
    Results out(3, batch, sums);
    i64 *a = out[0], *p = out[1], *t = out[2];
    for (i64 first = 0; first < rows; first += batch) {
        const i64 end = std::min(rows, first + batch);
        i64 k = 0;
        bool wrong = false;
        for (i64 i = first; i < end; i++) {
            i64 v = price[i], product, made;
            const bool keep = v > least;
            bool over = __builtin_mul_overflow(v, factor, &product);
            over |= __builtin_add_overflow(product, more, &made);
            wrong |= keep & over;
            a[k] = auction[i], p[k] = made, t[k] = ts[i];
            k += keep;
        }
        if (wrong) return -1;
        out.used = k;
        out.flush();
    }
    return out.total;
}

// The same where price may be NULL; columns: price, auction, ts, validity bits of price (or null)
extern "C" i64 filtered_nulls(const void **columns, i64 rows, i64 batch, const i64 *parameters, i64 *sums) {
    const i64 *price = words_of(columns, 0), *auction = words_of(columns, 1), *ts = words_of(columns, 2);
    const std::uint8_t *valid = static_cast<const std::uint8_t *>(columns[3]);
    const i64 least = parameters[0], factor = parameters[1], more = parameters[2];
    Results out(3, batch, sums);
    std::vector<std::uint8_t> out_valid(2 * batch / 8 + 16);
    i64 *a = out[0], *p = out[1], *t = out[2];
    for (i64 first = 0; first < rows; first += batch) {
        const i64 end = std::min(rows, first + batch);
        i64 k = 0;
        bool wrong = false;
        for (i64 i = first; i < end; i++) {
            i64 v = price[i], product, made;
            const bool there = !valid || ((valid[i >> 3] >> (i & 7)) & 1);
            const bool keep = there & (v > least);
            bool over = __builtin_mul_overflow(v, factor, &product);
            over |= __builtin_add_overflow(product, more, &made);
            wrong |= keep & over;
            a[k] = auction[i], p[k] = made, t[k] = ts[i];
            k += keep;
        }
        if (wrong) return -1;
        std::memset(out_valid.data(), 0xff, k / 8 + 1);  // what passes the filter is not NULL
        out.used = k;
        out.flush();
    }
    return out.total;
}

// COUNT, SUM, MIN, MAX a window of parameters[0] and key; columns: ts, auction, price
extern "C" i64 tumbling(const void **columns, i64 rows, i64 batch, const i64 *parameters, i64 *sums) {
    const i64 *ts = words_of(columns, 0), *auction = words_of(columns, 1), *price = words_of(columns, 2);
    const i64 size = parameters[0];
    Results out(6, batch, sums);
    Table<Group, i64> table;
    i64 low = 0, high = INT64_MIN;
    for (i64 first = 0; first < rows; first += batch) {
        const i64 end = std::min(rows, first + batch);
        for (i64 i = first; i < end; i++) {
            if (ts[i] >= high) {
                if (!emit_groups(table, low, out)) return -1;
                low = window_of(ts[i], size), high = low + size;
            }
            if (table.mask > kSmallSlots) table.prefetch(auction[std::min(i + kAhead, end - 1)]);
            Group *g = table.find(auction[i]);
            const i64 v = price[i];
            const i128 sum = ((static_cast<i128>(g->high) << 64) + static_cast<u64>(g->low)) + v;
            g->low = static_cast<i64>(sum), g->high = static_cast<i64>(sum >> 64);
            g->count++;
            g->least = std::min(g->least, v), g->most = std::max(g->most, v);
        }
    }
    if (!emit_groups(table, low, out)) return -1;
    out.flush();
    return out.total;
}

// SUM(price) OVER (PARTITION BY auction ROWS UNBOUNDED PRECEDING); columns: auction, price
extern "C" i64 running(const void **columns, i64 rows, i64 batch, const i64 *, i64 *sums) {
    const i64 *auction = words_of(columns, 0), *price = words_of(columns, 1);
    Results out(2, batch, sums);
    Table<Running, i64> table;
    for (i64 first = 0; first < rows; first += batch) {
        const i64 end = std::min(rows, first + batch);
        i64 *a = out[0], *s = out[1];
        for (i64 i = first; i < end; i++) {
            if (table.mask > kSmallSlots) table.prefetch(auction[std::min(i + kAhead, end - 1)]);
            Running *r = table.find(auction[i]);
            if (__builtin_add_overflow(r->sum, price[i], &r->sum)) return -1;
            a[i - first] = auction[i], s[i - first] = r->sum;
        }
        out.used = end - first;
        out.flush();
    }
    return out.total;
}

// COUNT a key in windows of parameters[1] that begin every parameters[0]; columns: ts, auction
// A table a pane; a window that closes merges its panes in order of time, its groups leave in order of first arrival.
extern "C" i64 hopping(const void **columns, i64 rows, i64 batch, const i64 *parameters, i64 *sums) {
    const i64 *ts = words_of(columns, 0), *auction = words_of(columns, 1);
    const i64 slide = parameters[0], panes = parameters[1] / slide;
    Results out(3, batch, sums);
    std::vector<Table<Counted, i64>> ring(panes);  // the pane that begins at p * slide is ring[p % panes]
    Table<Counted, i64> merged;
    Table<Counted, i64> *now = nullptr;
    i64 pane = 0, next_end = 0, high = INT64_MIN;
    auto close_until = [&](i64 last) {  // windows that end at or before pane number `last` begins
        for (; next_end <= last; next_end++) {
            merged.clear();
            for (i64 p = next_end - panes; p < next_end; p++) {
                const Table<Counted, i64> &from = ring[((p % panes) + panes) % panes];
                for (i32 slot : from.births) merged.find(from.entries[slot].id)->count += from.entries[slot].count;
            }
            for (i32 slot : merged.births) {
                const i64 at = out.used;
                out[0][at] = (next_end - panes) * slide, out[1][at] = merged.entries[slot].id;
                out[2][at] = merged.entries[slot].count;
                out.row_done();
            }
            ring[((next_end % panes) + panes) % panes].clear();  // the oldest pane's place is the next one's
        }
    };
    for (i64 first = 0; first < rows; first += batch) {
        const i64 end = std::min(rows, first + batch);
        for (i64 i = first; i < end; i++) {
            if (ts[i] >= high) {
                const bool begun = now != nullptr;
                pane = window_of(ts[i], slide) / slide;
                if (begun) close_until(pane);
                else next_end = pane + 1;
                now = &ring[((pane % panes) + panes) % panes];
                high = (pane + 1) * slide;
            }
            if (now->mask > kSmallSlots) now->prefetch(auction[std::min(i + kAhead, end - 1)]);
            now->find(auction[i])->count++;
        }
    }
    if (now) close_until(pane + panes);
    out.flush();
    return out.total;
}

// COUNT(DISTINCT vid), COUNT(*), AVG(spd) a window and road segment where type = 0
// columns: ts, type, vid, spd, xway, dir, seg; parameters[0]: the window
extern "C" i64 segments(const void **columns, i64 rows, i64 batch, const i64 *parameters, i64 *sums) {
    const i64 *ts = words_of(columns, 0), *type = words_of(columns, 1), *vid = words_of(columns, 2);
    const i64 *spd = words_of(columns, 3), *way = words_of(columns, 4), *dir = words_of(columns, 5);
    const i64 *seg = words_of(columns, 6);
    const i64 size = parameters[0], wanted = parameters[1];
    Results out(7, batch, sums, {false, false, false, false, false, false, true});
    Table<Segment, Road> table;
    Table<Seen, Car> cars;
    i64 low = 0, high = INT64_MIN;
    auto close = [&] {
        for (i32 slot : table.births) {
            const Segment &g = table.entries[slot];
            const i64 at = out.used;
            const double mean = ((static_cast<double>(g.high) * 0x1p64) + static_cast<double>(static_cast<u64>(g.low))) /
                                static_cast<double>(g.reports);
            out[0][at] = low, out[1][at] = g.road.way, out[2][at] = g.road.direction, out[3][at] = g.road.segment;
            out[4][at] = g.cars, out[5][at] = g.reports;
            std::memcpy(&out[6][at], &mean, 8);
            out.row_done();
        }
        table.clear();
        cars.clear();
    };
    for (i64 first = 0; first < rows; first += batch) {
        const i64 end = std::min(rows, first + batch);
        for (i64 i = first; i < end; i++) {
            if (type[i] != wanted) continue;
            if (ts[i] >= high) {
                close();
                low = window_of(ts[i], size), high = low + size;
            }
            Segment *g = table.find({way[i], dir[i], seg[i]});
            const i128 sum = ((static_cast<i128>(g->high) << 64) + static_cast<u64>(g->low)) + spd[i];
            g->low = static_cast<i64>(sum), g->high = static_cast<i32>(sum >> 64);
            g->reports++;
            const std::size_t before = cars.births.size();
            cars.find({g->number, vid[i]});
            g->cars += static_cast<i64>(cars.births.size() - before);
        }
    }
    close();
    out.flush();
    return out.total;
}

namespace {

struct Word {  // head: length and first four bytes; tail: the next eight, or the hash of a longer word's bytes
    u64 head, tail;
    const char *bytes;
    i64 size;
};
struct Entry {
    u64 epoch, head, tail;
    i64 count, offset;
    bool is(const Word &w) const { return head == w.head && tail == w.tail; }
};

u64 load(const char *from) {
    u64 x;
    std::memcpy(&x, from, 8);
    return x;
}

u64 hash_bytes(const char *bytes, i64 size) {
    u64 state = static_cast<u64>(size) * kFactor;
    i64 at = 0;
    for (; at + 8 <= size; at += 8) state = mixed(state, static_cast<i64>(load(bytes + at)));
    u64 last = 0;
    std::memcpy(&last, bytes + at, size - at);
    return mixed(state, static_cast<i64>(last));
}

// Reads up to 12 bytes behind the word: the caller sees to it that they are there.
inline Word word_at(const char *bytes, i64 size) {
    const i64 kept = std::min<i64>(std::max<i64>(size - 4, 0), 8);  // no branch: lengths cannot be guessed
    const u64 first = load(bytes) & (size < 4 ? (u64(1) << (8 * size)) - 1 : 0xffffffffu);
    u64 tail = load(bytes + 4) & (kept == 8 ? ~u64(0) : (u64(1) << (8 * kept)) - 1);
    if (__builtin_expect(size > 12, 0)) tail = hash_bytes(bytes, size);
    return {static_cast<u64>(size) | first << 32, tail, bytes, size};
}

inline u64 hash(const Word &w) { return mixed(w.head * kFactor, static_cast<i64>(w.tail)); }

struct Words {
    std::vector<Entry> entries = std::vector<Entry>(64);
    std::vector<i32> births;
    std::vector<char> arena;
    u64 mask = 63;
    int shift = 58;

    bool same(const Entry &e, const Word &w) const {
        return e.is(w) && (w.size <= 12 || std::memcmp(arena.data() + e.offset, w.bytes, w.size) == 0);
    }
    __attribute__((noinline, cold)) Entry *insert(const Word &w) {
        if (births.size() * 2 > mask) {
            std::vector<Entry> old(2 * (mask + 1));
            old.swap(entries);
            mask = 2 * mask + 1, shift--;
            for (i32 &slot : births) {
                u64 at = mixed(old[slot].head * kFactor, static_cast<i64>(old[slot].tail)) >> shift;
                while (entries[at].epoch) at = (at + 1) & mask;
                entries[at] = old[slot];
                slot = static_cast<i32>(at);
            }
        }
        u64 at = hash(w) >> shift;
        while (entries[at].epoch) at = (at + 1) & mask;
        entries[at] = {1, w.head, w.tail, 0, static_cast<i64>(arena.size())};
        if (w.size > 12) arena.insert(arena.end(), w.bytes, w.bytes + w.size);
        births.push_back(static_cast<i32>(at));
        return &entries[at];
    }
    inline __attribute__((always_inline)) Entry *find(const Word &w) {
        u64 at = hash(w) >> shift;
        while (true) {
            Entry *e = &entries[at];
            if (!e->epoch) return insert(w);
            if (same(*e, w)) return e;
            at = (at + 1) & mask;
        }
    }
};

}  // namespace

// Words of lines and how often each has been seen so far; columns: offsets (i32) and bytes of the lines, 16 bytes of
// slack behind them. parameters[0]: the separator. Results: the words as text, the counts.
extern "C" i64 counted_words(const void **columns, i64 rows, i64 batch, const i64 *parameters, i64 *sums) {
    const i32 *offsets = static_cast<const i32 *>(columns[0]);
    const char *bytes = static_cast<const char *>(columns[1]);
    const u64 separators = 0x0101010101010101u * static_cast<u64>(parameters[0]);
    Words table;
    std::vector<i64> counts(2 * batch);
    std::vector<i32> ends(2 * batch + 1);
    std::vector<char> text(64 * batch + 64);
    i64 used = 0, filled = 0, total = 0;
    auto flush = [&] {
        if (sums)
            for (i64 i = 0; i < used; i++) sums[0] += ends[i + 1] - ends[i], sums[1] += counts[i];
        total += used, used = 0, filled = 0;
    };
    for (i64 line = 0; line < rows; line++) {
        const char *at = bytes + offsets[line], *stop = bytes + offsets[line + 1];
        while (true) {
            const char *end = at;
            while (true) {  // sixteen bytes at a time: the lowest byte that equals the separator
                const u64 x = load(end) ^ separators, y = load(end + 8) ^ separators;
                const u64 here = (x - 0x0101010101010101u) & ~x & 0x8080808080808080u;
                const u64 after = (y - 0x0101010101010101u) & ~y & 0x8080808080808080u;
                if (here | after) {
                    end += (here ? __builtin_ctzll(here) : 64 + __builtin_ctzll(after)) >> 3;
                    break;
                }
                end += 16;
                if (end >= stop) break;
            }
            if (end > stop) end = stop;
            const i64 size = end - at;
            const Word word = word_at(at, size);
            counts[used] = ++table.find(word)->count;
            if (filled + size + 16 > static_cast<i64>(text.size())) text.resize(2 * text.size() + size);
            if (size <= 16) std::memcpy(text.data() + filled, at, 16);
            else std::memcpy(text.data() + filled, at, size);
            filled += size;
            ends[++used] = static_cast<i32>(filled);
            if (used == batch) flush();
            if (end == stop) break;
            at = end + 1;
        }
    }
    flush();
    return total;
}
