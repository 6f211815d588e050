// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/pair_helper.h"

#include <gtest/gtest.h>

#include <semaphore>
#include <thread>

namespace stagecraft::runtime {
namespace {

// Each part waits for the other to have begun: one after the other they would never end.
TEST(PairHelper, DoesItsPartWhileItsOwnerDoesTheOther)
{
    bool prepared = false;
    PairHelper helper([&] { prepared = true; });
    for (int round = 0; round < 100; ++round) {
        std::binary_semaphore owner{0};
        std::binary_semaphore other{0};
        std::thread::id where;
        helper.start([&] {
            other.release();
            owner.acquire();
            where = std::this_thread::get_id();
        });
        owner.release();
        other.acquire();
        helper.wait();
        EXPECT_NE(where, std::this_thread::get_id());
    }
    EXPECT_TRUE(prepared);
}

TEST(PairHelper, EndsWhereItWasGivenNothing) { const PairHelper helper([] {}); }

} // namespace
} // namespace stagecraft::runtime
