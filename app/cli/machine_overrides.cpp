// SPDX-License-Identifier: Apache-2.0
#include "app/cli/machine_overrides.h"

#include "engine/plan/plan_words.h"
#include "traces/base/parse_list.h"

#include <fmt/format.h>

#include <charconv>
#include <span>

namespace stagecraft::cli {

namespace {

using engine::MachineModel;
using traces::TimeNs;

template <class Enum, std::size_t N>
auto word(const std::array<engine::Word<Enum>, N>& words)
{
    return [&words](std::string_view text) -> Expected<Enum> {
        std::string known;
        for (const auto& [name, value] : words) {
            if (name == text) return value;
            known += (known.empty() ? "" : ", ") + std::string(name);
        }
        return Error{fmt::format("'{}' is not known; one of {}", text, known)};
    };
}

Expected<void> takeWhole(std::string_view option, const Overrides::Text& text, int& target, int least, int most)
{
    if (!text) return {};
    const Expected<long long> value = parseWhole(option, *text, least, most); // names the option itself
    if (!value.ok()) return value.error();
    target = static_cast<int>(value.value());
    return {};
}

} // namespace

Expected<std::vector<double>> parseFactors(std::string_view text, std::string_view each, FactorRange range)
{
    return traces::parseList<double>(text, [each, range](std::string_view cell) -> Expected<double> {
        double factor = 0;
        const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), factor);
        const bool within = factor >= range.least && factor <= range.most; // which nan is not
        if (code != std::errc{} || end != cell.data() + cell.size() || !within)
            return Error{fmt::format("'{}' is no factor; give one number from {:g} to {:g} per {}, such as 1,1,1.5,1", cell, range.least, range.most, each)};
        return factor;
    });
}

void addMachineOverrides(CLI::App& verb, Overrides& given)
{
    const auto option = [&](const char* name, Overrides::Text& target, const char* type, const char* help) {
        verb.add_option_function<std::string>(
                name, [&target](const std::string& text) { target = text; }, help)
            ->type_name(type)
            ->group("The machine, for simulations");
    };
    const auto flag = [&](const char* name, bool& target, const char* help) {
        verb.add_flag(name, target, help)->disable_flag_override()->group("The machine, for simulations");
    };
    option("--send", given.send, "buffered|rendezvous|channel",
           "How sends behave: they never wait, wait for their receipt, or are one queue from rank to rank");
    option("--transfers", given.transfers, "free|copy-lane|ranks",
           "What a transfer occupies: nothing, its sender's one copy lane, or both ranks");
    flag("--shared-links", given.sharedLinks, "Transfers over one way go one after the other");
    option("--ranks-per-node", given.ranksPerNode, "N", "Ranks of one node; from node to node --node-latency and --node-bandwidth hold. 0: one node");
    option("--node-latency", given.nodeLatency, "T", "Of a transfer between two nodes");
    option("--node-bandwidth", given.nodeBandwidth, "B/s", "Of a transfer between two nodes");
    option("--rank-scale", given.rankScale, "x,x,...", "One factor on the times per rank: unequal devices, or a slow one");
    option("--late-start", given.lateStart, "T,T,...", "When each rank begins");
    option("--memory", given.memory, "X", "Of a rank; a simulation tells where it runs out, a live run fails there. 0: no limit");
    option("--host-latency", given.hostLatency, "T", "Of a copy to the host's memory and back (OFFLOAD, RELOAD)");
    option("--host-bandwidth", given.hostBandwidth, "B/s", "Of a copy to the host's memory and back");
    option("--replicas", given.replicas, "D", "Replicas of the pipeline on other data; their gradients are summed");
    option("--replica-latency", given.replicaLatency, "T", "Between the ranks that hold the same stage");
    option("--replica-bandwidth", given.replicaBandwidth, "B/s", "Between the ranks that hold the same stage");
    option("--bucket-bytes", given.bucketBytes, "X", "Gradients that are summed at a time, beside the backward");
    flag("--barrier", given.barrier, "No rank updates its weights before all have their gradients");
}

Expected<void> applyMachine(engine::Plan& plan, const Overrides& given)
{
    MachineModel& machine = plan.machine;
    const auto factors = [](std::string_view text) { return parseFactors(text, "rank", kScales); };
    const auto times = [](std::string_view text) { return traces::parseList<TimeNs>(text, &traces::parseDuration); };
    for (const auto& taken : {takeWhole("--ranks-per-node", given.ranksPerNode, machine.ranksPerNode, 0, engine::kMaxStages),
                              takeWhole("--replicas", given.replicas, machine.replicas, 1, 1 << 20),
                              take("--recompute", given.recompute, plan.pipeline.recompute, word(engine::kRecomputeWords)),
                              take("--send", given.send, machine.send, word(engine::kSendModeWords)),
                              take("--transfers", given.transfers, machine.transfers, word(engine::kTransferPlaceWords)),
                              take("--node-latency", given.nodeLatency, machine.between.latency, traces::parseDuration),
                              take("--node-bandwidth", given.nodeBandwidth, machine.between.bytesPerSecond, traces::parseBandwidth),
                              take("--rank-scale", given.rankScale, machine.rankScale, factors),
                              take("--late-start", given.lateStart, machine.lateStart, times),
                              take("--memory", given.memory, machine.memory, traces::parseSize),
                              take("--host-latency", given.hostLatency, machine.host.latency, traces::parseDuration),
                              take("--host-bandwidth", given.hostBandwidth, machine.host.bytesPerSecond, traces::parseBandwidth),
                              take("--replica-latency", given.replicaLatency, machine.replica.latency, traces::parseDuration),
                              take("--replica-bandwidth", given.replicaBandwidth, machine.replica.bytesPerSecond, traces::parseBandwidth),
                              take("--bucket-bytes", given.bucketBytes, machine.bucketBytes, traces::parseSize)}) {
        if (!taken.ok()) return taken;
    }
    machine.sharedLinks = machine.sharedLinks || given.sharedLinks;
    machine.barrier = machine.barrier || given.barrier;
    return {};
}

} // namespace stagecraft::cli
