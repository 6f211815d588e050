// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/activity_decoder.h"

#include "engine/probe/cupti/cupti_api_cupti.h"
#include "engine/probe/cupti/record_sizes_cupti.h"
#include "tests/runtime/cupti/hand_made_buffer.h"
#include "tests/runtime/cupti/real_library.h"

#include <gmock/gmock.h>

namespace stagecraft::runtime {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ActivityBatch decode(HandMadeBuffer& buffer, const DecodeOptions& options = {})
{
    ActivityDecoder decoder(realLibrary());
    ActivityBatch batch;
    decoder.decode(buffer.records(), options, batch);
    return batch;
}

TEST(RecordSizes, AreTheStepsOfTheLibrary)
{
    const std::shared_ptr<const CuptiLibrary> library = realLibrary();
    for (const RecordSize& each : kRecordSizes) {
        // One record and, where it should end, the next.
        std::vector<std::uint64_t> words(each.bytes / 8 + sizeof(CUpti_ActivityKernel10) / 8, 0);
        std::memcpy(words.data(), &each.kind, sizeof each.kind);
        const CUpti_ActivityKind kernel = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        std::memcpy(words.data() + each.bytes / 8, &kernel, sizeof kernel);
        auto* bytes = reinterpret_cast<std::uint8_t*>(words.data());
        CUpti_Activity* record = nullptr;
        ASSERT_EQ(library->api().activityGetNextRecord(bytes, words.size() * 8, &record), CUPTI_SUCCESS) << "kind " << each.kind;
        ASSERT_EQ(library->api().activityGetNextRecord(bytes, words.size() * 8, &record), CUPTI_SUCCESS) << "kind " << each.kind;
        EXPECT_EQ(reinterpret_cast<std::uint8_t*>(record) - bytes, static_cast<std::ptrdiff_t>(each.bytes)) << "kind " << each.kind;
    }
}

TEST(Decoder, ReadsAKernelWithAllItsValues)
{
    CUpti_ActivityKernel10 record = kernelRecord({.start = 1'000, .end = 1'250, .correlation = 5, .name = "_Z4gemmPfi", .stream = 13});
    record.deviceId = 2;
    record.gridX = 8;
    record.gridY = 4;
    record.gridZ = 1;
    record.blockX = 128;
    record.blockY = 2;
    record.blockZ = 1;
    record.registersPerThread = 96;
    record.staticSharedMemory = 1024;
    record.dynamicSharedMemory = 49'152;
    HandMadeBuffer buffer;
    const ActivityBatch batch = decode(buffer.add(record));
    EXPECT_THAT(batch.activities, ElementsAre(DeviceActivity(KernelActivity{.span = {1'000, 1'250},
                                                                            .place = {.device = 2, .context = 1, .stream = 13},
                                                                            .correlation = 5,
                                                                            .name = NameId{1},
                                                                            .grid = {8, 4, 1},
                                                                            .block = {128, 2, 1},
                                                                            .registers = 96,
                                                                            .sharedBytes = 50'176})));
    EXPECT_THAT(batch.newNames, ElementsAre("gemm(float*, int)"));
    EXPECT_EQ(batch.counts, (ActivityCounts{.records = 1}));
}

TEST(Decoder, ReadsEveryKindThatIsRecorded)
{
    HandMadeBuffer buffer;
    buffer.add(correlationRecord(5, 777))
        .add(apiRecord({.start = 10, .end = 20, .correlation = 5}))
        .add(apiRecord({.start = 12, .end = 18, .correlation = 6}, CUPTI_ACTIVITY_KIND_DRIVER, 307))
        .add(copyRecord({.start = 201, .end = 202, .correlation = 6}, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH))
        .add(peerCopyRecord({.start = 203, .end = 209, .correlation = 7}, 0, 1))
        .add(memsetRecord({.start = 210, .end = 211, .correlation = 8}))
        .add(syncRecord({.start = 30, .end = 40, .correlation = 9}, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT, 3))
        .add(memoryRecord({.start = 50}, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE))
        .add(overheadRecord({.start = 60, .end = 65, .correlation = 0}, CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL));
    const DevicePlace place{.device = 0, .context = 1, .stream = 7};
    const ActivityBatch batch = decode(buffer);
    EXPECT_THAT(
        batch.activities,
        ElementsAre(
            DeviceActivity(CorrelationActivity{.correlation = 5, .id = 777}),
            DeviceActivity(ApiActivity{.span = {10, 20}, .correlation = 5, .side = ApiSide::Runtime, .function = 211, .name = NameId{1}, .thread = 42}),
            DeviceActivity(ApiActivity{.span = {12, 18}, .correlation = 6, .side = ApiSide::Driver, .function = 307, .name = NameId{2}, .thread = 42}),
            DeviceActivity(CopyActivity{
                .span = {201, 202}, .place = place, .correlation = 6, .direction = CopyDirection::DeviceToHost, .bytes = 4096}),
            DeviceActivity(PeerCopyActivity{.span = {203, 209}, .place = place, .correlation = 7, .from = 0, .to = 1, .bytes = 4096}),
            DeviceActivity(MemsetActivity{.span = {210, 211}, .place = place, .correlation = 8, .bytes = 4096}),
            DeviceActivity(SyncActivity{
                .span = {30, 40}, .context = 1, .stream = 7, .correlation = 9, .sync = SyncKind::StreamWait, .event = 3}),
            DeviceActivity(MemoryActivity{.at = 50,
                                          .place = place,
                                          .correlation = 1,
                                          .operation = MemoryOperation::Release,
                                          .address = 0x7f00'0000'1000,
                                          .bytes = 4096}),
            DeviceActivity(OverheadActivity{.span = {60, 65}, .overhead = OverheadKind::CommandBufferFull})));
    EXPECT_EQ(batch.counts, (ActivityCounts{.records = 9}));
    EXPECT_THAT(batch.newNames, ElementsAre("cudaLaunchKernel", "cuLaunchKernel"));
}

TEST(Decoder, LeavesOutAllocationsBelowTheLevelThatAsksForThem)
{
    HandMadeBuffer buffer;
    buffer.add(memoryRecord({.start = 50}, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION));
    EXPECT_THAT(decode(buffer, {.level = TraceLevel::Kernels}).activities, IsEmpty());
    EXPECT_THAT(decode(buffer, {.level = TraceLevel::Api}).activities, SizeIs(1));
}

TEST(Decoder, PutsTimesOnTheHostsClock)
{
    HandMadeBuffer buffer;
    buffer.add(kernelRecord({.start = 1'700'000'000'000'000'100, .end = 1'700'000'000'000'000'200}));
    const ActivityBatch batch = decode(buffer, {.clockOffset = -1'699'999'999'999'999'000});
    EXPECT_EQ(std::get<KernelActivity>(batch.activities.at(0)).span, (traces::Interval{1'100, 1'200}));
}

TEST(Decoder, CountsWhatHasNoTimeAndWhatCannotBe)
{
    HandMadeBuffer buffer;
    buffer.add(kernelRecord({.start = 0, .end = 0}))
        .add(kernelRecord({.start = 100, .end = 0})) // had not ended when a forced flush took it
        .add(copyRecord({.start = 0, .end = 5}))
        .add(memoryRecord({.start = 0}, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION))
        .add(kernelRecord({.start = 200, .end = 100}))
        .add(kernelRecord({.start = 1, .end = ~0ULL}))
        .add(copyRecord({.bytes = ~0ULL}))
        .add(kernelRecord({.start = 7, .end = 7})); // shorter than the clock can tell
    const ActivityBatch batch = decode(buffer);
    EXPECT_THAT(batch.activities, SizeIs(1));
    EXPECT_EQ(batch.counts, (ActivityCounts{.records = 8, .untimed = 4, .impossible = 3}));
    EXPECT_EQ(batch.counts.lost(), 7);
}

TEST(Decoder, PassesOverOtherKindsAndOtherLibrariesIds)
{
    CUpti_ActivityStream stream{};
    stream.kind = CUPTI_ACTIVITY_KIND_STREAM;
    HandMadeBuffer buffer;
    buffer.add(stream).add(correlationRecord(1, 9, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1)).add(kernelRecord());
    const ActivityBatch batch = decode(buffer);
    EXPECT_THAT(batch.activities, SizeIs(1));
    EXPECT_EQ(batch.counts, (ActivityCounts{.records = 3, .otherKinds = 2}));
}

TEST(Decoder, ReadsUpToARecordThatTheLibraryDoesNotKnow)
{
    CUpti_ActivityKernel10 unknown = kernelRecord();
    unknown.kind = static_cast<CUpti_ActivityKind>(200);
    HandMadeBuffer buffer;
    buffer.add(kernelRecord()).add(unknown).add(kernelRecord());
    const ActivityBatch batch = decode(buffer);
    EXPECT_THAT(batch.activities, SizeIs(1));
    EXPECT_EQ(batch.counts, (ActivityCounts{.records = 1, .brokenBuffers = 1}));
}

TEST(Decoder, LeavesOutARecordThatIsCut)
{
    HandMadeBuffer buffer;
    buffer.add(kernelRecord()).add(kernelRecord());
    ActivityDecoder decoder(realLibrary());
    for (std::size_t bytes = 0; bytes < buffer.size(); bytes += 8) {
        ActivityBatch batch;
        decoder.decode(buffer.records().first(bytes), {}, batch);
        EXPECT_THAT(batch.activities, SizeIs(bytes / sizeof(CUpti_ActivityKernel10))) << bytes << " bytes";
    }
}

TEST(Decoder, GivesAnEmptyBufferNothing)
{
    ActivityDecoder decoder(realLibrary());
    ActivityBatch batch;
    decoder.decode({}, {}, batch);
    EXPECT_THAT(batch.activities, IsEmpty());
    EXPECT_EQ(batch.counts, ActivityCounts{});
}

TEST(Decoder, NumbersANameOnceOverAllBuffers)
{
    const char* gemm = "gemm";
    const std::string sameText = "gemm"; // at another address
    ActivityDecoder decoder(realLibrary());
    HandMadeBuffer first;
    first.add(kernelRecord({.name = gemm})).add(kernelRecord({.name = "relu"})).add(kernelRecord({.name = gemm}));
    ActivityBatch batch;
    decoder.decode(first.records(), {}, batch);
    EXPECT_THAT(batch.newNames, ElementsAre("gemm", "relu"));
    HandMadeBuffer second;
    second.add(kernelRecord({.name = sameText.c_str()})).add(kernelRecord({.name = "softmax"})).add(kernelRecord());
    batch = {};
    decoder.decode(second.records(), {}, batch);
    EXPECT_THAT(batch.newNames, ElementsAre("softmax"));
    EXPECT_EQ(std::get<KernelActivity>(batch.activities.at(0)).name, NameId{1});
    EXPECT_EQ(std::get<KernelActivity>(batch.activities.at(1)).name, NameId{3});
    EXPECT_EQ(std::get<KernelActivity>(batch.activities.at(2)).name, NameId{0});
}

// A newer release has longer records: its own function says where the next begins.
TEST(Decoder, StepsAsTheLibrarySays)
{
    static constexpr std::size_t kLonger = sizeof(CUpti_ActivityKernel10) + 40;
    CuptiApi api;
    api.activityGetNextRecord = [](std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
        std::uint8_t* next = *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + kLonger;
        if (next + kLonger > buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
        *record = reinterpret_cast<CUpti_Activity*>(next);
        return CUPTI_SUCCESS;
    };
    struct Added {
        std::uint64_t value[5];
    };
    HandMadeBuffer buffer;
    buffer.add(kernelRecord({.correlation = 1})).add(Added{{1, 2, 3, 4, 5}}).add(kernelRecord({.correlation = 2})).add(Added{});
    ActivityDecoder decoder(std::make_shared<CuptiLibrary>(api, "test", 139'999));
    ActivityBatch batch;
    decoder.decode(buffer.records(), {}, batch);
    ASSERT_THAT(batch.activities, SizeIs(2));
    EXPECT_EQ(std::get<KernelActivity>(batch.activities[1]).correlation, 2U);
    EXPECT_EQ(batch.counts, (ActivityCounts{.records = 2}));
}

// One that stands still, goes back or leaves the buffer does not hold up the program.
TEST(Decoder, StopsWhereALibraryStepsWrong)
{
    static std::ptrdiff_t step = 0;
    CuptiApi api;
    api.activityGetNextRecord = [](std::uint8_t* buffer, std::size_t, CUpti_Activity** record) {
        *record = reinterpret_cast<CUpti_Activity*>(*record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + step);
        return CUPTI_SUCCESS;
    };
    HandMadeBuffer buffer;
    buffer.add(kernelRecord()).add(kernelRecord());
    for (const std::ptrdiff_t wrong : {0, -8, 4, 1'000'000}) {
        step = wrong;
        ActivityDecoder decoder(std::make_shared<CuptiLibrary>(api, "test", 130'001));
        ActivityBatch batch;
        decoder.decode(buffer.records(), {}, batch);
        EXPECT_THAT(batch.activities, SizeIs(1)) << wrong;
        EXPECT_EQ(batch.counts.brokenBuffers, 1) << wrong;
    }
}

TEST(CallNames, AreWithoutCuptisVersion)
{
    EXPECT_EQ(callName("cudaMemcpyAsync_v3020"), "cudaMemcpyAsync");
    EXPECT_EQ(callName("cudaMemcpyAsync_ptsz_v7000"), "cudaMemcpyAsync");
    EXPECT_EQ(callName("__cudaLaunchKernel_v13000"), "cudaLaunchKernel");
    EXPECT_EQ(callName("cuMemcpyHtoDAsync_v2"), "cuMemcpyHtoDAsync");
    EXPECT_EQ(callName("cuLaunchKernel_ptsz"), "cuLaunchKernel");
    EXPECT_EQ(callName("cu_value"), "cu_value");
    EXPECT_EQ(callName("__"), "");
}

// A call that this release of CUPTI does not know has no name.
TEST(Decoder, NamesNoCallThatTheLibraryDoesNotKnow)
{
    HandMadeBuffer buffer;
    buffer.add(apiRecord({}, CUPTI_ACTIVITY_KIND_RUNTIME, 999'999)).add(apiRecord({}, CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API));
    const ActivityBatch batch = decode(buffer);
    ASSERT_THAT(batch.activities, SizeIs(2));
    EXPECT_EQ(std::get<ApiActivity>(batch.activities[0]).name, NameId{});
    EXPECT_EQ(std::get<ApiActivity>(batch.activities[1]).name, NameId{});
    EXPECT_THAT(batch.newNames, IsEmpty());
}

TEST(Counts, SayInWordsWhatIsMissing)
{
    EXPECT_THAT(sentences({.records = 10, .otherKinds = 3}), IsEmpty());
    EXPECT_THAT(sentences({.untimed = 1, .impossible = 2, .brokenBuffers = 3, .dropped = 4, .refusedBuffers = 5}),
                ElementsAre(HasSubstr("dropped 4 device records"), HasSubstr("asked 5 times for a buffer"),
                            HasSubstr("1 device records came without begin or end"), HasSubstr("2 device records had times"),
                            HasSubstr("3 buffers")));
}

} // namespace

} // namespace stagecraft::runtime
