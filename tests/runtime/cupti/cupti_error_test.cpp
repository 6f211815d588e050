// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/cupti_error.h"

#include <cupti_result.h>
#include <gmock/gmock.h>

#include <set>

namespace stagecraft::runtime {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CuptiErrors, SayWhatFailedWhyAndWhatToDo)
{
    EXPECT_EQ(cuptiError("recording of kernels", CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "CUPTI for Nsight Systems").message,
              "recording of kernels is not possible: another profiler is attached to this process (CUPTI for Nsight Systems). Only one may "
              "be. Start without Nsight Systems, Nsight Compute, cuda-gdb and compute-sanitizer, without CUDA_INJECTION64_PATH and "
              "KINETO_USE_DAEMON in the environment (CUPTI error 39, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)");
    EXPECT_THAT(cuptiError("it", CUPTI_ERROR_UNKNOWN).message, AllOf(HasSubstr("no NVIDIA driver"), HasSubstr("nvidia-smi"), HasSubstr("999")));
    EXPECT_THAT(cuptiError("it", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES).message,
                AllOf(HasSubstr("may not profile"), HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"), HasSubstr("35")));
    EXPECT_THAT(cuptiError("it", CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED).message, AllOf(HasSubstr("virtual"), HasSubstr("33")));
    EXPECT_THAT(cuptiError("it", CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES).message,
                AllOf(HasSubstr("hypervisor"), HasSubstr("40")));
    EXPECT_THAT(cuptiError("it", CUPTI_ERROR_OUT_OF_MEMORY).message, AllOf(HasSubstr("memory"), HasSubstr("(CUPTI error 8,")));
    EXPECT_THAT(cuptiError("it", CUPTI_ERROR_NOT_COMPATIBLE).message, HasSubstr("records already"));
}

// Those that an activity recording can meet.
TEST(CuptiErrors, EachHasATextOfItsOwn)
{
    std::set<std::string> whys;
    for (const int code : {1, 2, 3, 7, 8, 9, 11, 12, 13, 14, 15, 18, 21, 23, 26, 27, 33, 34, 35, 36, 38, 39, 40, 41, 42, 43, 44, 45, 999}) {
        const std::string text = cuptiError("it", code).message;
        EXPECT_THAT(text, AllOf(HasSubstr("it is not possible: "), HasSubstr("CUPTI_ERROR_"), HasSubstr(std::to_string(code) + ",")));
        EXPECT_TRUE(whys.insert(text.substr(0, text.find('.'))).second) << text;
    }
}

TEST(CuptiErrors, OneThatIsNotKnownKeepsItsNumber)
{
    EXPECT_THAT(cuptiError("it", 4'711).message, AllOf(HasSubstr("level events"), HasSubstr("CUPTI error 4711")));
}

} // namespace

} // namespace stagecraft::runtime
