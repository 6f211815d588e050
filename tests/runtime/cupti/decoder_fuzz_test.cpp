// SPDX-License-Identifier: Apache-2.0
//
// Bytes that nobody meant as records: the decoder comes to an end, reads nothing outside, and what it gives is in bounds.
#include "engine/probe/cupti/activity_decoder.h"
#include "tests/runtime/cupti/hand_made_buffer.h"
#include "tests/runtime/cupti/real_library.h"
#include "traces/store/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

namespace stagecraft::runtime {

namespace {

// A name is an address, which is any number here.
std::string unread(const char*) { return "name"; }

traces::Interval spanOf(const DeviceActivity& activity)
{
    return std::visit(
        [](const auto& each) -> traces::Interval {
            if constexpr (requires { each.span; }) return each.span;
            else if constexpr (requires { each.at; }) return {each.at, each.at};
            else return {};
        },
        activity);
}

void expectBounded(const ActivityBatch& batch, std::size_t bytes)
{
    ASSERT_LE(batch.counts.records, static_cast<std::int64_t>(bytes / 8));
    ASSERT_LE(static_cast<std::int64_t>(batch.activities.size()), batch.counts.records);
    for (const DeviceActivity& each : batch.activities) {
        ASSERT_TRUE(traces::checkBounds(spanOf(each)).ok());
        ASSERT_LE(spanOf(each).begin, spanOf(each).end);
    }
}

// A copy of exactly that length, so that a sanitizer sees who reads behind it.
void decodeCopy(ActivityDecoder& decoder, std::span<const std::uint8_t> bytes)
{
    const std::size_t words = (bytes.size() + 7) / 8;
    const auto copy = std::make_unique<std::uint64_t[]>(words);
    if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
    ActivityBatch batch;
    decoder.decode({reinterpret_cast<std::uint8_t*>(copy.get()), bytes.size()}, {}, batch);
    expectBounded(batch, bytes.size());
}

TEST(DecoderFuzz, RandomBytes)
{
    ActivityDecoder decoder(realLibrary(), unread);
    std::mt19937_64 random(20'251);
    for (int round = 0; round < 2'000; ++round) {
        std::vector<std::uint8_t> bytes(random() % 2'048);
        for (std::uint8_t& each : bytes) each = static_cast<std::uint8_t>(random());
        decodeCopy(decoder, bytes);
    }
}

// Kinds that the library knows, with anything in them, so that its walk goes on.
TEST(DecoderFuzz, RandomBytesUnderKnownKinds)
{
    ActivityDecoder decoder(realLibrary(), unread);
    std::mt19937_64 random(777);
    for (int round = 0; round < 2'000; ++round) {
        std::vector<std::uint64_t> words(random() % 512 + 1);
        for (std::uint64_t& each : words) {
            each = random();
            if (random() % 2 == 0) each = (each & ~0xffff'ffffULL) | random() % 60; // might be where a record begins
        }
        decodeCopy(decoder, {reinterpret_cast<const std::uint8_t*>(words.data()), words.size() * 8});
    }
}

TEST(DecoderFuzz, MutationsOfAGoodBuffer)
{
    HandMadeBuffer good;
    for (std::uint32_t i = 0; i < 20; ++i) {
        good.add(correlationRecord(i, i)).add(apiRecord({.correlation = i})).add(kernelRecord({.correlation = i, .name = "k"}));
        good.add(copyRecord({.correlation = i})).add(memsetRecord({.correlation = i})).add(peerCopyRecord({}, 0, 1));
        good.add(syncRecord({}, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN));
        good.add(memoryRecord({}, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION));
        good.add(overheadRecord({}, CUPTI_ACTIVITY_OVERHEAD_UNKNOWN));
    }
    ActivityDecoder decoder(realLibrary(), unread);
    std::mt19937_64 random(4'242);
    for (int round = 0; round < 3'000; ++round) {
        std::vector<std::uint8_t> bytes(good.records().begin(), good.records().end());
        for (std::uint64_t change = random() % 16; change > 0; --change) {
            const std::size_t at = random() % bytes.size();
            switch (random() % 3) {
            case 0: bytes[at] = static_cast<std::uint8_t>(random()); break;
            case 1: bytes[at] ^= static_cast<std::uint8_t>(1U << random() % 8); break;
            default: {
                const std::size_t end = std::min(bytes.size(), at + random() % 64);
                for (std::size_t i = at; i < end; ++i) bytes[i] = round % 2 == 0 ? 0 : 0xff;
                break;
            }
            }
        }
        bytes.resize(bytes.size() - random() % 256);
        decodeCopy(decoder, bytes);
    }
}

} // namespace

} // namespace stagecraft::runtime
