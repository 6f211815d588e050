// SPDX-License-Identifier: Apache-2.0
//
// GPUs that are not there, for tests of everything that the engine does with a device. LibTorch has one kind of device that others may
// add ("PrivateUse1"); here host memory stands behind it. Every operation computes at once, on the thread that asks for it, with the
// CPU's own kernel: so what comes out has the CPU's bits. What a GPU would do later, and in another order, is kept as books:
//
//   order  Each stream has a vector clock (Lamport, Mattern): events carry it from stream to stream and to the host. An operation that
//          touches memory which another stream writes or reads without an event between the two is a race, and told with both names. So
//          is memory that is let go of while a stream that did not allocate it may still use it, as a caching allocator gives it away
//          at once.
//   time   Each stream has a clock of its own, in ns: an operation begins when the one before it on its stream has ended and the
//          host has asked for it, and takes what its cost is set to. What a thread takes on the host is nothing, but for its waits
//          for a stream. Timed events tell this time, so a run on such GPUs has the timeline that the costs give, exactly.
//
//   FakeGpus& gpus = FakeGpus::get();
//   gpus.reset({.count = 2, .ofOperation = 1000});
//   ... run with gpus.source() and gpus.clock() ...
//   EXPECT_THAT(gpus.races(), IsEmpty());
#pragma once

#include "engine/probe/clock.h"
#include "engine/runtime/device_source.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::test {

class FakeGpus {
public:
    static constexpr double kPeak = 8e9; // FLOP per second that each says it has

    struct Setup {
        int count = 1;
        traces::Bytes memory = traces::Bytes{1} << 40; // that each says it has, and has: beyond it LibTorch's error comes
        traces::Bytes besides = 0; // of that, what others use: a context, another process
        traces::TimeNs ofOperation = 0;      // what each takes that computes something
        traces::TimeNs ofCopy = 0;           // from one device to another
        traces::TimeNs ofExchange = 0;       // with another rank, once both have come
        bool peerAccess = true;
        // Operations are numbered from 0. From these on: each fails, and so does each wait, as after an access where there is no memory;
        // or none is ever over, until release().
        std::optional<int> failsFrom = {};
        std::optional<int> hangsFrom = {};
        std::optional<int> hangsFromExchange = {}; // what a GPU does with other ranks, numbered on each: also where NCCL has ended that
        std::optional<int> hangingGpu = {};        // the one that does, where not all do
        // Called with each operation and copy, on the thread that asks for it.
        std::function<void(const char* name, int stream, traces::Interval)> onOperation = {};
        // With each exchange of a device, on any thread.
        std::function<void(int device, int stream, traces::Interval)> onExchange = {};
    };
    static FakeGpus& get(); // of this process: LibTorch can be given such a device once
    // Nothing of an earlier run may be alive.
    void reset(const Setup& setup);

    [[nodiscard]] const runtime::DeviceSource& source() const;
    [[nodiscard]] const runtime::Clock& clock() const; // of the calling thread on the host
    [[nodiscard]] std::vector<std::string> races() const;
    // A stream, by its native handle, does something that needs another rank: it is over when what is returned is called, by any thread.
    struct Side {
        void* stream = nullptr;
        std::vector<const void*> reads; // addresses in blocks
        std::vector<const void*> writes;
    };
    std::function<void()> exchange(const Side& side);
    // These have come to the first exchange that each still waits for. Before what exchange() returned is called.
    void meet(const std::vector<void*>& streams);
    [[nodiscard]] int currentDevice() const; // of the calling thread
    [[nodiscard]] std::vector<int> contexts() const; // GPUs on which CUDA would have made one since reset()
    [[nodiscard]] int operations() const; // so far
    [[nodiscard]] int hostWaits() const;  // how often a thread has waited for a stream
    [[nodiscard]] bool hangs() const; // whether a thread has begun to wait for what is never over
    void release(); // what hangs goes on
    [[nodiscard]] int exchanges(int gpu) const; // so far
    // Of one GPU: what is in blocks, and the most that was since reset(); what an allocator that gives nothing back has reserved for it.
    struct Memory {
        traces::Bytes active = 0;
        traces::Bytes mostActive = 0;
        traces::Bytes reserved = 0;
    };
    static constexpr traces::Bytes kSegment = 4096; // that the reserve grows by
    [[nodiscard]] Memory memory(int gpu) const;
    [[nodiscard]] int driverCalls() const; // how often somebody asked what is free
    // How many blocks are alive.
    [[nodiscard]] int blocks() const;

private:
    FakeGpus();
};

} // namespace stagecraft::test
