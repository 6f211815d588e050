// SPDX-License-Identifier: Apache-2.0
//
// lowering_bench FOLDER: for each line "family p v m" of its input writes FOLDER/k.csv, the schedule without transfers, and prints
// "ACTIONS LOWER DRY_RUN SIMULATE": actions with transfers, and seconds to add the transfers, to execute the result without time, and to
// simulate it with times, memory and trace. lowering_against_torch.py sets PyTorch beside it.
#include "app/keep_freed_memory.h"
#include "engine/schedule/dry_run.h"
#include "engine/schedule/lower.h"
#include "engine/simulate/simulate.h"
#include "traces/format/output_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <limits>

using namespace stagecraft;

namespace {

// The shortest of several runs: whatever else the machine does only adds.
template <class Work>
double secondsOf(Work&& work)
{
    double best = std::numeric_limits<double>::infinity();
    for (int run = 0; run < 5; ++run) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return best;
}

} // namespace

int main(int count, char** arguments)
{
    if (count != 2) return 2;
    keepFreedMemory(); // as the programs do
    engine::ScheduleRequest request;
    for (int k = 0; std::cin >> request.name >> request.ranks >> request.chunks >> request.microbatches; ++k) {
        const engine::Schedule plain = engine::generate(request).value();
        if (!traces::writeWholeFile(fmt::format("{}/{}.csv", arguments[1], k), engine::toText(plain)).ok()) return 1;
        engine::CostTable costs;
        costs.stages.assign(static_cast<std::size_t>(plain.stages()),
                            {.forward = 1000, .backward = 2000, .inputGrad = 1000, .weightGrad = 1000, .overlap = 3000});
        costs.transfer = 500;
        engine::Schedule lowered;
        const double lower = secondsOf([&] { lowered = engine::lowerCommunication(plain).value(); });
        const double dryRun = secondsOf([&] { engine::DryRun(lowered, engine::SendMode::Buffered).execute(); });
        const double simulate = secondsOf([&] {
            if (!engine::simulate(lowered, costs).ok()) std::abort();
        });
        fmt::print("{} {:.9f} {:.9f} {:.9f}\n", lowered.actionCount(), lower, dryRun, simulate);
    }
    return std::cin.eof() ? 0 : 1;
}
