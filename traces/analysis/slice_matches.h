// SPDX-License-Identifier: Apache-2.0
//
// Which slices of a trace a query finds: a bit for each, with sums, so that ten million slices take some 2 MB however many
// are found. The matches have an order, that of their begin and then of their lanes, in which each has its place and its
// neighbours; those are found by search, in the time of a few microseconds a lane. A trace that grows is looked at from
// where it was looked at last.
//
//   SliceMatches matches(query);
//   matches.extend(trace, stop);                        // any thread, of a snapshot or a trace that stands still
//   matches.count() == 17
//   const auto next = matches.after(trace, selected);   // the trace may have grown meanwhile
#pragma once

#include "traces/analysis/slice_query.h"
#include "traces/store/trace.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

namespace stagecraft::traces {

// A row of bits that grows at its end and knows the number of set ones before each.
class BitRow {
public:
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

    void add(bool bit)
    {
        const std::size_t at = size_ % kWordBits;
        if (at == 0) {
            words_.push_back(0);
            before_.push_back(static_cast<std::uint32_t>(count_));
        }
        words_.back() |= static_cast<std::uint64_t>(bit) << at;
        count_ += bit ? 1 : 0;
        ++size_;
    }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] std::size_t count() const { return count_; }
    [[nodiscard]] bool at(std::size_t i) const { return i < size_ && (words_[i / kWordBits] >> (i % kWordBits) & 1) != 0; }
    [[nodiscard]] std::size_t countBefore(std::size_t i) const;
    [[nodiscard]] std::size_t firstFrom(std::size_t i) const;  // index of the first set bit from i on; kNone where none is
    [[nodiscard]] std::size_t lastBefore(std::size_t i) const; // of the last set bit before i

private:
    static constexpr std::size_t kWordBits = 64;
    [[nodiscard]] std::size_t find(std::size_t nth) const; // index of the set bit that has `nth` before it

    std::vector<std::uint64_t> words_;
    std::vector<std::uint32_t> before_; // a word: set bits before it
    std::size_t size_ = 0;
    std::size_t count_ = 0;
};

class SliceMatches {
public:
    SliceMatches() = default;
    explicit SliceMatches(SliceQuery query) : query_(std::move(query)) {}

    // Looks at the slices that were added since the last time. False: stopped before the end, from where it may go on.
    bool extend(const Trace& trace, const std::stop_token& stop = {});
    [[nodiscard]] std::size_t seen() const; // slices looked at
    [[nodiscard]] std::size_t count() const;

    [[nodiscard]] bool contains(SliceRef slice) const;
    [[nodiscard]] std::size_t countBefore(const Trace& trace, SliceRef slice) const; // how many have a place before it
    // The neighbours of a slice, which need not be a match itself; nullopt at the ends.
    [[nodiscard]] std::optional<SliceRef> after(const Trace& trace, SliceRef slice) const;
    [[nodiscard]] std::optional<SliceRef> before(const Trace& trace, SliceRef slice) const;
    // The first match that begins at a moment or later, and the last one that begins before.
    [[nodiscard]] std::optional<SliceRef> from(const Trace& trace, TimeNs time) const;
    [[nodiscard]] std::optional<SliceRef> until(const Trace& trace, TimeNs time) const;

private:
    SliceQuery query_;
    std::vector<BitRow> lanes_; // by LaneId, as far as looked at
};

} // namespace stagecraft::traces
