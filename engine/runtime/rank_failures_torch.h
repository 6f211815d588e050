// SPDX-License-Identifier: Apache-2.0
//
// How what a rank's thread does fails the run: with the action, the step and the rank that it happened to. Private to the runtime.
//
//   RankFailures failures(control, rank, queue);
//   if (!failures.attempt(work, step, [&] { return execute(work); })) return false;   // the run has failed at the action
#pragma once

#include "engine/runtime/device_queue_torch.h"
#include "engine/runtime/pipeline_torch.h"
#include "engine/runtime/run_control.h"

#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace stagecraft::runtime {

inline constexpr const char* kWaitForSums = "waiting for the sum of the replicas' gradients";

class RankFailures {
public:
    RankFailures(RunControl& control, traces::Rank rank, const DeviceQueue& queue) : control_(control), rank_(rank), queue_(queue) {}

    // What the call says; false where it throws, and then the run has failed at the action.
    template <class Call>
    bool attempt(const traces::Work& work, traces::Step step, const Call& call) const
    {
        try {
            return call();
        } catch (...) {
            at(work, step, std::current_exception());
            return false;
        }
    }

    // The same beside the actions: failures of the device itself come where something waits for it.
    template <class Call>
    bool watched(traces::Step step, const char* doing, const Call& call) const
    {
        try {
            call();
            return true;
        } catch (...) {
            engine::FailureMessage failure = describeFailure(
                std::string(doing) + " of step " + std::to_string(step.value) + " on rank " + std::to_string(rank_.value), std::current_exception());
            failure.rank = rank_.value;
            control_.fail(std::move(failure));
            return false;
        }
    }

    // What a device fails with comes when somebody waits for it: it is that of the first action that is not known to be done, of `before`
    // where there is none, or else of `doing`.
    template <class Call>
    bool settled(const Call& call, const char* doing, traces::Step step, const std::optional<traces::Work>& before = {}) const
    {
        try {
            call();
            return true;
        } catch (...) {
            const RunEvent* const oldest = queue_.oldest();
            if (oldest == nullptr && !before) return watched(step, doing, [] { throw; });
            at(oldest != nullptr ? oldest->work : *before, oldest != nullptr ? oldest->step : step, std::current_exception());
            return false;
        }
    }

    void at(const traces::Work& work, traces::Step step, const std::exception_ptr& error) const { control_.fail(describeFailure(work, step, rank_, error)); }

private:
    RunControl& control_;
    traces::Rank rank_; // of all
    const DeviceQueue& queue_;
};

} // namespace stagecraft::runtime
