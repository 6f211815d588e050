// SPDX-License-Identifier: Apache-2.0
//
// What of a tensor belongs to one of several replicas, where they divide it (ZeRO, arXiv 1910.02054 sec. 5). Every tensor is divided by
// itself, into equal parts but for kPartUnit values. Parts begin at multiples of that, so that a kernel of vectors has the same values
// in its vectors, and the same ones in its rest, as it has of the whole tensor: the same bits come out. Private to the runtime.
//
//   partOf(1000, 1, 2)   // {496, 1000}
#pragma once

#include "engine/plan/plan.h"

#include <cstdint>

namespace stagecraft::runtime {

inline constexpr std::int64_t kPartUnit = 16; // values of the widest vector, 64 bytes

struct PartRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    [[nodiscard]] std::int64_t size() const { return end - begin; }
    bool operator==(const PartRange&) const = default;
};

constexpr PartRange partOf(std::int64_t values, int replica, int replicas)
{
    const auto bound = [&](int until) { return until == replicas ? values : values * until / replicas / kPartUnit * kPartUnit; };
    return {bound(replica), bound(replica + 1)};
}

// Whether the replicas of a run divide the update of the weights (ZeRO-1), and the gradients as well (ZeRO-2). The weights they divide
// where the schedule gathers them (StageDuties::gathers).
inline bool dividesUpdate(const engine::Plan& plan)
{
    return plan.machine.replicas > 1 && plan.pipeline.sharding >= engine::Sharding::Zero1;
}
inline bool dividesGradients(const engine::Plan& plan)
{
    return plan.machine.replicas > 1 && plan.pipeline.sharding >= engine::Sharding::Zero2;
}

} // namespace stagecraft::runtime
