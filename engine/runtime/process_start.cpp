// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/process_start.h"

#include "engine/runtime/nccl_choice.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
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
    return run.device == DeviceKind::Cuda && run.transport != Transport::Host && runnable.plan.pipeline.ranks > 1;
}

RankOffer offerOf(RunnablePlan& runnable, int rank, const LocalSessionOptions& options)
{
    RankOffer offer{.place = runnable.places[static_cast<std::size_t>(rank)]};
    if (!mayTakeNccl(runnable)) return offer;
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
        if (each.nccl.empty()) return fmt::format("rank {} has no NCCL: {}", r, each.whyNot);
        if (each.nccl != ranks.front().nccl) return fmt::format("rank 0 has NCCL {}, and rank {} {}", ranks.front().nccl, r, each.nccl);
        if (each.order != ranks.front().order) return fmt::format("ranks 0 and {} have made different orders of the exchanges: are they of one build?", r);
    }
    return {};
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
        const auto newId = [&]() -> Expected<std::string> {
            const Expected<NcclId> id = group.rank() == 0 ? newNcclId(plan.nccl->source->api) : NcclId{};
            if (!id.ok()) return id.error();
            return std::string(id.value().bytes.begin(), id.value().bytes.end());
        };
        const Expected<std::string> id = group.fromFirst("the id of NCCL's clique", newId());
        if (!id.ok() && plan.plan.run.transport == Transport::Nccl) return id.error().in("run.transport");
        if (id.ok()) std::copy(id.value().begin(), id.value().end(), plan.nccl->id.bytes.begin());
        else choice = TransportChoice{.nccl = false, .note = fmt::format("{}: {}", kByHost, id.error().message)};
    }
    if (!choice.value().nccl) plan.nccl.reset();
    if (!choice.value().note.empty()) plan.notes.push_back(choice.value().note);
    return {};
}

} // namespace stagecraft::runtime
