// SPDX-License-Identifier: Apache-2.0
//
// A CUPTI that is not there (cupti/fake_session.h) on GPUs that are not there (fake_gpu/fake_gpu.h): told of what they do as a driver would,
// on the thread that launches, with the device's times.
//
//   CuptiOnGpus cupti;
//   const auto launch = [&](const char* name, int stream, traces::Interval when) { cupti.launch(name, 0, stream, when); };
//   runOn({.onOperation = launch}, plan, {.clock = &FakeGpus::get().clock(), .cupti = cupti.session.get()});
#pragma once

#include "tests/runtime/cupti/fake_session.h"
#include "tests/runtime/fake_gpu/fake_gpu.h"

#include <cstdint>
#include <memory>

namespace stagecraft::runtime {

struct CuptiOnGpus {
    CuptiOnGpus()
    {
        fake.reset();
        session = CuptiSession::create(fakeLibrary(), test::FakeGpus::get().clock(), FakeSession::byHand()).value();
    }
    void launch(const char* name, int gpu, int stream, traces::Interval when)
    {
        fake.launch({.name = name,
                     .start = static_cast<std::uint64_t>(when.begin),
                     .end = static_cast<std::uint64_t>(when.end),
                     .device = static_cast<std::uint32_t>(gpu),
                     .stream = static_cast<std::uint32_t>(stream),
                     .calledAt = static_cast<std::uint64_t>(when.begin)});
    }

    FakeCupti& fake = theFake();
    std::unique_ptr<CuptiSession> session;
};

} // namespace stagecraft::runtime
