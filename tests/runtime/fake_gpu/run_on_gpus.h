// SPDX-License-Identifier: Apache-2.0
//
// Runs a plan to its end on GPUs that are not there.
//
//   const Outcome outcome = runOn({.count = 2}, plan);
//   EXPECT_THAT(test::FakeGpus::get().races(), IsEmpty());
#pragma once

#include "tests/runtime/fake_gpu/fake_gpu.h"
#include "tests/runtime/little_plan.h"
#include "tests/runtime/run_plan.h"

#include <ostream>
#include <string>
#include <utility>

namespace stagecraft::runtime {

inline Outcome runOn(const test::FakeGpus::Setup& gpus, engine::Plan plan, LocalSessionOptions options = {})
{
    test::FakeGpus::get().reset(gpus);
    plan.run.device = engine::DeviceKind::Cuda;
    options.devices = &test::FakeGpus::get().source();
    return runPlan(plan, options);
}

struct CaseOnGpus {
    FamilyCase family;
    int gpus = 1;
};

inline std::string nameOf(const CaseOnGpus& each)
{
    return caseName(each.family.name, each.family.mode, each.family.precision) + "_" + std::to_string(each.gpus);
}

inline void PrintTo(const CaseOnGpus& each, std::ostream* out) { *out << nameOf(each); }

} // namespace stagecraft::runtime
