// SPDX-License-Identifier: Apache-2.0
//
// What a record of CUPTI costs the thread that reads it, without a GPU: the real library steps over buffers made by hand, of
// launches as level Kernels records them (mark, call, kernel). And the whole way: buffers, decoder, join, lanes, records.
#include "engine/probe/cupti/action_spans.h"
#include "engine/probe/cupti/activity_buffers.h"
#include "engine/probe/cupti/activity_decoder.h"
#include "engine/probe/cupti/device_lanes.h"
#include "tests/runtime/cupti/hand_made_buffer.h"

#include <benchmark/benchmark.h>

#include <array>
#include <cstring>

using namespace stagecraft::runtime;
using stagecraft::traces::MicroBatch;
using stagecraft::traces::Rank;
using stagecraft::traces::Record;
using stagecraft::traces::Stage;
using stagecraft::traces::Step;

namespace {

constexpr int kLaunches = 450; // fit a buffer of 128 KiB
constexpr int kRecords = 3 * kLaunches;

std::shared_ptr<const CuptiLibrary> library() { return CuptiLibrary::open({.path = STAGECRAFT_CUPTI_LIBRARY}).value(); }

constexpr std::array kNames{"_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi", "ampere_sgemm_128x64_nn", "softmax_warp_forward", "layer_norm"};

// Launches `first`, `first` + 1, ... of an action each hundred.
HandMadeBuffer launches(std::uint32_t first)
{
    HandMadeBuffer out;
    for (std::uint32_t i = first; i < first + kLaunches; ++i) {
        const std::uint64_t at = 1'000'000 + std::uint64_t{i} * 1'000;
        const WorkId id = *packWork({.run = 1, .step = Step{i / 10'000}, .work = stagecraft::traces::forward(Stage{i / 100 % 4}, MicroBatch{i / 400 % 8}).work});
        out.add(correlationRecord(i, id));
        out.add(apiRecord({.start = at, .end = at + 300, .correlation = i}));
        out.add(kernelRecord({.start = at + 5'000, .end = at + 5'900, .correlation = i, .name = kNames[i % kNames.size()], .stream = 7 + i / 100 % 4}));
    }
    return out;
}

void decode(benchmark::State& state)
{
    ActivityDecoder decoder(library());
    HandMadeBuffer buffer = launches(0);
    for (auto _ : state) {
        ActivityBatch batch;
        decoder.decode(buffer.records(), {.level = TraceLevel::Kernels}, batch);
        benchmark::DoNotOptimize(batch.activities.data());
    }
    state.SetItemsProcessed(state.iterations() * kRecords);
    state.counters["ns_per_record"] = benchmark::Counter(kRecords, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void wholeWay(benchmark::State& state)
{
    ActivityBuffers buffers({.bufferBytes = std::size_t{128} << 10, .most = 8});
    ActivityDecoder decoder(library());
    ActivityJoin join;
    DevicePlaceRanks ranks({.run = 1, .stageToRank = {Rank{0}, Rank{1}, Rank{2}, Rank{3}}, .upStageToRank = {}});
    OwnRecordNumbers numbers;
    DeviceLanes lanes(ranks, numbers);
    ActionSpans spans(ranks);
    std::vector<HandMadeBuffer> made;
    constexpr std::uint32_t kMade = 64;
    for (std::uint32_t b = 0; b < kMade; ++b) made.push_back(launches(b * kLaunches));
    std::uint32_t next = 0;
    std::vector<JoinedActivity> joined;
    std::vector<Record> records;
    for (auto _ : state) {
        // As CUPTI: asks, fills, gives back.
        HandMadeBuffer& from = made[next++ % kMade];
        std::uint8_t* given = buffers.handOut();
        std::memcpy(given, from.records().data(), from.size());
        ActivityBuffers::giveBack(given, from.size());

        ActivityBatch batch;
        batch.at = std::int64_t{next} * 50'000'000;
        while (const auto ready = buffers.takeReady()) decoder.decode(ready->records(), {.level = TraceLevel::Kernels}, batch);
        joined.clear();
        for (const DeviceActivity& each : batch.activities) join.add(each, joined);
        join.flushed(batch.at, joined);
        lanes.addNames(batch.newNames);
        for (const JoinedActivity& each : joined) {
            lanes.add(each);
            spans.add(each);
        }
        records.clear();
        lanes.flush(records);
        benchmark::DoNotOptimize(records.data());
        benchmark::DoNotOptimize(spans.takeChanged().data());
    }
    state.SetItemsProcessed(state.iterations() * kRecords);
    state.counters["ns_per_launch"] = benchmark::Counter(kLaunches, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK(decode);
BENCHMARK(wholeWay);

} // namespace

BENCHMARK_MAIN();
