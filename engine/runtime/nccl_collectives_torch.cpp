// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/nccl_collectives_torch.h"

#include "engine/runtime/nccl_cliques_torch.h"

#include <stdexcept>

namespace stagecraft::runtime {

namespace {

class NcclCollectives final : public DeviceCollectives {
public:
    NcclCollectives(const std::vector<Execution>& replicas, const NcclSource& source)
        : DeviceCollectives(replicas), cliques_(replicas.front(), {.source = source, .ids = newIds(replicas.front(), source), .without = "--transport auto"}, seatsOf(replicas))
    {
    }

    [[nodiscard]] int rounds() const override { return 1; }
    void prepare(Rank rank) override { cliques_.meet(rank); }
    Expected<void> finish() override { return cliques_.finish(); }

private:
    static std::vector<NcclId> newIds(const Execution& run, const NcclSource& source)
    {
        std::vector<NcclId> ids(sumCliques(run.schedule, run.plan.machine.replicas).size());
        for (NcclId& each : ids) {
            const Expected<NcclId> id = newNcclId(source.api);
            if (!id.ok()) throw std::runtime_error(id.error().message);
            each = id.value();
        }
        return ids;
    }

    static std::vector<NcclCliques::Seat> seatsOf(const std::vector<Execution>& replicas)
    {
        std::vector<NcclCliques::Seat> seats;
        for (const Execution& replica : replicas)
            for (int r = 0; r < replica.schedule.ranks; ++r) seats.push_back({replica.among(Rank{r}), &replica.pipeline.sumDevice(Rank{r})});
        return seats;
    }

    // NCCL's kernel would wait on the GPU for who has not given: it begins when all have.
    void make(const Collective& collective, std::size_t member, int, Cycle& cycle) override
    {
        Member& own = cycle.members[member];
        RankDevice& device = deviceOf(collective, member);
        for (const Member& each : cycle.members) device.await(each.ready);
        own.begin = device.mark();
        cliques_.sum(collective, member, own.given);
        own.given.clear();
        own.end = device.mark();
        cliques_.track(collective, member, own.end);
    }

    NcclCliques cliques_;
};

} // namespace

std::unique_ptr<DeviceCollectives> ncclCollectives(const std::vector<Execution>& replicas, const NcclSource& source)
{
    return std::make_unique<NcclCollectives>(replicas, source);
}

} // namespace stagecraft::runtime
