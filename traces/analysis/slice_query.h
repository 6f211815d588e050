// SPDX-License-Identifier: Apache-2.0
//
// What one looks for among the slices of a trace, read from a line of text. Terms are separated by blanks, and a slice must
// fulfil all of them; upper and lower case are the same.
//
//   0F0  3SEND_F1  u3B1       the action of that text form; a number left out stands for any: F3, 1B, 2I, OPTIMIZER
//   (0F1;3B0)OVERLAP_F_B      exactly that pair; each of its parts is found by itself as well
//   stage 2   rank 1   mb 3   the number of the stage, rank, micro-batch (mb) or step; also stage:2, stage=2, stage2, mb 3-7
//   forward  send  optimizer  a word of what kind of action it is
//   7  2-5                    the stage or the micro-batch
//
// A slice that is no action (a kernel of an imported trace) is found by its name, a row of such slices by its own: there
// every term but those with stage, rank, micro-batch or step is a part of the name.
//
//   const Expected<SliceQuery> query = SliceQuery::parse("stage 2 send");
//   const LaneQuery onLane = query.value().on(lane.info());
//   if (onLane.any() && onLane.matches(lane.action(i), lane.step(i), trace.text(lane.text(i)))) found(i);
#pragma once

#include "traces/base/action.h"
#include "traces/base/expected.h"
#include "traces/store/lane.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::traces {

// A set of action kinds, a bit each.
using KindSet = std::uint32_t;
inline constexpr KindSet kAllKinds = (KindSet{1} << kActionKindCount) - 1;

struct NumberRange {
    std::int32_t first = std::numeric_limits<std::int32_t>::min();
    std::int32_t last = std::numeric_limits<std::int32_t>::max();

    [[nodiscard]] constexpr bool contains(std::int32_t number) const { return number >= first && number <= last; }
    constexpr void cut(const NumberRange& other)
    {
        first = first > other.first ? first : other.first;
        last = last < other.last ? last : other.last;
    }
};

// A query on one lane, whose terms about the lane are settled.
class LaneQuery {
public:
    [[nodiscard]] bool any() const { return any_; } // false: no slice of the lane can match

    [[nodiscard]] bool matches(const Action& action, Step step, std::string_view text) const
    {
        return covers(step) && (action.kind() == ActionKind::None ? matchesName(text) : matchesAction(action));
    }
    // The same in parts, for who goes through many slices.
    [[nodiscard]] bool covers(Step step) const { return steps_.contains(step.value); }
    [[nodiscard]] bool matchesAction(const Action& action) const
    {
        if (exact_ && *exact_ != action) return false;
        if (action.kind() != ActionKind::Overlap) return matchesWork(action.work, ActionKind::None);
        Work first = action.work;
        first.kind = ActionKind::Forward;
        return matchesWork(first, ActionKind::Overlap) || matchesWork(action.partner, ActionKind::Overlap);
    }
    [[nodiscard]] bool matchesName(std::string_view text) const; // of a slice that is no action

private:
    friend class SliceQuery;
    [[nodiscard]] bool matchesWork(const Work& work, ActionKind pair) const;

    bool any_ = true;
    bool onlyActions_ = false;   // something is asked for that a name does not tell
    std::vector<KindSet> kinds_; // a work must be of one kind of each, or its pair is
    NumberRange stages_;
    NumberRange microbatches_;
    NumberRange steps_;
    std::vector<NumberRange> either_; // the stage or the micro-batch lies in it
    std::optional<Flow> flow_;
    std::optional<Action> exact_;
    std::vector<std::string> words_; // parts of a name, in lower case
};

class SliceQuery {
public:
    // An error where a number is missing. A text without any term is a query that is empty, and finds nothing.
    static Expected<SliceQuery> parse(std::string_view text);

    [[nodiscard]] bool empty() const { return words_.empty() && !onLanes_; }
    [[nodiscard]] LaneQuery on(const LaneInfo& lane) const;

private:
    // A term that is a part of a name as well. Where the lane's own name has it, its slices need it no more.
    struct Word {
        std::string text;          // in lower case
        KindSet kinds = kAllKinds; // of which it is said
    };
    void addTerm(std::string_view term);
    bool addAction(const std::string& term);
    bool addNumber(std::string_view term);
    NumberRange* rangeOf(std::string_view keyword);

    LaneQuery query_; // without the words
    NumberRange ranks_;
    std::vector<Word> words_;
    bool onLanes_ = false; // has a term about rank, stage, micro-batch or step
};

} // namespace stagecraft::traces
