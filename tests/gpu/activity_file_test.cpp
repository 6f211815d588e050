// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/activity_file.h"

#include "engine/probe/cupti/activity_decoder.h"
#include "engine/probe/cupti/activity_join.h"
#include "tests/runtime/cupti/hand_made_buffer.h"
#include "tests/runtime/cupti/real_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace stagecraft::gpu {
namespace {

using namespace runtime;
using testing::ElementsAre;
using testing::HasSubstr;

// What a recording of a GPU must give on every machine, whoever made the file.
struct Contents {
    ActivityBatch batch;
    std::vector<JoinedActivity> joined;
    std::int64_t unattributed = 0;
};

Contents contentsOf(const std::filesystem::path& path)
{
    const auto library = realLibrary();
    ActivityFile file = loadActivities(path, *library).value();
    Contents all;
    ActivityDecoder decoder(library);
    for (ActivityWords& buffer : file.buffers) decoder.decode(bytesOf(buffer), {}, all.batch);
    ActivityJoin join({.calls = true});
    for (const DeviceActivity& each : all.batch.activities) join.add(each, all.joined);
    join.finish(all.joined);
    all.unattributed = join.unattributed();
    return all;
}

void expectWhole(const Contents& all)
{
    EXPECT_EQ(all.batch.counts.brokenBuffers, 0);
    EXPECT_EQ(all.batch.counts.impossible, 0);
    int kernels = 0;
    int marked = 0;
    for (const JoinedActivity& each : all.joined) {
        const auto* kernel = std::get_if<KernelActivity>(&each.activity);
        if (kernel == nullptr) continue;
        ++kernels;
        EXPECT_NE(kernel->name, NameId{});
        if (each.work == kNoWork) continue;
        ++marked;
        EXPECT_TRUE(unpackWork(each.work));
    }
    EXPECT_GT(kernels, 0);
    EXPECT_GT(marked, 0);
}

class ActivityFiles : public testing::Test {
protected:
    void TearDown() override { std::filesystem::remove(path_); }
    std::filesystem::path path_ = testing::TempDir() + "stagecraft_" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".activities";
};

TEST_F(ActivityFiles, GiveBackWhatWasRecordedWithTheNamesOfAnotherProcess)
{
    const WorkId first = *packWork({.work = traces::forward(traces::Stage{0}, traces::MicroBatch{1}).work});
    {
        std::string gemm = "_Z4gemmPf"; // gone before the file is read, as a process is
        std::string relu = "relu";
        HandMadeBuffer one;
        one.add(correlationRecord(5, first)).add(apiRecord({.start = 90, .end = 95, .correlation = 5}));
        one.add(kernelRecord({.start = 100, .end = 200, .correlation = 5, .name = gemm.c_str()}));
        HandMadeBuffer two;
        two.add(kernelRecord({.start = 210, .end = 220, .correlation = 6, .name = relu.c_str()}));
        two.add(kernelRecord({.start = 230, .end = 240, .correlation = 7, .name = gemm.c_str()}));
        two.add(kernelRecord({.start = 250, .end = 260, .correlation = 8}));
        two.add(overheadRecord({.start = 20, .end = 30}, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH));
        ASSERT_TRUE(saveActivities(path_, {.cupti = 130001, .buffers = {wordsOf(one.records()), wordsOf(two.records())}}, *realLibrary()).ok());
    }
    const ActivityFile file = loadActivities(path_, *realLibrary()).value();
    EXPECT_EQ(file.cupti, 130001U);
    EXPECT_THAT(file.names, ElementsAre("_Z4gemmPf", "relu"));

    const Contents all = contentsOf(path_);
    EXPECT_THAT(all.batch.newNames, testing::Contains("gemm(float*)"));
    EXPECT_EQ(all.batch.counts.records, 7);
    EXPECT_EQ(all.unattributed, 3);
    std::vector<WorkId> works;
    for (const JoinedActivity& each : all.joined)
        if (std::holds_alternative<KernelActivity>(each.activity)) works.push_back(each.work);
    EXPECT_THAT(works, testing::UnorderedElementsAre(first, kNoWork, kNoWork, kNoWork));
}

TEST_F(ActivityFiles, AreTheSameBytesForTheSameRecords)
{
    HandMadeBuffer buffer;
    auto odd = copyRecord({});
    odd.reserved0 = &odd; // an address of this process
    buffer.add(odd);
    const auto bytes = [&] {
        EXPECT_TRUE(saveActivities(path_, {.cupti = 1, .buffers = {wordsOf(buffer.records())}}, *realLibrary()).ok());
        std::ifstream in(path_, std::ios::binary);
        return std::string{std::istreambuf_iterator<char>(in), {}};
    };
    const std::string first = bytes();
    EXPECT_EQ(first.size(), 8 + 3 * 4 + 8 + sizeof(CUpti_ActivityMemcpy6));
    const CUpti_ActivityMemcpy6 plain = copyRecord({});
    EXPECT_EQ(first.substr(28), std::string(reinterpret_cast<const char*>(&plain), sizeof plain));
    EXPECT_EQ(bytes(), first);
}

TEST_F(ActivityFiles, ThatAreCutOrWrongAreRefusedAndNamed)
{
    HandMadeBuffer buffer;
    buffer.add(kernelRecord({.name = "gemm"}));
    ASSERT_TRUE(saveActivities(path_, {.cupti = 130001, .buffers = {wordsOf(buffer.records())}}, *realLibrary()).ok());
    std::string all;
    {
        std::ifstream in(path_, std::ios::binary);
        all.assign(std::istreambuf_iterator<char>(in), {});
    }
    const auto refusal = [&](const std::string& content) {
        std::ofstream(path_, std::ios::binary) << content;
        const auto loaded = loadActivities(path_, *realLibrary());
        return loaded.ok() ? std::string() : loaded.error().message;
    };
    for (std::size_t length = 0; length < all.size(); ++length) EXPECT_THAT(refusal(all.substr(0, length)), HasSubstr(path_.string())) << length;
    EXPECT_THAT(refusal(all.substr(0, all.size() - 1)), HasSubstr("ends too early"));
    EXPECT_THAT(refusal(all + "x"), HasSubstr("goes on behind its last buffer"));
    EXPECT_THAT(refusal("not this"), HasSubstr("no records of CUPTI"));
    std::string wrongName = all;
    const std::size_t name = 8 + 12 + 4 + 4 + 8 + offsetof(CUpti_ActivityKernel10, name);
    wrongName[name] = 9;
    EXPECT_THAT(refusal(wrongName), HasSubstr("a name that is not there"));
    EXPECT_EQ(refusal(all), "");
    std::filesystem::remove(path_);
    EXPECT_THAT(loadActivities(path_, *realLibrary()).error().message, HasSubstr("cannot be read"));
}

// What tests/gpu/check kept on a machine with a GPU.
TEST(RecordedOnAGpu, EveryFileIsDecodedAndJoined)
{
    const std::filesystem::path folder = STAGECRAFT_TEST_DATA "/gpu";
    int files = 0;
    if (std::filesystem::is_directory(folder)) {
        for (const auto& each : std::filesystem::directory_iterator(folder)) {
            if (each.path().extension() != ".activities") continue;
            SCOPED_TRACE(each.path().string());
            expectWhole(contentsOf(each.path()));
            ++files;
        }
    }
    if (files == 0) GTEST_SKIP() << "no recording of a GPU has been kept yet: tests/gpu/check makes them";
}

} // namespace
} // namespace stagecraft::gpu
