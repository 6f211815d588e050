// SPDX-License-Identifier: Apache-2.0
//
// The cliques in which replicas sum by NCCL, as far as ranks of this process are in them: ranks that hold copies of the same stage. With 2
// replicas of 4 ranks {0, 4}, {1, 5}, {2, 6} and {3, 7}; in two directions, where rank 3 holds the other copy of what rank 0 does,
// {0, 3, 4, 7} and {1, 2, 5, 6}. A rank's calls come from one thread, and from the same one. Private to the runtime.
//
//   NcclCliques cliques(run, {.source = source, .ids = ids, .without = "--transport auto"}, seats);   // connects; throws what went wrong
//   cliques.meet(rank);                                               // on the rank's thread, before its first sum
//   cliques.sum(collective, member, values);                          // on the stream that is current, in groups, in place
//   cliques.track(collective, member, device.mark());
//   cliques.finish();
#pragma once

#include "engine/runtime/executor_torch.h"
#include "engine/runtime/nccl_link.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::runtime {

inline constexpr std::string_view kEndingSums = "ending its sums by NCCL";

class NcclCliques {
public:
    struct Way {
        const NcclSource& source;
        std::vector<NcclId> ids; // of sumCliques(), as long
        std::string without;     // how a run does without NCCL
    };
    struct Seat {
        Rank rank{}; // of all replicas
        const RankDevice* sums = nullptr; // its stream for them; not owned
    };
    NcclCliques(const Execution& run, const Way& way, const std::vector<Seat>& seats);
    ~NcclCliques();

    // NCCL connects the members of a clique at their first sum, and waits for all. Every rank goes through its cliques in their order.
    // Failures go to the run's control.
    void meet(Rank rank);
    // Where it fails the run ends with the reason, and what was given is worth nothing.
    void sum(const Collective& collective, std::size_t member, const std::vector<at::Tensor>& values);
    void track(const Collective& collective, std::size_t member, const DeviceMark& end); // for the watchdog
    // Waits for what was issued everywhere.
    Expected<void> finish();

private:
    struct Clique {
        std::vector<int> ranks; // the first is NCCL's rank 0
        std::unique_ptr<NcclLink> link;
        [[nodiscard]] NcclCommunicator& of(Rank rank) const;
    };
    void connect(Clique& clique, const Way& way, const NcclId& id);
    void sumOfNothing(const Clique& clique, const Seat& seat);
    [[nodiscard]] const Clique& of(const Collective& collective, std::size_t member);

    const Execution& run_;
    std::map<Rank, Seat> seats_;
    std::vector<Clique> cliques_; // with some rank of this process, in the order of all
};

} // namespace stagecraft::runtime
