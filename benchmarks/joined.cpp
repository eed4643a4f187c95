// The loops of joins and sessions: see loops.cpp for what they are. The rows of the inputs after the first stand behind
// the parameters.

#include "loops.hpp"

namespace {

constexpr i64 kNever = INT64_MAX;  // later than any time

// The rows of each key in order of arrival: an index of keys, and dense rows that are linked.
struct Rows {
    struct Key {
        i64 id;
        i32 first, last;  // numbers of rows, counted from 1; 0: no key here
    };
    struct Row {
        i64 value;
        i64 next;
    };
    std::vector<Key> index = std::vector<Key>(64);
    std::vector<Row> rows = std::vector<Row>(1);
    u64 mask = 63;
    int shift = 58;
    i64 keys = 0;

    u64 slot(i64 id) const { return hash(id) >> shift; }
    void prefetch(i64 id) const { __builtin_prefetch(&index[slot(id)], 1); }
    __attribute__((noinline, cold)) void grow() {
        std::vector<Key> old(2 * (mask + 1));
        old.swap(index);
        mask = 2 * mask + 1, shift--;
        for (const Key &key : old) {
            if (!key.first) continue;
            u64 at = slot(key.id);
            while (index[at].first) at = (at + 1) & mask;
            index[at] = key;
        }
    }
    Key *find(i64 id) {
        u64 at = slot(id);
        while (index[at].first && index[at].id != id) at = (at + 1) & mask;
        return &index[at];
    }
    void add(i64 id, i64 value) {
        Key *key = find(id);
        const i32 number = static_cast<i32>(rows.size());
        rows.push_back({value, 0});
        if (key->first) {
            rows[key->last].next = number;
            key->last = number;
            return;
        }
        *key = {id, number, number};
        if (static_cast<u64>(++keys) * 2 > mask) grow();
    }
};

}  // namespace

// The rows of the input that comes first are kept by key, those of the other meet them.
// columns: id and weight of items, auction and price of sales; parameters: whether items come first, rows of the second
extern "C" i64 joined(const void **columns, i64 rows, i64 batch, const i64 *parameters, i64 *sums) {
    const bool items_first = parameters[0];
    const i64 *kept = words_of(columns, items_first ? 0 : 2), *value = words_of(columns, items_first ? 1 : 3);
    const i64 *probing = words_of(columns, items_first ? 2 : 0), *other = words_of(columns, items_first ? 3 : 1);
    Results out(3, batch, sums);
    Rows table;
    for (i64 i = 0; i < rows; i++) {
        table.prefetch(kept[std::min(i + kAhead, rows - 1)]);
        table.add(kept[i], value[i]);
    }
    const i64 count = parameters[1];
    i64 *price = out[items_first ? 1 : 2], *weight = out[items_first ? 2 : 1];
    for (i64 i = 0; i < count; i++) {
        table.prefetch(probing[std::min(i + 2 * kAhead, count - 1)]);
        __builtin_prefetch(&table.rows[table.index[table.slot(probing[std::min(i + kAhead, count - 1)])].first]);
        for (i64 at = table.find(probing[i])->first; at; at = table.rows[at].next) {
            out[0][out.used] = probing[i];
            price[out.used] = other[i], weight[out.used] = table.rows[at].value;
            out.row_done();
        }
    }
    out.flush();
    return out.total;
}

namespace {

struct Latest {
    u64 epoch;
    i64 id, value, there;
    bool is(i64 key) const { return id == key; }
    i64 key() const { return id; }
    void start(i64 key, i32) { id = key, there = 0; }
};

struct Arrived {
    i64 time, id, value;
};

// Rows by time, those of one time as they came: a ring into which late ones are sorted.
struct Waiting {
    std::vector<Arrived> ring = std::vector<Arrived>(64);
    u64 first = 0, behind = 0;

    Arrived &nth(u64 n) { return ring[n & (ring.size() - 1)]; }
    i64 first_time() { return first == behind ? kNever : nth(first).time; }
    Arrived take() { return nth(first++); }
    void add(Arrived row) {
        if (behind - first == ring.size()) grow();
        u64 place = behind++;
        for (; place > first && nth(place - 1).time > row.time; place--) nth(place) = nth(place - 1);
        nth(place) = row;
    }
    __attribute__((noinline, cold)) void grow() {
        std::vector<Arrived> bigger(2 * ring.size());
        for (u64 n = first; n < behind; n++) bigger[n & (bigger.size() - 1)] = nth(n);
        ring.swap(bigger);
    }
};

}  // namespace

// Each trade beside the last quote of its key at its time or before, if there is one. Rows come one by one, whichever
// input has the earlier one, and wait until neither input can bring an earlier one: a stream does not know what follows.
// columns: auction, price, ts of trades; auction, quoted, ts of quotes; parameters: rows of quotes
extern "C" i64 asof(const void **columns, i64 rows, i64 batch, const i64 *parameters, i64 *sums) {
    const i64 *auction = words_of(columns, 0), *price = words_of(columns, 1), *ts = words_of(columns, 2);
    const i64 *of = words_of(columns, 3), *quoted = words_of(columns, 4), *at = words_of(columns, 5);
    const i64 quotes = parameters[0];
    Results out(3, batch, sums);
    Table<Latest, i64> table;
    Waiting trades_wait, quotes_wait;
    auto release_until = [&](i64 watermark) {
        while (true) {
            const i64 quote = quotes_wait.first_time(), trade = trades_wait.first_time();
            const i64 earliest = std::min(quote, trade);
            if (earliest > watermark || earliest == kNever) return;
            if (quote <= trade) {
                const Arrived row = quotes_wait.take();
                Latest *latest = table.find(row.id);
                latest->value = row.value, latest->there = 1;
            } else if (trade == watermark) {
                return;  // a quote of that time may follow
            } else {
                const Arrived row = trades_wait.take();
                const Latest *latest = table.find(row.id);
                if (!latest->there) continue;
                out[0][out.used] = row.id, out[1][out.used] = row.value, out[2][out.used] = latest->value;
                out.row_done();
            }
        }
    };
    i64 i = 0, next = 0;
    while (i < rows || next < quotes) {
        if (next == quotes || (i < rows && ts[i] <= at[next])) {
            trades_wait.add({ts[i], auction[i], price[i]});
            i++;
        } else {
            quotes_wait.add({at[next], of[next], quoted[next]});
            next++;
        }
        const i64 trades_until = i == rows ? kNever : i ? ts[i - 1] : -kNever;
        const i64 quotes_until = next == quotes ? kNever : next ? at[next - 1] : -kNever;
        release_until(std::min(trades_until, quotes_until));
    }
    out.flush();
    return out.total;
}

namespace {

struct Met {  // the rows of a key in the open window, of both inputs: numbers in their arenas, 0: none
    u64 epoch;
    i64 id;
    i32 first[2], last[2];
    bool is(i64 key) const { return id == key; }
    i64 key() const { return id; }
    void start(i64 key, i32) { id = key, first[0] = first[1] = last[0] = last[1] = 0; }
};
struct Linked {
    i64 value, next;
};

}  // namespace

// Bids beside the asks of their key and window of parameters[0]; rows come in order of time, whichever input has the
// earlier one, and each meets those of the other input that have come before it.
// columns: auction, price, ts of bids; auction, asked, ts of asks; parameters: size of a window, rows of asks
extern "C" i64 window_joined(const void **columns, i64 rows, i64 batch, const i64 *parameters, i64 *sums) {
    const i64 *key[2] = {words_of(columns, 0), words_of(columns, 3)};
    const i64 *value[2] = {words_of(columns, 1), words_of(columns, 4)};
    const i64 *ts[2] = {words_of(columns, 2), words_of(columns, 5)};
    const i64 size = parameters[0], count[2] = {rows, parameters[1]};
    Results out(3, batch, sums);
    Table<Met, i64> table;
    std::vector<Linked> arena[2] = {std::vector<Linked>(1), std::vector<Linked>(1)};
    i64 high = INT64_MIN, at[2] = {0, 0};
    while (at[0] < count[0] || at[1] < count[1]) {
        const int side = at[0] == count[0] || (at[1] < count[1] && ts[1][at[1]] < ts[0][at[0]]);
        const i64 i = at[side]++, time = ts[side][i], id = key[side][i];
        if (time >= high) {
            high = time - ((time % size) + size) % size + size;
            table.clear();
            arena[0].resize(1), arena[1].resize(1);
        }
        table.prefetch(key[side][std::min(i + kAhead, count[side] - 1)]);
        Met *met = table.find(id);
        for (i64 n = met->first[!side]; n; n = arena[!side][n].next) {
            const i64 other = arena[!side][n].value;
            out[0][out.used] = id;
            out[1][out.used] = side ? other : value[0][i], out[2][out.used] = side ? value[1][i] : other;
            out.row_done();
        }
        const i32 number = static_cast<i32>(arena[side].size());
        arena[side].push_back({value[side][i], 0});
        if (met->first[side]) arena[side][met->last[side]].next = number;
        else met->first[side] = number;
        met->last[side] = number;
    }
    out.flush();
    return out.total;
}

namespace {

struct Bids {  // those of a key that are kept: the numbers of the first and of the last, counted from 1; 0: none
    u64 epoch;
    i64 id;
    i64 first, last;
    bool is(i64 key) const { return id == key; }
    i64 key() const { return id; }
    void start(i64 key, i32) { id = key, first = last = 0; }
};
struct Kept {
    i64 time, value, id, after;  // after: the number of the next bid of this key, 0 where there is none
};

}  // namespace

// Each ask beside the bids of its key from parameters[1] to parameters[0] before it, neither negative. Rows come in
// order of time, of one time bids first: so no ask has to be kept. Bids are in a ring, each linked to the next of its
// key, until they are too old for any.
// columns: auction, price, ts of bids; auction, asked, ts of asks; parameters: least and greatest distance, rows of asks
extern "C" i64 interval_joined(const void **columns, i64 rows, i64 batch, const i64 *parameters, i64 *sums) {
    const i64 *auction = words_of(columns, 0), *price = words_of(columns, 1), *ts = words_of(columns, 2);
    const i64 *of = words_of(columns, 3), *asked = words_of(columns, 4), *at = words_of(columns, 5);
    const i64 least = parameters[0], greatest = parameters[1], asks = parameters[2];
    Results out(3, batch, sums);
    Table<Bids, i64> table;
    std::vector<Kept> ring(64);
    i64 oldest = 1, next = 1;  // numbers of bids: the first that is kept, and that of the next one
    const auto kept = [&](i64 n) -> Kept & { return ring[n & (ring.size() - 1)]; };
    const auto expire = [&](i64 before) {
        for (; oldest < next && kept(oldest).time < before; oldest++) {
            table.prefetch(kept(std::min(oldest + kAhead, next - 1)).id);
            Bids *bids = table.find(kept(oldest).id);
            bids->first = kept(oldest).after;
            if (!bids->first) bids->last = 0;
        }
    };
    i64 i = 0;
    for (i64 ask = 0; ask < asks; ask++) {
        for (; i < rows && ts[i] <= at[ask]; i++) {
            table.prefetch(auction[std::min(i + kAhead, rows - 1)]);
            expire(ts[i] - greatest);
            if (next - oldest == static_cast<i64>(ring.size())) {
                std::vector<Kept> bigger(2 * ring.size());
                for (i64 n = oldest; n < next; n++) bigger[n & (bigger.size() - 1)] = kept(n);
                ring.swap(bigger);
            }
            Bids *bids = table.find(auction[i]);
            kept(next) = {ts[i], price[i], auction[i], 0};
            if (bids->last) kept(bids->last).after = next;
            else bids->first = next;
            bids->last = next++;
        }
        expire(at[ask] - greatest);
        table.prefetch(of[std::min(ask + 2 * kAhead, asks - 1)]);
        if (const Bids *soon = table.seek(of[std::min(ask + kAhead, asks - 1)])) __builtin_prefetch(&kept(soon->first));
        const Bids *bids = table.seek(of[ask]);
        for (i64 n = bids ? bids->first : 0; n && kept(n).time <= at[ask] - least; n = kept(n).after) {
            out[0][out.used] = of[ask], out[1][out.used] = kept(n).value, out[2][out.used] = asked[ask];
            out.row_done();
        }
    }
    out.flush();
    return out.total;
}

namespace {

struct Session {  // the one that is open; a count of 0: none is
    u64 epoch;
    i64 id, begun, last, count, low, high, spare;
    bool is(i64 key) const { return id == key; }
    i64 key() const { return id; }
    void start(i64 key, i32) { id = key, count = 0; }
};
struct Due {
    i64 time, id;
    bool operator<(const Due &other) const { return time > other.time; }  // the heap has the earliest first
};

}  // namespace

// COUNT and SUM of sessions that end parameters[0] after their last row; columns: ts, auction, price, in order of time
// A heap says when each may close; a session that has grown is put back. Those of one end leave by their beginning.
extern "C" i64 sessions(const void **columns, i64 rows, i64 batch, const i64 *parameters, i64 *sums) {
    const i64 *ts = words_of(columns, 0), *auction = words_of(columns, 1), *price = words_of(columns, 2);
    const i64 gap = parameters[0];
    Results out(4, batch, sums);
    Table<Session, i64> table;
    std::vector<Due> heap;
    std::vector<const Session *> due;
    bool wrong = false;
    auto close_until = [&](i64 now) {  // sessions that end before now
        while (!heap.empty() && heap.front().time < now) {
            const i64 end = heap.front().time;
            due.clear();
            while (!heap.empty() && heap.front().time == end) {
                Session *s = table.find(heap.front().id);
                std::pop_heap(heap.begin(), heap.end());
                if (s->last + gap == end) {
                    due.push_back(s);
                    heap.pop_back();
                } else {
                    heap.back() = {s->last + gap, s->id};
                    std::push_heap(heap.begin(), heap.end());
                }
            }
            std::sort(due.begin(), due.end(), [](const Session *a, const Session *b) { return a->begun < b->begun; });
            for (const Session *s : due) {
                const i128 sum = (static_cast<i128>(s->high) << 64) + static_cast<u64>(s->low);
                wrong |= !fits(sum);
                out[0][out.used] = s->begun, out[1][out.used] = s->id;
                out[2][out.used] = s->count, out[3][out.used] = static_cast<i64>(sum);
                out.row_done();
                const_cast<Session *>(s)->count = 0;
            }
        }
    };
    for (i64 i = 0; i < rows; i++) {
        if (!heap.empty() && heap.front().time < ts[i]) close_until(ts[i]);
        if (table.mask > kSmallSlots) table.prefetch(auction[std::min(i + kAhead, rows - 1)]);
        Session *s = table.find(auction[i]);
        if (!s->count) {
            s->begun = ts[i], s->low = s->high = 0;
            heap.push_back({ts[i] + gap, auction[i]});
            std::push_heap(heap.begin(), heap.end());
        }
        s->last = ts[i], s->count++;
        const i128 sum = ((static_cast<i128>(s->high) << 64) + static_cast<u64>(s->low)) + price[i];
        s->low = static_cast<i64>(sum), s->high = static_cast<i64>(sum >> 64);
    }
    close_until(INT64_MAX);
    if (wrong) return -1;
    out.flush();
    return out.total;
}
