// SPDX-License-Identifier: Apache-2.0
//
// How the parts of collectives are made: here by the CPU, in one go; on GPUs they are asked for (device_collectives_torch.h). One
// member's calls come from one thread at a time, those of the members of a collective from any. Private to the runtime.
//
//   CollectiveWork cpu;
//   for (int round = 0; round < cpu.rounds(); ++round)
//       for (std::size_t m = 0; m < collective.members().size(); ++m) cpu.work(collective, m, round);
#pragma once

#include "engine/runtime/collective.h"

#include <functional>

namespace stagecraft::runtime {

class CollectiveWork {
public:
    using Record = std::function<void(const Collective&, std::size_t member, const CollectiveSpan&)>;

    CollectiveWork() = default;
    virtual ~CollectiveWork() = default;
    CollectiveWork(const CollectiveWork&) = delete;
    CollectiveWork& operator=(const CollectiveWork&) = delete;

    // On the rank's thread, before anything else of it.
    virtual void prepare(Rank /*rank*/) {}
    // All members are through one before any begins the next.
    [[nodiscard]] virtual int rounds() const { return 1; }
    virtual void work(const Collective& collective, std::size_t member, int /*round*/) { collective.work(member); }
    // The member is through the last one, at the times that its thread has seen. It is recorded at once, or when it is done.
    virtual void end(const Collective& collective, std::size_t member, const CollectiveSpan& span, const Record& record) { record(collective, member, span); }
    // Waits until all that the rank is through is done, and recorded.
    virtual void settle(Rank /*rank*/, const Record& /*record*/) {}
};

} // namespace stagecraft::runtime
