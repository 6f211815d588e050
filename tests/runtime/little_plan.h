// SPDX-License-Identifier: Apache-2.0
//
// A pipeline that is small enough for every schedule, with all kinds of layers of a GPT, and a case of it for each family.
//
//   Plan plan = littleTransformer("zb-h1", 2, 1, RunMode::Threads);
//   const FamilyCase each = familyCase(family, 5, RunMode::Emulated); // with the numbers that the family takes
#pragma once

#include "engine/plan/plan.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::runtime {

// 4 micro-batches of two sequences, three steps, each of them checked.
inline engine::Plan littleTransformer(const std::string& schedule, int ranks, int chunks, engine::RunMode mode)
{
    engine::Plan plan;
    plan.name = "little";
    plan.model.layers = {engine::Embedding{50, 16, 32}, engine::TransformerBlock{32, 2, 64}, engine::TransformerBlock{32, 2, 64}, engine::Head{32, 50}};
    plan.model.loss = engine::Loss::CrossEntropy;
    plan.model.microbatchRows = 2;
    plan.pipeline = {.schedule = schedule, .ranks = ranks, .chunks = chunks, .microbatches = 4, .customSchedule = {}};
    plan.costs.source = engine::CostSource::Model;
    plan.run.mode = mode;
    plan.run.steps = 3;
    plan.run.check = engine::CheckMode::All;
    return plan;
}

// Replicas that divide so much.
inline engine::Plan divided(engine::Plan plan, engine::Sharding sharding, int replicas = 2)
{
    plan.machine.replicas = replicas;
    plan.machine.bucketBytes = 16 << 10;
    plan.pipeline.sharding = sharding;
    return plan;
}

struct FamilyCase {
    std::string name;
    int ranks, chunks, microbatches;
    engine::RunMode mode;
    engine::Precision precision = engine::Precision::Fp32;
};

// On 2 ranks with so many micro-batches, in two directions on 4 with 8, or with the next larger number that the family takes.
inline FamilyCase familyCase(const engine::ScheduleFamily& family, int microbatches, engine::RunMode mode)
{
    const bool two = family.name == "dualpipe" || family.name == "chimera";
    FamilyCase each{family.name, two ? 4 : 2, family.minChunks, two ? 8 : microbatches, mode};
    while (!engine::checkRequest({.name = each.name, .ranks = each.ranks, .chunks = each.chunks, .microbatches = each.microbatches}).ok())
        ++each.microbatches;
    return each;
}

inline engine::Plan planOf(const FamilyCase& each)
{
    engine::Plan plan = littleTransformer(each.name, each.ranks, each.chunks, each.mode);
    plan.pipeline.microbatches = each.microbatches;
    plan.run.precision = each.precision;
    return plan;
}

// "zb_h1_threads", as Google Test wants the names of cases; "zb_h1_threads_bf16"
inline std::string caseName(std::string name, engine::RunMode mode, engine::Precision precision = engine::Precision::Fp32)
{
    std::replace(name.begin(), name.end(), '-', '_');
    return name + "_" + std::string(engine::runModeText(mode)) + (precision == engine::Precision::Bf16 ? "_bf16" : "");
}

// Every family, in both modes and precisions.
inline std::vector<FamilyCase> everyFamilyCase(int microbatches)
{
    std::vector<FamilyCase> cases;
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies())
        for (const engine::RunMode mode : {engine::RunMode::Threads, engine::RunMode::Emulated})
            for (const engine::Precision precision : {engine::Precision::Fp32, engine::Precision::Bf16}) {
                cases.push_back(familyCase(family, microbatches, mode));
                cases.back().precision = precision;
            }
    return cases;
}

// Every family but BPipe, which with more ranks moves activations to another process.
inline std::vector<FamilyCase> everyFamilyInProcesses(int microbatches)
{
    std::vector<FamilyCase> cases;
    for (const engine::ScheduleFamily& family : engine::scheduleFamilies())
        if (family.name != "bpipe") cases.push_back(familyCase(family, microbatches, engine::RunMode::Processes));
    return cases;
}

inline std::vector<FamilyCase> synchronousOf(std::vector<FamilyCase> cases)
{
    std::erase_if(cases, [](const FamilyCase& each) { return engine::findFamily(each.name)->asynchronous; });
    return cases;
}

// And some of them in bf16: one of each way through the stages.
inline std::vector<FamilyCase> someInBf16(std::vector<FamilyCase> cases)
{
    const std::vector<FamilyCase> all = cases;
    for (const FamilyCase& each : all) {
        if (each.name != "1f1b" && each.name != "zb-v" && each.name != "dualpipe") continue;
        cases.push_back(each);
        cases.back().precision = engine::Precision::Bf16;
    }
    return cases;
}

} // namespace stagecraft::runtime
