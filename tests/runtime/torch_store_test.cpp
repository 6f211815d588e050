// SPDX-License-Identifier: Apache-2.0
//
// Our meeting point against c10d's own store and client. What else may be at its port: meeting_point_test.cpp.
#include "engine/transport/tcp/meeting_point.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stagecraft::runtime {
namespace {

// torchrun's own store may be of the other kind (USE_LIBUV=0).
TEST(MeetingPoint, IsAStoreOfEitherServer)
{
    for (const bool libUv : {true, false}) {
        c10d::TCPStoreOptions options;
        options.port = 0;
        options.isServer = true;
        options.waitWorkers = false;
        options.useLibUV = libUv;
        const auto store = c10::make_intrusive<c10d::TCPStore>("localhost", options);
        auto point = openMeetingPoint({.host = "127.0.0.1", .port = store->getPort()}).value();
        EXPECT_FALSE(point->find("address/0"));
        point->put("address/0", std::string(10'000, 'a')); // more than a packet
        EXPECT_EQ(point->find("address/0"), std::string(10'000, 'a'));
        EXPECT_EQ(point->agree("size", "2"), "2");
        EXPECT_EQ(point->agree("size", "3"), "2");
        EXPECT_EQ(point->count("rank/1"), 1);
        EXPECT_EQ(point->count("rank/1"), 2);
        // and by their client
        EXPECT_EQ(store->get("stagecraft//size"), std::vector<std::uint8_t>{'2'});
        store->set("stagecraft//address/1", std::vector<std::uint8_t>{'b'});
        EXPECT_EQ(store->add("stagecraft//rank/1", 1), 3); // after what was put before it
        EXPECT_EQ(point->find("address/1"), "b");
    }
}

} // namespace
} // namespace stagecraft::runtime
