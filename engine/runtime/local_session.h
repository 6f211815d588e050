// SPDX-License-Identifier: Apache-2.0
//
// A session that runs in this process on LibTorch's CPU side: what the worker serves, and what the command line and the
// tests use directly. Owned by its caller; see engine/session/session.h for the rules of calling.
//
//   std::unique_ptr<engine::Session> session = makeLocalSession();
//   if (auto started = session->start(plan); !started.ok()) return started.error();
//
// Mode `threads`: one thread per rank, each computing with one core; the clock is CLOCK_MONOTONIC. Mode `emulated`: every
// action runs alone, in the order of virtual time; p virtual ranks on any number of cores. Mode `processes`: the session is one of
// several, a process and a rank each (docs/processes.md); rank 0's commands are for all, its stream holds its own rank's records as they
// come and at the end, as another run, those of all ranks. All start from the same weights and data, which follow from the plan's seed
// alone and not from its partition.
#pragma once

#include "engine/probe/clock.h"
#include "engine/probe/host_memory.h"
#include "engine/session/session.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::runtime {

// A fault put into a run on purpose, to see that it is reported and survived.
struct InjectedFault {
    enum class Kind : std::uint8_t {
        Exception,         // the action throws
        AllocationFailure, // its n-th allocation fails
        WrongGradient,     // after the backward a parameter's gradient is off
        ExceptionAfterStep, // what is done between two steps throws
        ExceptionAtEnd,     // what puts the run together after its steps throws
        NoThread,           // the thread for the rank of `stage` cannot be started
        NoSecondThread,     // the one that does the other of a pair, or its copies
    };
    Kind kind = Kind::Exception;
    traces::ActionKind action = traces::ActionKind::Forward; // Forward or Backward
    traces::Stage stage{};
    traces::MicroBatch microbatch{};
    traces::Step step{};
    int allocation = 1; // AllocationFailure: which one of the action
};

class CuptiSession; // engine/probe/cupti/cupti_session.h
class DeviceSource; // engine/runtime/device_source.h
class ProcessGroup; // engine/transport/process_group.h
struct NcclSource;  // engine/transport/nccl/nccl_source.h

struct LocalSessionOptions {
    const Clock* clock = nullptr;      // not owned; none: monotonicClock()
    const Clock* cpuClock = nullptr;   // not owned; none: threadCpuClock()
    std::optional<HostMemory> memory = {}; // none: hostMemory()
    std::size_t ringCapacity = 1 << 14; // events per rank that wait for the collector
    std::optional<InjectedFault> fault = {};
    std::vector<std::string> profilers = {}; // what in the environment keeps kernels from being recorded (profiler_conflicts.h)
    CuptiSession* cupti = nullptr; // not owned; none: that of the process, which is made where a plan asks for kernels
    const DeviceSource* devices = nullptr; // not owned; the GPUs; none: cudaDevices()
    // So long a rank may wait for its GPU, before that counts as hanging: no action takes as long.
    std::chrono::nanoseconds devicePatience = std::chrono::minutes(5);
    const NcclSource* nccl = nullptr; // not owned; none: ncclOfProcess(), for the GPUs of cudaDevices()
    ProcessGroup* group = nullptr; // not owned; the processes of mode processes, each of which has a session that is given the same plan
};

std::unique_ptr<engine::Session> makeLocalSession(LocalSessionOptions options = {});

} // namespace stagecraft::runtime
