// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/nccl/clique.h"
#include "engine/transport/nccl/nccl_api.h"
#include "engine/transport/nccl/nccl_errors.h"
#include "tests/runtime/manual_clock.h"

#include <gmock/gmock.h>

#include <filesystem>

#include <dlfcn.h>

namespace stagecraft::runtime {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

NcclApi wordless(const char* own, const char* last)
{
    static const char* ownWords;
    static const char* lastWords;
    ownWords = own;
    lastWords = last;
    NcclApi api;
    api.getErrorString = [](NcclResult) { return ownWords; };
    api.getLastError = [](void*) { return lastWords; };
    return api;
}

TEST(NcclErrors, TellMeaningNcclsWordsAndRemedyOfEveryResult)
{
    for (NcclResult result = 1; result <= 6; ++result) {
        const std::string text = ncclError(wordless("own words", "last words"), "do it", result).message;
        EXPECT_THAT(text, AllOf(HasSubstr("NCCL cannot do it: "), HasSubstr(" (own words; last: last words). "))) << result;
        EXPECT_FALSE(ncclMeaning(result).remedy.empty()) << result;
        for (NcclResult other = 1; other < result; ++other) EXPECT_NE(ncclMeaning(result).what, ncclMeaning(other).what);
    }
    EXPECT_THAT(ncclError(wordless("remote process exited", ""), "send", 6).message,
                AllOf(HasSubstr("(remote process exited). The first error is that rank's"), Not(HasSubstr("last:"))));
}

TEST(NcclErrors, HaveATextForResultsOfLaterVersions)
{
    EXPECT_THAT(ncclError(wordless(nullptr, nullptr), "send", 42).message, HasSubstr("does not know (result 42). It is newer"));
}

TEST(LoadNccl, FindsAGivenFileWhereTheLoaderHasNone)
{
    const Expected<NcclLibrary> nccl = loadNccl({.name = "libno-such-nccl.so.2", .files = {"/no/such/libnccl.so.2", STAGECRAFT_FAKE_NCCL}});
    ASSERT_TRUE(nccl.ok()) << nccl.error().message;
    EXPECT_EQ(nccl.value().version, "2.28.9");
    EXPECT_TRUE(std::filesystem::equivalent(nccl.value().file, STAGECRAFT_FAKE_NCCL)) << nccl.value().file;
}

TEST(LoadNccl, TakesWhatIsLoadedAlready)
{
    ASSERT_NE(::dlopen(STAGECRAFT_FAKE_NCCL, RTLD_NOW), nullptr); // as LibTorch does
    const Expected<NcclLibrary> nccl = loadNccl({.name = "libfake_nccl.so.2", .files = {STAGECRAFT_OLD_NCCL_FILE}});
    ASSERT_TRUE(nccl.ok()) << nccl.error().message;
    EXPECT_TRUE(std::filesystem::equivalent(nccl.value().file, STAGECRAFT_FAKE_NCCL)) << nccl.value().file;
}

TEST(LoadNccl, SaysWhereItLookedAndWhatBringsIt)
{
    const Expected<NcclLibrary> nccl = loadNccl({.name = "libno-such-nccl.so.2", .files = {"/no/such/libnccl.so.2"}});
    ASSERT_FALSE(nccl.ok());
    EXPECT_THAT(nccl.error().message,
                AllOf(HasSubstr("libno-such-nccl.so.2: cannot open"), HasSubstr("/no/such/libnccl.so.2: cannot open"), HasSubstr("nvidia-nccl-cu13 brings it")));
}

TEST(LoadNccl, NamesTheFunctionThatAnOldOneLacks)
{
    const Expected<NcclLibrary> nccl = loadNccl({.name = "libno-such-nccl.so.2", .files = {STAGECRAFT_OLD_NCCL_FILE}});
    ASSERT_FALSE(nccl.ok());
    EXPECT_THAT(nccl.error().message, AllOf(HasSubstr("has no ncclCommInitRankConfig: it is older than 2.14"), HasSubstr("fake_nccl_old")));
}

// NCCL itself, as its wheel brings it.
class RealNccl : public testing::Test {
protected:
    void SetUp() override
    {
        if (!std::filesystem::exists(STAGECRAFT_NCCL_LIBRARY)) GTEST_SKIP() << "the wheel nvidia-nccl-cu13 has only its header here";
        Expected<NcclLibrary> found = loadNccl({.files = {STAGECRAFT_NCCL_LIBRARY}});
        ASSERT_TRUE(found.ok()) << found.error().message;
        nccl = std::move(found).value();
    }
    NcclLibrary nccl;
};

TEST_F(RealNccl, HasEveryFunctionAndMakesIds)
{
    EXPECT_THAT(nccl.version, ::testing::StartsWith("2."));
    const Expected<NcclId> first = newNcclId(nccl.api);
    ASSERT_TRUE(first.ok()) << first.error().message;
    EXPECT_NE(first.value(), NcclId{});
    EXPECT_NE(first.value(), newNcclId(nccl.api).value());
}

TEST_F(RealNccl, SaysThatThereIsNoGpu)
{
    using InitAll = int(void**, int, const int*);
    const auto initAll = reinterpret_cast<InitAll*>(::dlsym(::dlopen(nccl.file.c_str(), RTLD_NOW | RTLD_NOLOAD), "ncclCommInitAll"));
    ASSERT_NE(initAll, nullptr);
    void* handle = nullptr;
    const int device = 0;
    const NcclResult result = initAll(&handle, 1, &device);
    if (result == kNcclSuccess) {
        nccl.api.commAbort(handle);
        GTEST_SKIP() << "there is a GPU";
    }
    EXPECT_EQ(result, 1); // ncclUnhandledCudaError
    EXPECT_THAT(ncclError(nccl.api, "connect the ranks", result).message,
                AllOf(HasSubstr("NCCL cannot connect the ranks: a call of CUDA failed in it"), HasSubstr("last: "), EndsWith("stagecraft-cli doctor tells")));
}

TEST_F(RealNccl, LeavesACliqueWithoutAGpuUnconnected)
{
    std::thread([this] { // whatever group NCCL leaves open is the thread's
        const ManualClock clock;
        NcclClique clique({.api = nccl.api, .clock = clock}, {.size = 1, .members = {{0, 0}}, .useDevice = [](int) { return Expected<void>{}; }});
        const Expected<void> met = clique.connect(newNcclId(nccl.api).value());
        if (met.ok()) GTEST_SKIP() << "there is a GPU";
        EXPECT_THAT(met.error().message, AllOf(HasSubstr("rank 0: NCCL cannot connect it: a call of CUDA failed in it"), HasSubstr("stagecraft-cli doctor")));
        EXPECT_TRUE(clique.fault());
    }).join();
}

} // namespace
} // namespace stagecraft::runtime
