// SPDX-License-Identifier: Apache-2.0
//
// A CUPTI of its own, as a shared library: it exports what the program calls, keeps buffers per launching thread, holds back a
// buffer with a kernel that has not ended, and completes buffers from a thread of its own. A test says what the device does and
// what goes wrong.
//
//   FakeCupti& fake = loadFake();                     // reset
//   std::uint32_t launch = fake.launch({.name = "gemm"});
//   fake.complete(launch, 100, 200);                  // the kernel has ended
//   fake.fail("cuptiActivityFlushAll", 8);            // from now on
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stagecraft::runtime {

enum class FakeWork : std::uint8_t { Kernel, Copy, PeerCopy, Memset };

struct FakeLaunch {
    FakeWork work = FakeWork::Kernel;
    const char* name = "kernel"; // lives as long as the test
    std::uint64_t start = 0;     // 0: runs on until complete()
    std::uint64_t end = 0;
    std::uint32_t device = 0;    // of a kernel
    std::uint32_t stream = 7;
    std::uint64_t calledAt = 50; // the call on the host
    bool untimed = false;        // ends, but without times
};

class FakeCupti {
public:
    virtual ~FakeCupti() = default;

    // As at the start of a process.
    virtual void reset() = 0;

    // This function answers with `code`; 0: it works again.
    virtual void fail(const std::string& function, int code) = 0;
    // Another tool is attached: subscribing is refused, and told its name.
    virtual void attachOther(const std::string& name) = 0;
    // cuptiGetTimestamp without a callback.
    virtual void setClock(std::uint64_t (*now)()) = 0;

    // As the calling thread would by CUDA: a mark where one stands on the thread, a call where those are enabled, and the work.
    virtual std::uint32_t launch(const FakeLaunch& launch) = 0; // its correlation number
    virtual void complete(std::uint32_t correlation, std::uint64_t start, std::uint64_t end) = 0;
    virtual void setNextCorrelation(std::uint32_t correlation) = 0;
    virtual void setRecordsPerBuffer(int records) = 0; // a full buffer is completed by itself
    virtual void drop(std::size_t records) = 0;         // counts them as dropped

    // Buffers come a little after FlushAll has returned, else before it returns.
    virtual void setLate(bool late) = 0;
    // Buffers that are due stay with the library's thread until they are released; returns when they have been completed.
    virtual void hold() = 0;
    virtual void release() = 0;

    [[nodiscard]] virtual std::vector<std::string> calls() const = 0; // of the program, in order, without pushes, pops and steps
    [[nodiscard]] virtual std::vector<std::uint32_t> flushFlags() const = 0;
    [[nodiscard]] virtual std::string subscriber() const = 0;
};

// The library's own; exported as "fakeCupti".
using FakeCuptiFunction = FakeCupti& (*)();

} // namespace stagecraft::runtime
