// SPDX-License-Identifier: Apache-2.0
//
// Runs a plan in a session to its end and gathers what came out of it.
#pragma once

#include "engine/plan/plan_json.h"
#include "engine/runtime/local_session.h"
#include "engine/session/session_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::runtime {

struct Outcome {
    traces::Trace trace;
    std::vector<traces::Record> records;
    std::vector<engine::SessionState> states;
    std::vector<engine::ProgressMessage> progress;
    std::optional<engine::FailureMessage> failure;
    std::optional<engine::RunResult> result;
    engine::SessionState last = engine::SessionState::Idle;
};

inline void gather(Outcome& outcome, std::vector<traces::Record> records)
{
    for (traces::Record& record : records) {
        if (std::holds_alternative<traces::InfoRecord>(record)) outcome.trace = {}; // a new run
        const auto applied = traces::apply(outcome.trace, record);
        EXPECT_TRUE(applied.ok()) << applied.error().message;
        if (const auto* said = std::get_if<traces::SessionRecord>(&record)) {
            const auto message = engine::readMessage(said->json);
            EXPECT_TRUE(message.ok()) << said->json;
            if (!message.ok()) continue;
            if (const auto* state = std::get_if<engine::StateMessage>(&message.value())) outcome.states.push_back(state->state);
            if (const auto* progress = std::get_if<engine::ProgressMessage>(&message.value()))
                outcome.progress.push_back(*progress);
            if (const auto* failure = std::get_if<engine::FailureMessage>(&message.value())) outcome.failure = *failure;
            if (const auto* result = std::get_if<engine::ResultMessage>(&message.value())) outcome.result = result->result;
        }
        outcome.records.push_back(std::move(record));
    }
}

// Takes records until `done` says so or the run is over.
template <class Done>
void follow(engine::Session& session, Outcome& outcome, Done&& done)
{
    while (!done()) {
        const bool over = engine::finished(session.state());
        session.waitForRecords(std::chrono::milliseconds(20));
        gather(outcome, session.takeRecords());
        if (over) break;
    }
    outcome.last = session.state();
}

inline void followToEnd(engine::Session& session, Outcome& outcome)
{
    follow(session, outcome, [] { return false; });
}

inline Outcome runPlan(const engine::Plan& plan, const LocalSessionOptions& options = {})
{
    Outcome outcome;
    const std::unique_ptr<engine::Session> session = makeLocalSession(options);
    const auto started = session->start(plan);
    EXPECT_TRUE(started.ok()) << started.error().message;
    if (started.ok()) followToEnd(*session, outcome);
    return outcome;
}

inline std::string saidBy(const Outcome& outcome) { return outcome.failure ? outcome.failure->text : ""; }

inline traces::Bytes most(const traces::Trace& trace, traces::Rank rank, traces::MemoryClass memory)
{
    const traces::MemorySeries* series = trace.memorySeries(rank, memory);
    return series == nullptr ? 0 : *std::max_element(series->value.begin(), series->value.end());
}

inline engine::Plan preset(std::string_view name)
{
    auto plan = engine::presetPlan(name);
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    return plan.ok() ? plan.value() : engine::Plan{};
}

} // namespace stagecraft::runtime
