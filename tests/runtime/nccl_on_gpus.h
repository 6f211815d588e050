// SPDX-License-Identifier: Apache-2.0
//
// An NCCL that is not there (nccl/fake_nccl.h) between GPUs that are not there (fake_gpu/fake_gpu.h). An exchange or a sum is an operation on
// the streams of all its ranks, that is over when all have asked for it: memory that it reads or writes without an order that events give
// is found, and so is what takes a tensor that has not come.
//
//   NcclOnGpus on({.count = 4});
//   ... run with &FakeGpus::get().source() and &on.source ...
//   on.expectNothingLeft();
#pragma once

#include "tests/runtime/fake_gpu/fake_gpu.h"
#include "tests/runtime/nccl/fake_nccl.h"

#include "engine/transport/nccl/nccl_source.h"

#include <gmock/gmock.h>

#include <thread>

namespace stagecraft::runtime {

class NcclOnGpus {
public:
    explicit NcclOnGpus(const test::FakeGpus::Setup& gpus) : before_(test::FakeGpus::get().blocks())
    {
        test::FakeGpus::get().reset(gpus);
        nccl_.takeDeviceFrom([] { return test::FakeGpus::get().currentDevice(); });
        nccl_.tellExchanges([](const FakeNccl::Side& side) {
            return test::FakeGpus::get().exchange({.stream = side.stream, .reads = side.reads, .writes = side.writes});
        });
        nccl_.tellMeetings([](const std::vector<void*>& streams) { test::FakeGpus::get().meet(streams); });
    }
    void expectNothingLeft() const
    {
        EXPECT_THAT(test::FakeGpus::get().races(), testing::IsEmpty());
        EXPECT_THAT(nccl_.misuse(), testing::IsEmpty());
        EXPECT_EQ(test::FakeGpus::get().blocks(), before_);
    }
    // What hung goes on, and with it the threads of a run that was given up.
    void release() const
    {
        test::FakeGpus::get().release();
        while (test::FakeGpus::get().blocks() > before_) std::this_thread::yield();
    }
    FakeNccl& nccl() { return nccl_; }

    NcclSource source{.api = FakeNccl::api(), .version = "2.28.9"};

private:
    FakeNccl nccl_;
    int before_;
};

} // namespace stagecraft::runtime
