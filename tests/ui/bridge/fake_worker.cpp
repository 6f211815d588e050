// SPDX-License-Identifier: GPL-3.0-or-later
//
// A worker for tests that speaks the protocol without an engine: it answers a start with the simulated trace, called
// measured, and does what the plan's name says:
//
//   (any)    all steps, a result, finished           fail     half of it, then a failure in stage 1
//   hold     half of it, then waits for commands     exit     half of it, then exits with status 3
//   deaf     like hold, but heeds nobody             garbage  something that is no journal
//   many     beside all that a burst of 60,000 memory points
//   flood    beside all that 50,000 lines on standard error, and one of a million characters
//   noted    beside all that two notes about the run, one of them twice
//   late     all of it, and before the answer to the next start a memory point that belongs to this run
//   spent    all of it, and exits with the status of a spent session when the next start comes, as one that is about to end does
#include "engine/plan/plan_json.h"
#include "engine/session/serve.h"
#include "engine/session/session_message.h"
#include "engine/simulate/simulate.h"
#include "traces/format/journal.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>
#include <unistd.h>

using namespace stagecraft;
using engine::SessionState;

namespace {

class Stream {
public:
    void state(SessionState state) { message(engine::StateMessage{state}); }
    void message(const engine::SessionMessage& message) { writer_.write(traces::SessionRecord{engine::writeMessage(message)}); }
    void records(const std::vector<traces::Record>& records) { writer_.write(records); }
    void garbage() { put("this is a login banner, not a journal\n"); }

private:
    static void put(std::string_view bytes)
    {
        std::fwrite(bytes.data(), 1, bytes.size(), stdout);
        std::fflush(stdout);
    }
    traces::JournalWriter writer_{&Stream::put};
};

// `steps` simulated steps one after another, as one measured trace.
traces::Trace measuredTrace(const engine::Plan& plan, const traces::Trace& simulated)
{
    traces::Trace trace;
    trace.info = simulated.info;
    trace.info.label = plan.run.mode == engine::RunMode::Emulated ? traces::TraceLabel::Emulated : traces::TraceLabel::Measured;
    trace.info.clock = traces::ClockKind::Monotonic;
    trace.info.planJson = engine::writePlan(plan);
    for (const traces::Lane& lane : simulated.lanes()) trace.addLane(lane.info());
    const traces::TimeNs length = simulated.extent().length() + 1000;
    for (int step = 0; step < plan.run.steps; ++step) {
        const traces::TimeNs shift = 1'000'000'000 + step * length;
        for (std::size_t lane = 0; lane < simulated.laneCount(); ++lane) {
            const traces::LaneId id{lane};
            for (std::size_t i = 0; i < simulated.lane(id).size(); ++i) {
                traces::Slice slice = simulated.lane(id).slice(i);
                slice.begin += shift;
                slice.end += shift;
                slice.step = traces::Step{step};
                trace.append(id, slice);
            }
        }
        trace.addMemory(traces::Rank{0}, traces::MemoryClass::Weights, shift, 4096);
        trace.addStep({traces::Step{step}, {shift, shift + length - 1000}, 1.0 / (step + 1)});
    }
    return trace;
}

engine::RunResult resultOf(const engine::Plan& plan, const traces::Trace& simulated)
{
    engine::RunResult result;
    result.mode = engine::runModeText(plan.run.mode);
    result.device = "cpu";
    result.steps = plan.run.steps;
    result.stepNs = simulated.extent().length();
    result.predictedStepNs = simulated.extent().length();
    result.idealStepNs = simulated.extent().length();
    result.efficiency = 1;
    result.gradientCheck = engine::GradientCheck::Bitwise;
    for (int stage = 0; stage < plan.stages(); ++stage) {
        engine::StageCosts costs;
        costs.forward = 2'000'000 + 1000 * stage;
        costs.backward = 4'000'000 + 1000 * stage;
        costs.inputGrad = costs.backward / 2;
        costs.weightGrad = costs.backward - costs.inputGrad;
        result.measuredCosts.push_back(costs);
    }
    result.measuredTransferNs = 5000;
    return result;
}

// Waits for commands between the two halves of a run. False: the run is over.
bool waitForResume(Stream& stream)
{
    std::string line;
    while (std::getline(std::cin, line)) {
        const engine::Expected<engine::SessionCommand> command = engine::readCommand(line);
        if (!command.ok()) continue;
        switch (command.value().kind) {
        case engine::CommandKind::Pause: stream.state(SessionState::Paused); break;
        case engine::CommandKind::Resume: stream.state(SessionState::Running); return true;
        case engine::CommandKind::Stop:
            stream.state(SessionState::Stopping);
            stream.state(SessionState::Stopped);
            return false;
        case engine::CommandKind::Quit: std::exit(0);
        case engine::CommandKind::Start:
        case engine::CommandKind::Trouble: break;
        }
    }
    std::exit(0);
}

void run(Stream& stream, const engine::Plan& plan)
{
    std::fprintf(stderr, "fake worker runs %s\n", plan.name.c_str());
    const auto schedule = scheduleOf(plan);
    const auto costs = costsOf(plan);
    if (!schedule.ok() || !costs.ok()) std::exit(4);
    const traces::Trace simulated = engine::simulate(schedule.value(), costs.value()).value();
    const std::vector<traces::Record> all = traces::recordsOf(measuredTrace(plan, simulated));
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    // As the engine does: what opens the trace, then the states.
    const auto opened = std::find_if(all.begin(), middle, [](const traces::Record& record) {
        return !std::holds_alternative<traces::InfoRecord>(record) && !std::holds_alternative<traces::LaneRecord>(record);
    });
    stream.records({all.begin(), opened});
    stream.state(SessionState::Preparing);
    stream.state(SessionState::Running);
    stream.message(engine::ProgressMessage{"step 1 of " + std::to_string(plan.run.steps), 0.5});
    if (plan.name == "many")
        for (int i = 0; i < 600; ++i) stream.records(std::vector<traces::Record>(100, traces::MemoryRecord{}));
    if (plan.name == "flood") {
        for (int i = 0; i < 50'000; ++i) std::fprintf(stderr, "line %d\n", i);
        std::fprintf(stderr, "%s\n", std::string(1'000'000, 'x').c_str());
    }
    if (plan.name == "noted")
        stream.records({traces::NoteRecord{"the memory may not suffice"}, traces::NoteRecord{"the machine was busy"},
                        traces::NoteRecord{"the memory may not suffice"},
                        traces::NoteRecord{"boundary tensors go by NCCL", traces::NoteKind::Information}});
    stream.records({opened, middle});
    if (plan.name == "exit") {
        std::fprintf(stderr, "last words\n");
        std::exit(3);
    }
    if (plan.name == "garbage") stream.garbage();
    if (plan.name == "deaf") {
        std::signal(SIGTERM, SIG_IGN);
        while (true) ::pause();
    }
    if (plan.name == "fail") {
        stream.message(engine::FailureMessage{"the loss is not finite; lower the learning rate", 1, 1, 2, 0});
        stream.state(SessionState::Failed);
        return;
    }
    if (plan.name == "hold" && !waitForResume(stream)) return;
    stream.records({middle, all.end()});
    stream.message(engine::ResultMessage{resultOf(plan, simulated)});
    stream.state(SessionState::Finished);
}

} // namespace

int main()
{
    Stream stream;
    std::string line;
    std::string before;
    while (std::getline(std::cin, line)) {
        const engine::Expected<engine::SessionCommand> command = engine::readCommand(line);
        if (!command.ok()) {
            std::fprintf(stderr, "%s\n", command.error().message.c_str());
            continue;
        }
        if (command.value().kind == engine::CommandKind::Quit) return 0;
        if (command.value().kind != engine::CommandKind::Start) continue;
        if (before == "spent") return engine::kSpentStatus;
        if (before == "late") stream.records({traces::MemoryRecord{}});
        before = command.value().plan.name;
        run(stream, command.value().plan);
    }
    return 0;
}
