// What the loops of loops.cpp, joined.cpp and transacted.cpp have in common: results, and tables by key.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace {

using i64 = std::int64_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i128 = __int128;

constexpr u64 kFactor = 0x9E3779B97F4A7C15u;
constexpr i64 kAhead = 12;            // rows a prefetch runs ahead
constexpr u64 kSmallSlots = 4096;     // tables beyond this are prefetched

inline u64 hash(i64 key) { return static_cast<u64>(key) * kFactor; }
inline u64 mixed(u64 state, i64 word) { return (state ^ (state >> 29) ^ static_cast<u64>(word)) * 0xBF58476D1CE4E5B9u; }

inline bool fits(i128 x) { return x == static_cast<i128>(static_cast<i64>(x)); }

// Result columns of words, emptied whenever they are full; `sums` adds up what was in them.
struct Results {
    std::vector<std::vector<i64>> columns;
    i64 limit, used = 0, total = 0;
    i64 *sums;
    std::vector<bool> real;

    Results(std::size_t count, i64 limit, i64 *sums, std::vector<bool> real = {})
        : columns(count, std::vector<i64>(2 * limit + 64)), limit(limit), sums(sums), real(std::move(real)) {
        this->real.resize(count);
    }
    i64 *operator[](std::size_t n) { return columns[n].data(); }
    void flush() {
        if (sums)
            for (std::size_t n = 0; n < columns.size(); n++)
                for (i64 i = 0; i < used; i++) {
                    double x;
                    std::memcpy(&x, &columns[n][i], 8);
                    u64 one = real[n] ? static_cast<u64>(std::llrint(x * 1000)) : static_cast<u64>(columns[n][i]);
                    sums[n] = static_cast<i64>(static_cast<u64>(sums[n]) + one);
                }
        total += used;
        used = 0;
    }
    void row_done() {
        if (++used >= limit) flush();
    }
};

// Open addressing, linear probing, at most half full; an entry lives while its epoch is the table's. Entry: a struct
// that begins with `u64 epoch` and has `bool is(const Key &)`, `void start(const Key &, i32 number)`, `Key key()`.
template <class Entry, class Key> struct Table {
    Entry *entries = nullptr;
    std::vector<i32> births;
    u64 mask = 0, epoch = 1;
    int shift = 0;

    Table() { resize(6); }
    Table(const Table &) = delete;
    Table(Table &&other) noexcept { swap(other); }
    ~Table() { std::free(entries); }
    void swap(Table &other) {
        std::swap(entries, other.entries);
        births.swap(other.births);
        std::swap(mask, other.mask);
        std::swap(epoch, other.epoch);
        std::swap(shift, other.shift);
    }
    void resize(int bits) {
        void *fresh = nullptr;
        if (posix_memalign(&fresh, 64, sizeof(Entry) << bits)) throw std::bad_alloc();
        std::memset(fresh, 0, sizeof(Entry) << bits);
        Entry *old = entries;
        entries = static_cast<Entry *>(fresh);
        mask = (u64(1) << bits) - 1;
        shift = 64 - bits;
        for (i32 &slot : births) {
            u64 at = hash(old[slot].key()) >> shift;
            while (entries[at].epoch == epoch) at = (at + 1) & mask;
            entries[at] = old[slot];
            slot = static_cast<i32>(at);
        }
        std::free(old);
    }
    void clear() {
        epoch++;
        births.clear();
    }
    void prefetch(const Key &key) const { __builtin_prefetch(&entries[hash(key) >> shift], 1); }
    __attribute__((noinline, cold)) Entry *insert(const Key &key) {
        if (births.size() * 2 > mask) resize(65 - shift);
        u64 at = hash(key) >> shift;
        while (entries[at].epoch == epoch) at = (at + 1) & mask;
        entries[at].epoch = epoch;
        entries[at].start(key, static_cast<i32>(births.size()));
        births.push_back(static_cast<i32>(at));
        return &entries[at];
    }
    inline __attribute__((always_inline)) Entry *find(const Key &key) {
        u64 at = hash(key) >> shift;
        while (true) {
            Entry *e = &entries[at];
            if (e->epoch == epoch && e->is(key)) return e;
            if (e->epoch != epoch) return insert(key);
            at = (at + 1) & mask;
        }
    }
    inline __attribute__((always_inline)) Entry *seek(const Key &key) const {  // null where there is none
        for (u64 at = hash(key) >> shift;; at = (at + 1) & mask) {
            Entry *e = &entries[at];
            if (e->epoch != epoch) return nullptr;
            if (e->is(key)) return e;
        }
    }
};

inline const i64 *words_of(const void **columns, int n) { return static_cast<const i64 *>(columns[n]); }

}  // namespace
