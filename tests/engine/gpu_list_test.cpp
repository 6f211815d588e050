// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/gpu_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stagecraft::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(GpuList, IsWhatAPersonWrites)
{
    EXPECT_THAT(parseGpus("0, 0,1 , cpu").value(), ElementsAre(0, 0, 1, kOnCpu));
    EXPECT_EQ(gpusText({0, 0, 1, kOnCpu}), "0, 0, 1, cpu");
    EXPECT_THAT(parseGpus("").value(), IsEmpty());
    EXPECT_EQ(gpusText({}), "");
}

TEST(GpuList, NamesTheWordThatIsNoGpu)
{
    for (const char* wrong : {"gpu", "-1", "128", "1.5", "99999999999", "0x1"})
        EXPECT_THAT(parseGpus(std::string("0,") + wrong).error().message, HasSubstr("'" + std::string(wrong) + "' is not allowed"));
    for (const char* wrong : {" ", "0,", ",0", "0,,1"}) EXPECT_THAT(parseGpus(wrong).error().message, HasSubstr("'' is not allowed"));
    EXPECT_TRUE(parseGpus("127").ok());
}

} // namespace
} // namespace stagecraft::engine
