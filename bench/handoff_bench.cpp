// SPDX-License-Identifier: Apache-2.0
//
// What one hand-off of a tensor costs, by its kind (run.handoff), without the tensor: put and take on one thread, where nobody waits and
// nothing crosses cores; a stream from one thread to another with eight places; and there and back between two threads with one place,
// where each hand-off is waited for (an iteration is two).
#include "engine/transport/queue_handoff.h"

#include <benchmark/benchmark.h>

#include <memory>
#include <thread>

using namespace stagecraft;
using engine::HandoffKind;
using runtime::BoxAddress;
using runtime::Direction;
using runtime::Handoff;
using traces::MicroBatch;
using traces::Stage;

namespace {

constexpr int kUnits = 8; // micro-batches, whose boxes are used again and again
using Payload = std::unique_ptr<int>; // moved like a tensor: one pointer

BoxAddress box(Direction direction, int unit)
{
    return {direction, Stage{direction == Direction::Forward ? 1 : 0}, MicroBatch{unit % kUnits}};
}

const engine::Schedule& schedule()
{
    static const engine::Schedule made = engine::generate({.name = "1f1b", .ranks = 2, .microbatches = kUnits}).value();
    return made;
}

std::unique_ptr<Handoff<Payload>> make(HandoffKind kind, int depth, runtime::WaitGraph& graph)
{
    const runtime::Patience patience = runtime::patienceFor(2);
    if (kind != HandoffKind::Boxes)
        return std::make_unique<runtime::QueueHandoff<Payload>>(
            schedule(), runtime::QueueOptions{.kind = kind, .depth = depth, .patience = patience, .graph = &graph});
    auto boxes = std::make_unique<runtime::LocalHandoff<Payload>>(2, kUnits, patience);
    boxes->watch(&graph, [](const BoxAddress& address) { return runtime::inputEdge(schedule(), address); });
    return boxes;
}

void onOneThread(benchmark::State& state, HandoffKind kind)
{
    runtime::WaitGraph graph(2, [](const std::string&) {});
    const auto handoff = make(kind, kUnits, graph);
    int unit = 0;
    for (auto _ : state) {
        handoff->put(box(Direction::Forward, unit), nullptr, runtime::monotonicClock());
        benchmark::DoNotOptimize(handoff->take(box(Direction::Forward, unit)));
        ++unit;
    }
}

// Boxes hold one of each micro-batch, so there the receiver sends a word back after each eight; a queue bounds itself.
void stream(benchmark::State& state, HandoffKind kind)
{
    runtime::WaitGraph graph(2, [](const std::string&) {});
    const auto handoff = make(kind, kUnits, graph);
    const bool bounded = handoff->bounded();
    std::jthread receiver([&] {
        for (int unit = 0;; ++unit) {
            if (!handoff->take(box(Direction::Forward, unit))) return;
            if (!bounded && unit % kUnits == kUnits - 1) handoff->put(box(Direction::Backward, 0), nullptr, runtime::monotonicClock());
        }
    });
    int unit = 0;
    for (auto _ : state) {
        handoff->put(box(Direction::Forward, unit), nullptr, runtime::monotonicClock());
        if (!bounded && unit % kUnits == kUnits - 1) handoff->take(box(Direction::Backward, 0));
        ++unit;
    }
    handoff->cancel();
}

void thereAndBack(benchmark::State& state, HandoffKind kind)
{
    runtime::WaitGraph graph(2, [](const std::string&) {});
    const auto handoff = make(kind, 1, graph);
    std::jthread other([&] {
        for (int unit = 0; handoff->take(box(Direction::Forward, unit)); ++unit)
            handoff->put(box(Direction::Backward, unit), nullptr, runtime::monotonicClock());
    });
    int unit = 0;
    for (auto _ : state) {
        handoff->put(box(Direction::Forward, unit), nullptr, runtime::monotonicClock());
        benchmark::DoNotOptimize(handoff->take(box(Direction::Backward, unit)));
        ++unit;
    }
    handoff->cancel();
}

#define FOR_EACH_KIND(measure)                                        \
    BENCHMARK_CAPTURE(measure, boxes, HandoffKind::Boxes)->UseRealTime(); \
    BENCHMARK_CAPTURE(measure, mutex, HandoffKind::Mutex)->UseRealTime(); \
    BENCHMARK_CAPTURE(measure, ring, HandoffKind::Ring)->UseRealTime();   \
    BENCHMARK_CAPTURE(measure, semaphore, HandoffKind::Semaphore)->UseRealTime()

FOR_EACH_KIND(onOneThread);
FOR_EACH_KIND(stream);
FOR_EACH_KIND(thereAndBack);

} // namespace

BENCHMARK_MAIN();
