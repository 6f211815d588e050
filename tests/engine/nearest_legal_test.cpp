// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/nearest_legal.h"

#include <gtest/gtest.h>

namespace stagecraft::engine {
namespace {

TEST(NearestLegal, HasNothingToSayOfALegalSchedule)
{
    EXPECT_FALSE(nearestLegal({.name = "1f1b", .ranks = 4, .chunks = 1, .microbatches = 8}));
}

TEST(NearestLegal, OffersTheNumberOfChunksThatTheFamilyTakes)
{
    EXPECT_EQ(nearestLegal({.name = "1f1b", .ranks = 4, .chunks = 3, .microbatches = 8}),
              (LegalChange{LegalChange::Number::Chunks, 1}));
    EXPECT_EQ(nearestLegal({.name = "interleaved", .ranks = 4, .chunks = 1, .microbatches = 8}),
              (LegalChange{LegalChange::Number::Chunks, 2}));
    EXPECT_EQ(nearestLegal({.name = "hanayo", .ranks = 4, .chunks = 3, .microbatches = 8}),
              (LegalChange{LegalChange::Number::Chunks, 4}));
}

// PyTorch's rule: rounds = max(1, m div p) = 2, and m must be a multiple of it: 9 is not, 10 is.
TEST(NearestLegal, OffersTheNearestNumberOfMicrobatches)
{
    EXPECT_EQ(nearestLegal({.name = "interleaved", .ranks = 4, .chunks = 2, .microbatches = 9}),
              (LegalChange{LegalChange::Number::MicroBatches, 10}));
}

TEST(NearestLegal, HelpsWithLargeNumbersToo)
{
    const auto change = nearestLegal({.name = "interleaved", .ranks = 64, .chunks = 16, .microbatches = 4099});
    ASSERT_TRUE(change);
    EXPECT_EQ(change->number, LegalChange::Number::MicroBatches);
    EXPECT_TRUE(checkRequest({.name = "interleaved", .ranks = 64, .chunks = 16, .microbatches = change->value}).ok());
}

TEST(NearestLegal, DoesNotKnowWhatASchedulesNameMeans)
{
    EXPECT_FALSE(nearestLegal({.name = "no-such", .ranks = 4, .chunks = 1, .microbatches = 8}));
}

} // namespace
} // namespace stagecraft::engine
