// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/nearest_legal.h"

#include <gmock/gmock.h>

#include <limits>
#include <regex>
#include <string>
#include <vector>

namespace stagecraft::engine {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

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

// The number that a message refuses, by the words that it stands before.
int ScheduleRequest::*refusedNumber(const std::string& message)
{
    const std::string head = message.substr(message.find(": ") + 2);
    if (head.starts_with("groups of ")) return &ScheduleRequest::group;
    const std::string words = head.substr(head.find(' ') + 1);
    if (words.starts_with("rank")) return &ScheduleRequest::ranks;
    if (words.starts_with("chunk")) return &ScheduleRequest::chunks;
    if (words.starts_with("slice")) return &ScheduleRequest::slices;
    if (words.starts_with("micro-batch")) return &ScheduleRequest::microbatches;
    return nullptr; // no number: a word, or a share
}

// The numbers behind "use" or "nearest" in the last part of a message; "2p" and "1f1b" are none.
std::vector<int> offeredNumbers(const std::string& message)
{
    static const std::regex kNumber("\\b[0-9]+\\b");
    const std::string tail = message.substr(message.rfind(';') + 1);
    std::vector<int> numbers;
    if (tail.find("use ") == std::string::npos && tail.find("nearest ") == std::string::npos) return numbers;
    for (std::sregex_iterator match(tail.begin(), tail.end(), kNumber), end; match != end; ++match) numbers.push_back(std::stoi(match->str()));
    return numbers;
}

// Every request of a grid that holds each fault, alone and with others: whatever is offered must be taken.
TEST(NearestLegal, AndMessagesOfferOnlyWhatIsLegal)
{
    int offers = 0;
    int changes = 0;
    const auto check = [&](const ScheduleRequest& request) {
        const Expected<void> verdict = checkRequest(request);
        if (verdict.ok()) return;
        const std::string& message = verdict.error().message;
        if (int ScheduleRequest::*const number = refusedNumber(message))
            for (const int value : offeredNumbers(message)) {
                ScheduleRequest mended = request;
                mended.*number = value;
                EXPECT_TRUE(checkRequest(mended).ok()) << message;
                ++offers;
            }
        if (request.ranks > 8 || request.slices > 3 || request.group != 0) return; // a search each
        const auto change = nearestLegal(request);
        if (!change) return;
        constexpr int ScheduleRequest::*kNumbers[] = {&ScheduleRequest::chunks, &ScheduleRequest::microbatches, &ScheduleRequest::ranks,
                                                      &ScheduleRequest::slices};
        ScheduleRequest mended = request;
        mended.*kNumbers[static_cast<std::size_t>(change->number)] = change->value;
        EXPECT_TRUE(checkRequest(mended).ok()) << message;
        ++changes;
    };
    for (const ScheduleFamily& family : scheduleFamilies())
        for (const int ranks : {0, 1, 2, 3, 4, 5, 7, 8, 600, 2400, 8192, 9000, kMaxStages, kMaxStages + 1})
            for (const int chunks : {0, 1, 2, 3, 4, 5})
                for (const int microbatches : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 15, 2'499'999, 2'500'000, std::numeric_limits<int>::max()})
                    for (const int slices : {1, 3, kMaxSlices})
                        for (const int group : {0, 3, -1})
                            check({.name = family.name, .ranks = ranks, .chunks = chunks, .microbatches = microbatches, .slices = slices, .group = group});
    EXPECT_GT(offers, 1000);
    EXPECT_GT(changes, 1000);
}

TEST(NearestLegal, IsNotTheNumberThatComesNextWhereThatIsRefusedToo)
{
    const auto message = [](const ScheduleRequest& request) { return checkRequest(request).error().message; };
    EXPECT_THAT(message({.name = "dualpipe", .ranks = 4, .microbatches = 7}), HasSubstr("use at least 2p = 8"));
    EXPECT_THAT(message({.name = "dualpipe", .ranks = 4, .microbatches = 9}), HasSubstr("use 8 or 10"));
    EXPECT_THAT(message({.name = "dualpipe", .ranks = 3, .microbatches = 4}), EndsWith("use 2"));
    EXPECT_THAT(message({.name = "dualpipe", .ranks = 5, .microbatches = 7}), EndsWith("use an even number"));
    EXPECT_THAT(message({.name = "chimera", .ranks = 4, .microbatches = 1}), EndsWith("use 2"));
    EXPECT_THAT(message({.name = "dualpipe-v", .ranks = 4000, .chunks = 2}), EndsWith("use fewer ranks"));
    EXPECT_THAT(message({.name = "1f1b", .chunks = 2, .slices = 2}), EndsWith("it gives each rank one; use interleaved"));
}

TEST(NearestLegal, NamesTheSlicesWhereNotOneMicroBatchFits)
{
    const Expected<void> verdict = checkRequest({.name = "seq1f1b", .ranks = kMaxStages, .microbatches = 8, .slices = kMaxSlices});
    // 20,000,000 actions over a forward and a backward on 16,384 ranks
    EXPECT_THAT(verdict.error().message, HasSubstr("1024 slices of a sequence is not allowed; 1 to 610"));
    EXPECT_TRUE(checkRequest({.name = "seq1f1b", .ranks = kMaxStages, .microbatches = 1, .slices = 610}).ok());
}

TEST(NearestLegal, DoesNotKnowWhatASchedulesNameMeans)
{
    EXPECT_FALSE(nearestLegal({.name = "no-such", .ranks = 4, .chunks = 1, .microbatches = 8}));
}

} // namespace
} // namespace stagecraft::engine
