// SPDX-License-Identifier: Apache-2.0
//
// Step time of the live engine for one preset, as one JSON line: what bench/live_against_peer.py puts beside the peer.
//
//   live_step gpt-small 12          preset, steps
#include "engine/plan/plan_json.h"
#include "engine/runtime/local_session.h"
#include "engine/session/session_message.h"

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace stagecraft;

int main(int argc, char** argv)
{
    if (argc != 3) {
        std::fprintf(stderr, "usage: live_step PRESET STEPS\n");
        return 2;
    }
    auto plan = engine::presetPlan(argv[1]);
    if (!plan.ok()) {
        std::fprintf(stderr, "%s\n", plan.error().message.c_str());
        return 2;
    }
    plan.value().run.mode = engine::RunMode::Threads;
    plan.value().run.steps = std::atoi(argv[2]);
    const auto session = runtime::makeLocalSession();
    if (const auto started = session->start(plan.value()); !started.ok()) {
        std::fprintf(stderr, "%s\n", started.error().message.c_str());
        return 1;
    }
    for (bool over = false; !over;) {
        over = engine::finished(session->state());
        session->waitForRecords(std::chrono::milliseconds(50));
        for (const traces::Record& record : session->takeRecords()) {
            const auto* said = std::get_if<traces::SessionRecord>(&record);
            if (said == nullptr) continue;
            const auto message = engine::readMessage(said->json);
            if (!message.ok()) continue;
            if (std::holds_alternative<engine::ResultMessage>(message.value())) std::puts(said->json.c_str());
            if (const auto* failure = std::get_if<engine::FailureMessage>(&message.value())) {
                std::fprintf(stderr, "%s\n", failure->text.c_str());
                return 1;
            }
        }
    }
    return 0;
}
