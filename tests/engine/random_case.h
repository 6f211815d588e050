// SPDX-License-Identifier: Apache-2.0
//
// A schedule of some family with random shape and costs: the same for the same seed, and every family among as many seeds as there
// are families.
#pragma once

#include "unit_costs.h"

#include <algorithm>
#include <random>

namespace stagecraft::test {

struct RandomCase {
    engine::Schedule schedule;
    engine::CostTable costs;
};

// Of the family whose turn it is, with whatever shape it takes.
inline engine::Schedule drawSchedule(std::mt19937& random, std::size_t turn, int mostRanks, int mostMicrobatches)
{
    const auto among = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    const auto& families = engine::scheduleFamilies();
    const engine::ScheduleFamily& family = families[turn % families.size()]; // none is left out
    engine::ScheduleRequest request{.name = family.name};
    do {
        request.ranks = among(1, mostRanks);
        request.chunks = among(family.minChunks, std::max(family.minChunks, std::min(family.maxChunks, 4)));
        request.microbatches = among(1, mostMicrobatches);
        request.slices = family.cutsSequences ? among(1, 4) : 1;
        if (family.concatenates) request.concatenation = static_cast<engine::Concatenation>(among(0, 2));
        request.offload = family.takesOffload && among(0, 3) == 0 ? among(0, 10) / 10.0 : 0;
        request.verticalSync = family.stashesVersions && among(0, 1) == 0;
        request.group = family.goesInGroups ? among(0, 9) : 0;
    } while (!engine::checkRequest(request).ok());
    return engine::generate(request).value();
}

inline RandomCase draw(unsigned seed)
{
    std::mt19937 random(seed);
    const auto among = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    RandomCase drawn{drawSchedule(random, seed, 8, 16), {}};
    drawn.costs = slotCosts(drawn.schedule.stages(), 0, 0, among(0, 1) == 0 ? 0 : among(1, 900));
    for (engine::StageCosts& stage : drawn.costs.stages) {
        stage.forward = among(1, 1000);
        stage.backward = among(1, 2000);
        stage.inputGrad = among(0, static_cast<int>(stage.backward));
        stage.weightGrad = stage.backward - stage.inputGrad;
        stage.overlap = stage.forward + stage.backward;
        stage.activationBytes = among(1, 500);
        stage.wgradBytes = among(0, 600); // may be more than was kept: gradients of outputs come with the input gradient
        if (drawn.schedule.asynchronous()) stage.optimizer = among(0, 300); // an action of the schedule, not one that is added
    }
    return drawn;
}

} // namespace stagecraft::test
