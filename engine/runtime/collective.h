// SPDX-License-Identifier: Apache-2.0
//
// One collective over copies of the same values in one process: what every rank gives lies in the memory of all, so each does its
// part of the work for all of them, and nothing is copied on the way. Sums are made in the order of the members: the result is the
// same for all to the bit, and the same in every run. Private to the runtime.
//
//   ALL_REDUCE    member k sums the k-th part of all copies, and writes it to all
//   REDUCE_GRAD   the same, but where replicas divide the update the sum of a replica's part goes to that replica alone
//                 (a reduce-scatter)
//   UNSHARD       every member copies from each of the others the part that is the other's (an all-gather)
//
// What is summed is float32. What is gathered may be values of any size, which none of the two looks into.
//
//   if (collective.give(member, spans)) // the last one has come: now all may work, each in its own thread
//       for (std::size_t m = 0; m < collective.members().size(); ++m) collective.work(m);
#pragma once

#include "engine/probe/clock.h"
#include "engine/runtime/rank_work.h"
#include "traces/base/units.h"

#include <cstddef>
#include <span>
#include <vector>

namespace stagecraft::runtime {

// A member's part of a collective that has been done.
struct CollectiveSpan {
    traces::Step step{};
    TimeNs begin = 0;
    TimeNs end = 0;
    TimeNs ready = 0; // when the last one gave
    Rank last{};      // who that was
};

// sources[0] + sources[1] + ..., from the left, to all the targets, which may be among them.
void sumInto(const std::vector<float*>& sources, const std::vector<float*>& targets, std::int64_t size);

class Collective {
public:
    struct Member {
        Rank rank{};     // of all ranks of all replicas
        Place place{};
        int replica = 0;
    };
    enum class Result : std::uint8_t { All, OwnPart }; // of a sum, to a replica
    struct Kind {
        traces::ActionKind action = traces::ActionKind::AllReduce;
        Stage stage{};
        traces::Bytes bytes = 0; // of one copy
        Result result = Result::All;
        int valueBytes = 4; // of one value
    };
    // Of a replica's members, those of direction down come before those of direction up.
    Collective(const Kind& kind, std::vector<Member> members, int replicas)
        : kind_(kind), members_(std::move(members)), replicas_(replicas), given_(members_.size())
    {
    }

    using Values = std::span<std::byte>; // of one tensor

    // What the member has, tensor by tensor, as many and as long as those of the others. True where all have given by then; they begin
    // anew after that. One thread at a time.
    bool give(std::size_t member, std::vector<Values> values);
    // The member's part, once all have given. Any thread, all members at the same time.
    void work(std::size_t member) const;

    [[nodiscard]] const Kind& kind() const { return kind_; }
    [[nodiscard]] bool sums() const { return kind_.action != traces::ActionKind::Unshard; }
    [[nodiscard]] const std::vector<Member>& members() const { return members_; }
    [[nodiscard]] int replicas() const { return replicas_; }
    [[nodiscard]] traces::Work action(std::size_t member) const
    {
        return traces::makeAction(kind_.action, kind_.stage, traces::kNoMicroBatch, members_[member].place.flow).work;
    }

private:
    // Values, of all the tensors; and the float32 at one.
    [[nodiscard]] std::int64_t sizeOf(std::size_t tensor) const
    {
        return static_cast<std::int64_t>(given_.front()[tensor].size()) / kind_.valueBytes;
    }
    [[nodiscard]] float* numbersOf(std::size_t member, std::size_t tensor, std::int64_t from) const
    {
        return reinterpret_cast<float*>(given_[member][tensor].data()) + from;
    }
    void allReduce(std::size_t member) const;
    void reduceScatter(std::size_t member) const;
    void allGather(std::size_t member) const;

    Kind kind_;
    std::vector<Member> members_;
    int replicas_;
    std::vector<std::vector<Values>> given_; // by member
    std::size_t count_ = 0;                            // that have given
};

} // namespace stagecraft::runtime
