// SPDX-License-Identifier: Apache-2.0
//
// The whole way: threads that launch as ranks do, CUPTI's buffers, the flush thread, and a trace with a device's lanes.
#include "engine/probe/cupti/action_spans.h"
#include "engine/probe/cupti/device_lanes.h"
#include "tests/runtime/cupti/fake_session.h"

#include <gmock/gmock.h>

#include <thread>

namespace stagecraft::runtime {

namespace {

using traces::MicroBatch;
using traces::Rank;
using traces::Record;
using traces::Stage;
using traces::Step;
using traces::Trace;
using traces::Work;

TEST(DeviceTrace, HoldsWhatTwoRanksLaunched)
{
    constexpr int kSteps = 5;
    constexpr int kMicroBatches = 4;
    constexpr int kKernels = 10;
    CuptiOptions options;
    options.flushEvery = 500'000;
    options.lateBuffers = 600'000'000'000;
    options.buffers = {.bufferBytes = 4096, .most = 2'048};
    FakeSession test(options);
    test.fake.setRecordsPerBuffer(11);
    test.fake.setLate(true);

    ActivityJoin join;
    DevicePlaceRanks ranks({.run = 1, .stageToRank = {Rank{0}, Rank{1}}, .upStageToRank = {}});
    OwnRecordNumbers numbers;
    DeviceLanes lanes(ranks, numbers);
    ActionSpans spans(ranks);
    Trace trace;
    std::vector<JoinedActivity> joined;
    const auto store = [&] {
        for (const JoinedActivity& each : joined) {
            lanes.add(each);
            spans.add(each);
        }
        joined.clear();
        std::vector<Record> records;
        lanes.flush(records);
        for (const Record& each : records) {
            const auto fits = traces::apply(trace, each);
            ASSERT_TRUE(fits.ok()) << fits.error().message;
        }
    };
    ASSERT_TRUE(test.session
                    ->record(TraceLevel::Kernels,
                             [&](const ActivityBatch& batch) {
                                 lanes.addNames(batch.newNames);
                                 for (const DeviceActivity& each : batch.activities) join.add(each, joined);
                                 join.flushed(batch.at, joined);
                                 store();
                             })
                    .ok());
    // Each action takes 1000 ns of its stream, kernel after kernel; a step of a rank has eight of them.
    const auto beginOf = [](int step, int microbatch, bool backward) {
        return 1'000'000 + 1'000 * ((step * kMicroBatches + microbatch) * 2 + (backward ? 1 : 0));
    };
    {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < 2; ++rank) {
            threads.emplace_back([&, rank] {
                for (int step = 0; step < kSteps; ++step) {
                    for (int microbatch = 0; microbatch < kMicroBatches; ++microbatch) {
                        for (const bool backward : {false, true}) {
                            const Work work = (backward ? traces::backward(Stage{rank}, MicroBatch{microbatch})
                                                        : traces::forward(Stage{rank}, MicroBatch{microbatch}))
                                                  .work;
                            const WorkScope scope(&test.session->marks(), Step{step}, work);
                            for (int k = 0; k < kKernels; ++k) {
                                const auto start = static_cast<std::uint64_t>(beginOf(step, microbatch, backward) + 100 * k);
                                test.fake.launch({.name = backward ? "wgrad" : "gemm",
                                                  .start = start,
                                                  .end = start + 90,
                                                  .stream = 7U + static_cast<unsigned>(rank),
                                                  .calledAt = start - 500});
                            }
                        }
                    }
                }
            });
        }
    }
    test.session->stop();
    join.finish(joined);
    store();

    ASSERT_EQ(trace.laneCount(), 4U); // of each rank its stream, and the gaps of that
    for (std::size_t l = 0; l < 4; ++l) {
        const traces::Lane& lane = trace.lane(traces::LaneId{l});
        if (traces::holdsGaps(lane.info())) { // all was asked for in time
            for (std::uint32_t i = 0; i < lane.size(); ++i) EXPECT_EQ(trace.sliceName({traces::LaneId{l}, i}), traces::streamGapText(traces::StreamGapCause::Device));
            EXPECT_EQ(lane.size(), static_cast<std::size_t>(kSteps * kMicroBatches * 2 * kKernels - 1));
            continue;
        }
        EXPECT_EQ(lane.info().name, "GPU 0 stream " + std::to_string(7 + lane.info().rank.value));
        ASSERT_EQ(lane.size(), static_cast<std::size_t>(kSteps * kMicroBatches * 2 * kKernels));
        for (std::uint32_t i = 0; i < lane.size(); ++i) {
            const int action = static_cast<int>(i) / kKernels;
            EXPECT_EQ(lane.step(i), Step{action / (2 * kMicroBatches)});
            EXPECT_EQ(lane.begin(i), 1'000'000 + 1'000 * action + 100 * (static_cast<int>(i) % kKernels));
            EXPECT_EQ(trace.sliceName({traces::LaneId{l}, i}), action % 2 == 0 ? "gemm" : "wgrad");
        }
    }
    EXPECT_EQ(lanes.unattributed(), 0);
    EXPECT_EQ(lanes.late(), 0);
    for (int step = 0; step < kSteps; ++step) {
        for (int microbatch = 0; microbatch < kMicroBatches; ++microbatch) {
            const auto span = spans.find(Step{step}, Rank{1}, traces::backward(Stage{1}, MicroBatch{microbatch}).work);
            ASSERT_TRUE(span.has_value());
            const traces::TimeNs begin = beginOf(step, microbatch, true);
            EXPECT_EQ(span->device, (traces::Interval{begin, begin + 990}));
            EXPECT_EQ(span->kernels, kKernels);
            EXPECT_EQ(span->launchDelay(), 500);
        }
    }
}

} // namespace

} // namespace stagecraft::runtime
