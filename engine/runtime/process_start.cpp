// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/process_start.h"

#include "engine/runtime/nccl_choice.h"
#include "engine/runtime/replica_sums.h"
#include "traces/analysis/merge_ranks.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <utility>

namespace stagecraft::runtime {

using namespace engine;
using Json = nlohmann::json;

namespace {

constexpr std::string_view kByHost = "tensors go from GPU to GPU by way of the host";

// FNV-1a, of all that two ranks must have alike.
std::string digestOf(const TransferOrder& order)
{
    std::uint64_t hash = 0xcbf29ce484222325U;
    const auto add = [&hash](auto number) {
        hash ^= static_cast<std::uint64_t>(number);
        hash *= 0x100000001b3U;
    };
    for (const Transfer& each : order.transfers)
        for (const std::int64_t number : std::initializer_list<std::int64_t>{static_cast<int>(each.work.kind), each.work.stage.value, each.work.microbatch.value,
                                                                             static_cast<int>(each.work.flow), each.from.value, each.to.value})
            add(number);
    for (const auto& rank : order.groups)
        for (const TransferGroup& group : rank) {
            add(group.behind);
            for (const TransferPart& part : group.parts()) add(part.transfer * 2 + (part.sends ? 1 : 0));
        }
    return fmt::format("{:016x}", hash);
}

bool mayTakeNccl(const RunnablePlan& runnable)
{
    const RunSpec& run = runnable.plan.run;
    return run.device == DeviceKind::Cuda && run.transport != Transport::Host && runnable.places.size() > 1;
}

bool updatesWithin(const Schedule& schedule)
{
    return std::ranges::any_of(schedule.order, [](const std::vector<Action>& list) {
        return std::ranges::any_of(list, [](const Action& action) { return action.kind() == traces::ActionKind::Optimizer; });
    });
}

RankOffer offerOf(RunnablePlan& runnable, int rank, const LocalSessionOptions& options)
{
    RankOffer offer{.place = runnable.places[static_cast<std::size_t>(rank)]};
    if (!mayTakeNccl(runnable)) return offer;
    if (runnable.hasCollectives() && updatesWithin(runnable.schedule)) {
        offer.whyNot = fmt::format("schedule {} updates weights within the step, and there sums come behind all that is handed over", runnable.schedule.name);
        return offer;
    }
    const Expected<const NcclSource*> source = ncclOf(options);
    Expected<TransferOrder> order = transferOrder(runnable.schedule, &runnable.costs);
    if (!source.ok() || !order.ok()) {
        offer.whyNot = source.ok() ? order.error().message : source.error().message;
        return offer;
    }
    offer.nccl = source.value()->version;
    offer.order = digestOf(order.value());
    runnable.nccl = std::make_shared<NcclWish>(NcclWish{.source = source.value(), .order = std::move(order).value(), .id = {}});
    return offer;
}

// Why the ranks cannot hand over by NCCL; empty: they can.
std::string whyNotNccl(std::span<const RankOffer> ranks)
{
    std::vector<RankPlace> places;
    for (const RankOffer& each : ranks) places.push_back(each.place);
    if (const auto apart = checkOneRankPerGpu(places); !apart.ok()) return apart.error().message;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const RankOffer& each = ranks[r];
        if (each.nccl.empty()) return fmt::format("rank {} cannot take NCCL: {}", r, each.whyNot);
        if (each.nccl != ranks.front().nccl) return fmt::format("rank 0 has NCCL {}, and rank {} {}", ranks.front().nccl, r, each.nccl);
        if (each.order != ranks.front().order) return fmt::format("ranks 0 and {} have made different orders of the exchanges: are they of one build?", r);
    }
    return {};
}

// Of 128 bits, so that no two runs ever have the same.
std::string newIdentity()
{
    std::random_device random;
    return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

// Those by which the ranks of each replica meet, then those of the cliques that sum; rank 0 makes them for all.
Expected<std::string> newIds(const RunnablePlan& plan, const ProcessGroup& group, std::size_t count)
{
    std::string ids;
    for (std::size_t i = 0; i < count && group.rank() == 0; ++i) {
        const Expected<NcclId> id = newNcclId(plan.nccl->source->api);
        if (!id.ok()) return id.error();
        ids.append(id.value().bytes.begin(), id.value().bytes.end());
    }
    return ids;
}

void takeIds(NcclWish& wish, std::string_view ids, int replica, int replicas)
{
    const auto at = [&](std::size_t number) {
        NcclId id;
        std::ranges::copy(ids.substr(number * id.bytes.size(), id.bytes.size()), id.bytes.begin());
        return id;
    };
    wish.id = at(static_cast<std::size_t>(replica));
    for (std::size_t i = static_cast<std::size_t>(replicas); i < ids.size() / wish.id.bytes.size(); ++i) wish.sumIds.push_back(at(i));
}

} // namespace

std::string written(const RankOffer& offer)
{
    return Json{{"host", offer.place.host}, {"gpu", offer.place.gpu}, {"nccl", offer.nccl}, {"why", offer.whyNot}, {"order", offer.order}}.dump(
        -1, ' ', false, Json::error_handler_t::replace);
}

RankOffer readOffer(std::string_view text)
{
    const Json json = Json::parse(text);
    const auto word = [&json](const char* key) { return json.at(key).get<std::string>(); };
    return {.place = {.host = word("host"), .gpu = word("gpu")}, .nccl = word("nccl"), .whyNot = word("why"), .order = word("order")};
}

Expected<TransportChoice> chooseTransport(const RunSpec& run, std::span<const RankOffer> ranks)
{
    if (run.device != DeviceKind::Cuda || run.transport == Transport::Host || ranks.size() < 2) return TransportChoice{};
    const std::string why = whyNotNccl(ranks);
    if (why.empty()) return TransportChoice{.nccl = true, .note = fmt::format("tensors go from GPU to GPU by NCCL {}", ranks.front().nccl)};
    if (run.transport == Transport::Nccl)
        return Error{fmt::format("run.transport: NCCL cannot hand over: {}. Take transport host, or give each rank a GPU of its own where there is NCCL", why)};
    return TransportChoice{.nccl = false, .note = fmt::format("{}: {}", kByHost, why)};
}

Expected<void> settleTogether(ProcessGroup& group, Expected<RunnablePlan>& runnable, const LocalSessionOptions& options)
{
    const auto own = [&]() -> Expected<std::string> {
        if (!runnable.ok()) return runnable.error();
        return written(offerOf(runnable.value(), group.rank(), options));
    };
    const Expected<std::vector<std::string>> all = group.exchange("the check of the plan", own());
    if (!all.ok()) return all.error();
    RunnablePlan& plan = runnable.value();
    std::vector<RankOffer> offers;
    for (const std::string& each : all.value()) offers.push_back(readOffer(each));
    for (std::size_t r = 0; r < offers.size(); ++r) plan.places[r] = offers[r].place;
    Expected<TransportChoice> choice = chooseTransport(plan.plan.run, offers);
    if (!choice.ok()) return choice.error();
    if (choice.value().nccl) {
        const int replicas = plan.plan.machine.replicas;
        const std::size_t cliques = plan.hasCollectives() ? sumCliques(plan.schedule, replicas).size() : 0;
        const Expected<std::string> id = group.fromFirst("the ids of NCCL's cliques", newIds(plan, group, static_cast<std::size_t>(replicas) + cliques));
        if (!id.ok() && plan.plan.run.transport == Transport::Nccl) return id.error().in("run.transport");
        if (id.ok()) takeIds(*plan.nccl, id.value(), group.rank() / plan.plan.pipeline.ranks, replicas);
        else choice = TransportChoice{.nccl = false, .note = fmt::format("{}: {}", kByHost, id.error().message)};
    }
    if (!choice.value().nccl) plan.nccl.reset();
    if (!choice.value().note.empty()) plan.information.push_back(choice.value().note);
    if (group.size() == 1) return {}; // what it writes is the whole
    const Expected<std::string> identity = group.fromFirst("the run's identity", group.rank() == 0 ? newIdentity() : std::string());
    if (!identity.ok()) return identity.error();
    plan.information.push_back(traces::partOfRun(identity.value()));
    return {};
}

} // namespace stagecraft::runtime
