// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/cupti_library.h"

#include "engine/probe/cupti/cupti_api_cupti.h"
#include "tests/runtime/cupti/real_library.h"

#include <gmock/gmock.h>

namespace stagecraft::runtime {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CuptiLibrary, OfTheWheelHasAllFunctions)
{
    const auto library = CuptiLibrary::open({.name = "libnothing.so.13", .path = STAGECRAFT_CUPTI_LIBRARY});
    ASSERT_TRUE(library.ok()) << library.error().message;
    EXPECT_GE(library.value()->version(), 130'000U);
    EXPECT_THAT(library.value()->origin(), HasSubstr("libcupti.so"));
    std::uint64_t now = 0;
    EXPECT_EQ(library.value()->api().getTimestamp(&now), CUPTI_SUCCESS); // also without a driver
    EXPECT_GT(now, 0U);
}

// There must be one in a process: what is loaded comes before what a path names.
TEST(CuptiLibrary, IsTheOneThatIsLoadedAlready)
{
    const std::shared_ptr<const CuptiLibrary> loaded = realLibrary();
    const auto library = CuptiLibrary::open({.name = "libcupti.so.13", .path = "/nowhere/libcupti.so.13"});
    ASSERT_TRUE(library.ok()) << library.error().message;
    EXPECT_EQ(library.value()->origin(), loaded->origin());
}

TEST(CuptiLibrary, SaysWhereItIsMissing)
{
    const auto library = CuptiLibrary::open({.name = "libnothing.so.13", .path = "/nowhere/libcupti.so.13"});
    ASSERT_FALSE(library.ok());
    EXPECT_THAT(library.error().message,
                AllOf(HasSubstr("CUPTI cannot be loaded"), HasSubstr("libnothing.so.13"), HasSubstr("/nowhere/libcupti.so.13"),
                      HasSubstr("nvidia-cuda-cupti")));
}

TEST(CuptiLibrary, SaysWhichFunctionALibraryLacks)
{
    const auto library = CuptiLibrary::open({.name = "libm.so.6"});
    ASSERT_FALSE(library.ok());
    EXPECT_THAT(library.error().message, AllOf(HasSubstr("'libm.so.6' is not a CUPTI"), HasSubstr("no function cupti")));
}

} // namespace

} // namespace stagecraft::runtime
