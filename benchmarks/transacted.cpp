// The loops of the transactional applications: a trigger for each event over tables with a key, one after the other.
// See loops.cpp for what every function gets and gives, and for the rules they keep.

#include "loops.hpp"

namespace {

struct Account {
    u64 epoch;
    i64 id, balance, spare;
    bool is(i64 key) const { return id == key; }
    i64 key() const { return id; }
    void start(i64 key, i32) { id = key, balance = 0; }
};
struct Record {
    u64 epoch;
    i64 id, value, spare;
    bool is(i64 key) const { return id == key; }
    i64 key() const { return id; }
    void start(i64 key, i32) { id = key, value = 0; }
};
struct Goods {
    u64 epoch;
    i64 id, price, quantity;
    bool is(i64 key) const { return id == key; }
    i64 key() const { return id; }
    void start(i64 key, i32) { id = key, price = quantity = 0; }
};
struct Speed {
    u64 epoch;
    i64 segment, there;
    double mean;
    bool is(i64 key) const { return segment == key; }
    i64 key() const { return segment; }
    void start(i64 key, i32) { segment = key, there = 0, mean = 0; }
};
struct Car {
    i64 segment, vehicle;
};
struct Seen {
    u64 epoch;
    Car car;
    i64 spare;
    bool is(const Car &c) const { return car.segment == c.segment && car.vehicle == c.vehicle; }
    Car key() const { return car; }
    void start(const Car &c, i32) { car = c; }
};

inline u64 hash(const Car &c) { return mixed(hash(c.segment), c.vehicle); }

inline bool add(i64 &to, i64 amount) { return __builtin_add_overflow(to, amount, &to); }

inline bool bit(const void *bits, i64 n) { return (static_cast<const std::uint8_t *>(bits)[n >> 3] >> (n & 7)) & 1; }

// A column of lists without NULL elements: offsets, then values.
struct Lists {
    const i32 *offsets;
    const i64 *values;
    Lists(const void **columns, int n)
        : offsets(static_cast<const i32 *>(columns[n])), values(words_of(columns, n + 1)) {}
    i64 count(i64 row) const { return offsets[row + 1] - offsets[row]; }
    const i64 *of(i64 row) const { return values + offsets[row]; }
};

// Which rows of a column are not NULL, as Arrow wants it.
struct Valid {
    std::vector<std::uint8_t> bits;
    explicit Valid(i64 rows) : bits(rows / 4 + 16) {}
    void set(i64 row, bool there) {
        std::uint8_t &byte = bits[row >> 3];
        byte = static_cast<std::uint8_t>((byte & ~(1 << (row & 7))) | there << (row & 7));
    }
};

}  // namespace

// deposits and transfers of a ledger; columns: kind, source and target account, source and target asset, two amounts
extern "C" i64 ledger(const void **columns, i64 rows, i64 batch, const i64 *, i64 *sums) {
    const i64 *in[7];
    for (int c = 0; c < 7; c++) in[c] = words_of(columns, c);
    Results out(4, batch, sums);
    Table<Account, i64> accounts, assets;
    // a table may move its entries when it makes one: both of an event are there before either is written
    auto both = [](Table<Account, i64> &table, i64 a, i64 b) {
        table.find(a);
        Account *second = table.find(b);
        return std::pair(table.find(a), second);
    };
    auto add = [](i64 &to, i64 amount) { return __builtin_add_overflow(to, amount, &to); };
    for (i64 first = 0; first < rows; first += batch) {
        const i64 end = std::min(rows, first + batch);
        i64 *o[4] = {out[0], out[1], out[2], out[3]};
        for (i64 i = first; i < end; i++) {
            if (const i64 ahead = i + kAhead; ahead < rows) {  // faster than asking first whether the tables are large
                accounts.prefetch(in[1][ahead]), accounts.prefetch(in[2][ahead]);
                assets.prefetch(in[3][ahead]), assets.prefetch(in[4][ahead]);
            }
            auto [source, target] = both(accounts, in[1][i], in[2][i]);
            auto [from, to] = both(assets, in[3][i], in[4][i]);
            const i64 x = in[5][i], y = in[6][i];
            bool done = true, over = false;
            if (in[0][i] == 0) {
                over = add(source->balance, x) || add(from->balance, y);
            } else if (source->balance > x && from->balance > y) {
                source->balance -= x, from->balance -= y;
                over = add(target->balance, x) || add(to->balance, y);
            } else {
                done = false;
            }
            if (over) return -1;
            o[0][i - first] = in[1][i], o[1][i - first] = done;
            o[2][i - first] = source->balance, o[3][i - first] = target->balance;
        }
        out.used = end - first;
        out.flush();
    }
    return out.total;
}

// requests that read ten records, or write ten values (queries/transactions/grep_and_sum.cq); columns: is_read (bits),
// keys and values (lists), ts; key and value of the records at first. parameters[0]: how many records. Results: ts, total.
extern "C" i64 grep_and_sum(const void **columns, i64 rows, i64 batch, const i64 *parameters, i64 *sums) {
    const Lists keys(columns, 1), values(columns, 3);
    const i64 *ts = words_of(columns, 5), *key = words_of(columns, 6), *value = words_of(columns, 7);
    Results out(2, batch, sums);
    Valid known(batch);
    Table<Record, i64> records;
    for (i64 i = 0; i < parameters[0]; i++) records.find(key[i])->value = value[i];
    for (i64 first = 0; first < rows; first += batch) {
        const i64 end = std::min(rows, first + batch);
        i64 *o[2] = {out[0], out[1]};
        for (i64 i = first; i < end; i++) {
            const i64 *wanted = keys.of(i), count = keys.count(i);
            const bool reads = bit(columns[0], i);
            i128 total = 0;
            bool some = false;
            if (reads) {
                for (i64 n = 0; n < count; n++)
                    if (const Record *r = records.seek(wanted[n])) total += r->value, some = true;
                if (!fits(total)) return -1;
            } else {
                const i64 *given = values.of(i);
                if (values.count(i) != count) return -1;
                for (i64 n = 0; n < count; n++)
                    if (Record *r = records.seek(wanted[n])) r->value = given[n];
            }
            o[0][i - first] = ts[i], o[1][i - first] = static_cast<i64>(total);
            known.set(i - first, some);
        }
        out.used = end - first;
        out.flush();
    }
    return out.total;
}

// bids, and changes of prices and quantities (queries/transactions/online_bidding.cq); columns: kind (text), item, price,
// quantity, items and amounts (lists), ts; id, price and quantity of the goods at first. parameters[0]: how many goods.
// Results: ts, kind, item of the events that are accepted.
extern "C" i64 online_bidding(const void **columns, i64 rows, i64 batch, const i64 *parameters, i64 *sums) {
    const i32 *offsets = static_cast<const i32 *>(columns[0]);
    const char *bytes = static_cast<const char *>(columns[1]);
    const i64 *item = words_of(columns, 2), *price = words_of(columns, 3), *quantity = words_of(columns, 4);
    const Lists items(columns, 5), amounts(columns, 7);
    const i64 *ts = words_of(columns, 9), *id = words_of(columns, 10), *prices = words_of(columns, 11);
    const i64 *quantities = words_of(columns, 12);
    Results out(3, batch, sums);
    Valid known(batch);
    std::vector<char> text(64 * batch + 64);
    std::vector<i32> ends(batch + 1);
    Table<Goods, i64> goods;
    for (i64 i = 0; i < parameters[0]; i++) {
        Goods *g = goods.find(id[i]);
        g->price = prices[i], g->quantity = quantities[i];
    }
    auto is = [&](i64 row, const char *wanted, i64 size) {
        return offsets[row + 1] - offsets[row] == size && std::memcmp(bytes + offsets[row], wanted, size) == 0;
    };
    for (i64 first = 0; first < rows; first += batch) {
        const i64 end = std::min(rows, first + batch);
        i64 used = 0, filled = 0;
        for (i64 i = first; i < end; i++) {
            const bool alters = is(i, "alter", 5);
            bool done = true, single = false;
            if (alters || is(i, "top", 3)) {
                const i64 *wanted = items.of(i), *given = amounts.of(i), count = items.count(i);
                if (amounts.count(i) != count) return -1;
                for (i64 n = 0; n < count && done; n++) {
                    Goods *g = goods.seek(wanted[n]);
                    if (!g) continue;
                    if (alters) {
                        g->price = given[n];
                        continue;
                    }
                    i64 now = g->quantity;
                    if (!add(now, given[n]) && now >= 0) {
                        g->quantity = now;
                        continue;
                    }
                    done = false;
                    while (n-- > 0)
                        if (Goods *before = goods.seek(wanted[n])) before->quantity -= given[n];
                }
            } else {
                single = true;
                if (Goods *g = goods.seek(item[i])) {
                    i64 left;
                    done = price[i] >= g->price && !__builtin_sub_overflow(g->quantity, quantity[i], &left) && left >= 0;
                    if (done) g->quantity = left;
                }
            }
            if (!done) continue;
            const i64 size = offsets[i + 1] - offsets[i];
            if (filled + size + 16 > static_cast<i64>(text.size())) text.resize(2 * text.size() + size);
            std::memcpy(text.data() + filled, bytes + offsets[i], size);
            filled += size;
            ends[used + 1] = static_cast<i32>(filled);
            out[0][used] = ts[i], out[1][used] = size, out[2][used] = single ? item[i] : 0;
            known.set(used, single);
            used++;
        }
        out.used = used;
        out.flush();
    }
    return out.total;
}

// reports of vehicles: mean speed and number of vehicles of a segment, and the toll (queries/transactions/
// toll_processing.cq); columns: vid, seg, speed, ts. Results: ts, vid, seg, toll.
extern "C" i64 toll_processing(const void **columns, i64 rows, i64 batch, const i64 *, i64 *sums) {
    const i64 *vid = words_of(columns, 0), *seg = words_of(columns, 1), *speed = words_of(columns, 2);
    const i64 *ts = words_of(columns, 3);
    Results out(4, batch, sums);
    Table<Speed, i64> speeds;
    Table<Account, i64> vehicles;  // the number of them for a balance
    Table<Seen, Car> seen;
    for (i64 first = 0; first < rows; first += batch) {
        const i64 end = std::min(rows, first + batch);
        i64 *o[4] = {out[0], out[1], out[2], out[3]};
        for (i64 i = first; i < end; i++) {
            if (const i64 ahead = i + kAhead; ahead < rows) seen.prefetch({seg[ahead], vid[ahead]});
            Speed *s = nullptr;
            if (speed[i] >= 0) {
                s = speeds.find(seg[i]);
                const double now = static_cast<double>(speed[i]);
                s->mean = s->there ? (s->mean + now) / 2 : now, s->there = 1;
            } else {
                s = speeds.seek(seg[i]);
            }
            Account *n = vehicles.find(seg[i]);
            const std::size_t before = seen.births.size();
            seen.find({seg[i], vid[i]});
            if (seen.births.size() != before && add(n->balance, 1)) return -1;
            i64 toll = 0;
            if (n->balance > 50 && s && s->mean < 40) {
                const i64 over = n->balance - 50;
                if (__builtin_mul_overflow(over, 2, &toll) || __builtin_mul_overflow(toll, over, &toll)) return -1;
            }
            o[0][i - first] = ts[i], o[1][i - first] = vid[i], o[2][i - first] = seg[i], o[3][i - first] = toll;
        }
        out.used = end - first;
        out.flush();
    }
    return out.total;
}
