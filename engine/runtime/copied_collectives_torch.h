// SPDX-License-Identifier: Apache-2.0
//
// Collectives of replicas by copies between GPUs, in the order of the members: the result has the same bits wherever the ranks are, also where
// they share a GPU or some are on the CPU. A tensor is written by its own rank alone, which makes two rounds of a collective:
//
//   1  waits for what all have given    makes its part in memory of its own: the sum of that part of all copies, in the order of the
//                                       members, or a copy of what it has of the weights
//   2  waits for round 1 of all         takes the parts of the others over into its own tensors
//
// As much goes between two GPUs as in a ring, and the sums are those of the CPU (collective.h) but for where they are made. What a round
// has made is held until all have taken it. Private to the runtime.
//
//   CopiedCollectives collectives(replicas);
#pragma once

#include "engine/runtime/device_collectives_torch.h"

namespace stagecraft::runtime {

class CopiedCollectives final : public DeviceCollectives {
public:
    using DeviceCollectives::DeviceCollectives;
    [[nodiscard]] int rounds() const override { return 2; }

private:
    void make(const Collective& collective, std::size_t member, int round, Cycle& cycle) override;
    void makePart(const Collective& collective, std::size_t member, Cycle& cycle);
    void takeParts(const Collective& collective, std::size_t member, Cycle& cycle);
};

} // namespace stagecraft::runtime
