// SPDX-License-Identifier: Apache-2.0
//
// Step time of the live engine for one preset in mode threads, as one JSON line: the run's result, and how long after its
// end an event could be taken. bench/live_against_peer.py puts it beside the peer.
//
//   live_step gpt-small 12                            preset, steps
//   live_step gpt-small 12 interleaved-zb 8 2         with another schedule, micro-batches, chunks (partition by FLOPs)
//   live_step gpt-small 12 --unrecorded               events are thrown away where they arise: its step beside the other is what recording
//                                                     costs
#include "engine/plan/plan_json.h"
#include "engine/probe/clock.h"
#include "engine/runtime/local_session.h"
#include "engine/session/session_message.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

using namespace stagecraft;

namespace {

struct Watched {
    std::vector<traces::TimeNs> delays; // from a slice's end until it was taken
    std::vector<traces::TimeNs> steps;  // their lengths
    std::string result;
    std::string failure;
};

Watched watch(engine::Session& session)
{
    Watched watched;
    for (bool over = false; !over;) {
        over = engine::finished(session.state());
        session.waitForRecords(std::chrono::milliseconds(50));
        const std::vector<traces::Record> records = session.takeRecords();
        const traces::TimeNs now = runtime::monotonicClock().now();
        for (const traces::Record& record : records) {
            if (const auto* slice = std::get_if<traces::SliceRecord>(&record))
                watched.delays.push_back(now - slice->slice.end);
            if (const auto* step = std::get_if<traces::StepRecord>(&record)) watched.steps.push_back(step->step.span.length());
            const auto* said = std::get_if<traces::SessionRecord>(&record);
            if (said == nullptr) continue;
            const auto message = engine::readMessage(said->json);
            if (!message.ok()) continue;
            if (std::holds_alternative<engine::ResultMessage>(message.value())) watched.result = said->json;
            if (const auto* failure = std::get_if<engine::FailureMessage>(&message.value()))
                watched.failure = failure->text;
        }
    }
    std::sort(watched.delays.begin(), watched.delays.end());
    std::sort(watched.steps.begin(), watched.steps.end());
    return watched;
}

int complain(const std::string& text)
{
    std::fprintf(stderr, "live_step: %s\n", text.c_str());
    return 1;
}

} // namespace

int main(int argc, char** argv)
{
    const bool unrecorded = argc > 3 && std::string_view(argv[argc - 1]) == "--unrecorded";
    if (unrecorded) --argc;
    if (argc != 3 && argc != 6) {
        complain("usage: live_step PRESET STEPS [SCHEDULE MICROBATCHES CHUNKS] [--unrecorded]");
        return 2;
    }
    auto plan = engine::presetPlan(argv[1]);
    if (!plan.ok()) return complain(plan.error().message);
    plan.value().run.mode = engine::RunMode::Threads;
    plan.value().run.steps = std::atoi(argv[2]);
    if (argc == 6) {
        const int chunks = std::atoi(argv[5]);
        if (chunks != plan.value().pipeline.chunks) plan = engine::withShape(plan.value(), plan.value().pipeline.ranks, chunks);
        plan.value().pipeline.schedule = argv[3];
        plan.value().pipeline.microbatches = std::atoi(argv[4]);
    }

    const auto session = runtime::makeLocalSession(unrecorded ? runtime::LocalSessionOptions{.ringCapacity = 1} : runtime::LocalSessionOptions{});
    if (const auto started = session->start(plan.value()); !started.ok()) return complain(started.error().message);
    const Watched watched = watch(*session);
    if (!watched.failure.empty()) return complain(watched.failure);
    if (watched.steps.empty()) return complain("no step came to its end");
    const auto middle = static_cast<long long>(watched.steps[watched.steps.size() / 2]);
    if (unrecorded) {
        std::printf("{\"step_ns\":%lld}\n", middle);
        return 0;
    }
    if (watched.delays.empty()) return complain("nothing was recorded");
    std::printf("{\"run\":%s,\"delay_median_ns\":%lld,\"delay_max_ns\":%lld}\n", watched.result.c_str(),
                static_cast<long long>(watched.delays[watched.delays.size() / 2]),
                static_cast<long long>(watched.delays.back()));
    return 0;
}
