// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/collective.h"

#include "engine/runtime/replica_part.h"

#include <algorithm>
#include <array>

namespace stagecraft::runtime {

// sources[0] + sources[1] + ..., from the left, to all the targets. In pieces that stay in the nearest cache.
void sumInto(const std::vector<float*>& sources, const std::vector<float*>& targets, std::int64_t size)
{
    constexpr std::int64_t kPiece = 2048;
    std::array<float, kPiece> sum;
    for (std::int64_t from = 0; from < size; from += kPiece) {
        const std::int64_t length = std::min(kPiece, size - from);
        std::copy_n(sources.front() + from, length, sum.begin());
        for (std::size_t k = 1; k < sources.size(); ++k) {
            const float* const next = sources[k] + from;
            for (std::int64_t i = 0; i < length; ++i) sum[static_cast<std::size_t>(i)] += next[i];
        }
        for (float* const target : targets) std::copy_n(sum.begin(), length, target + from);
    }
}

bool Collective::give(std::size_t member, std::vector<Values> values)
{
    given_[member] = std::move(values);
    if (++count_ < members_.size()) return false;
    count_ = 0;
    return true;
}

void Collective::work(std::size_t member) const
{
    if (!sums()) return allGather(member);
    if (kind_.result == Result::OwnPart) return reduceScatter(member);
    allReduce(member);
}

void Collective::allReduce(std::size_t member) const
{
    for (std::size_t t = 0; t < given_.front().size(); ++t) {
        const PartRange part = partOf(sizeOf(t), static_cast<int>(member), static_cast<int>(members_.size()));
        std::vector<float*> copies;
        for (std::size_t m = 0; m < members_.size(); ++m) copies.push_back(numbersOf(m, t, part.begin));
        sumInto(copies, copies, part.size());
    }
}

// Of several members of a replica the first does it for all of them.
void Collective::reduceScatter(std::size_t member) const
{
    const int replica = members_[member].replica;
    if (member > 0 && members_[member - 1].replica == replica) return;
    for (std::size_t t = 0; t < given_.front().size(); ++t) {
        const PartRange part = partOf(sizeOf(t), replica, replicas_);
        std::vector<float*> all;
        std::vector<float*> own;
        for (std::size_t m = 0; m < members_.size(); ++m) {
            all.push_back(numbersOf(m, t, part.begin));
            if (members_[m].replica == replica) own.push_back(all.back());
        }
        sumInto(all, own, part.size());
    }
}

void Collective::allGather(std::size_t member) const
{
    for (std::size_t t = 0; t < given_.front().size(); ++t)
        for (std::size_t other = 0; other < members_.size(); ++other) {
            if (other == member) continue;
            const PartRange part = partOf(sizeOf(t), members_[other].replica, replicas_);
            std::copy_n(given_[other][t].data() + part.begin * kind_.valueBytes, part.size() * kind_.valueBytes,
                        given_[member][t].data() + part.begin * kind_.valueBytes);
        }
}

} // namespace stagecraft::runtime
