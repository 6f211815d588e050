// SPDX-License-Identifier: Apache-2.0
#include "app/cli/figures_json.h"
#include "app/cli/verbs.h"
#include "engine/simulate/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

namespace stagecraft::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRanks = 64;
constexpr int kMicrobatches = 1024;
constexpr int kRuns = 15;

struct Options {
    std::string name;
    bool json = false;
};

// From nothing to the trace: generation, simulation, bytes held over time, every slice and edge written. The trace of the
// run before is given back outside of the measured time.
Expected<double> secondsOfOneRun(traces::TimeNs transfer, std::size_t& actions)
{
    const Clock::time_point begin = Clock::now();
    const Expected<engine::Schedule> schedule =
        engine::generate({.name = "1f1b", .ranks = kRanks, .microbatches = kMicrobatches});
    if (!schedule.ok()) return schedule.error();
    const engine::StageCosts stage{.forward = 1'000'000,
                                   .backward = 2'000'000,
                                   .inputGrad = 1'000'000,
                                   .weightGrad = 1'000'000,
                                   .overlap = 3'000'000,
                                   .activationBytes = 1 << 20};
    const engine::CostTable costs{.stages = std::vector(kRanks, stage), .transfer = transfer, .origin = "assumed"};
    const Expected<traces::Trace> trace = engine::simulate(schedule.value(), costs);
    if (!trace.ok()) return trace.error();
    const std::chrono::duration<double> took = Clock::now() - begin;
    actions = schedule.value().actionCount();
    return took.count();
}

struct Rate {
    double median = 0; // actions per second
    double best = 0;
    std::size_t actions = 0; // of a run; sends are not counted
};

Expected<Rate> measure(traces::TimeNs transfer)
{
    Rate rate;
    std::vector<double> seconds;
    for (int run = 0; run < kRuns; ++run) {
        const Expected<double> took = secondsOfOneRun(transfer, rate.actions);
        if (!took.ok()) return took.error();
        seconds.push_back(took.value());
    }
    std::sort(seconds.begin(), seconds.end());
    rate.median = static_cast<double>(rate.actions) / seconds[seconds.size() / 2];
    rate.best = static_cast<double>(rate.actions) / seconds.front();
    return rate;
}

int benchSimulate(bool asJson)
{
    const Expected<Rate> plain = measure(0);
    if (!plain.ok()) return failed(plain.error());
    // each hand-off is then a slice of its own, on a lane of its own
    const Expected<Rate> drawn = measure(10'000);
    if (!drawn.ok()) return failed(drawn.error());
    const Rate& rate = plain.value();
    if (asJson) {
        return print(jsonText({{"bench", "simulate"},
                               {"actions_per_s", rate.median},
                               {"best_actions_per_s", rate.best},
                               {"with_transfers_actions_per_s", drawn.value().median},
                               {"actions", rate.actions},
                               {"runs", kRuns}}));
    }
    return print(fmt::format("simulate: 1F1B, {} ranks, {} micro-batches, {} actions, {} runs\n"
                             "  median {:.1f} M actions/s, best {:.1f} M actions/s (schedule, memory and trace included)\n"
                             "  with transfers that take time: median {:.1f} M actions/s\n",
                             kRanks, kMicrobatches, rate.actions, kRuns, rate.median / 1e6, rate.best / 1e6,
                             drawn.value().median / 1e6));
}

int bench(const Options& options)
{
    if (options.name == "simulate") return benchSimulate(options.json);
    return wrongUse(Error{fmt::format("bench {}: not known; there is: simulate", options.name)});
}

} // namespace

void addBench(CLI::App& program, Work& work)
{
    CLI::App& verb =
        addVerb(program, "bench", "Measure the program itself on this machine", "stagecraft-cli bench simulate --json");
    const auto options = std::make_shared<Options>();
    verb.add_option("NAME", options->name, "simulate: actions simulated per second")->required();
    addJsonFlag(verb, options->json);
    verb.callback([options, &work] { work = [options] { return bench(*options); }; });
}

} // namespace stagecraft::cli
