// SPDX-License-Identifier: Apache-2.0
//
// CUPTI's activity recording in this process. There is one, made before the first CUDA context and kept until the process ends,
// for CUPTI cannot safely be switched off and on: a kind of record, once enabled, stays so, and what nobody asked for is passed
// over here. One thread controls it; WorkScope marks on any.
//
//   request ──> [free buffer] ──> CUPTI fills it ──> complete ──> [ready] ──> decoded on the flush thread ──> take(batch)
//   (CUPTI's threads, at any time, also when the session has gone: they move buffers and call nothing)
//
//   auto session = CuptiSession::create(CuptiLibrary::open().value(), monotonicClock());
//   if (!session.ok()) show(session.error().message);
//   session.value()->record(TraceLevel::Kernels, [&](ActivityBatch batch) { ... });   // on the session's thread
//   ... WorkScope scope(&session.value()->marks(), step, work); launch ...
//   synchronise the device;  session.value()->stop();
#pragma once

#include "engine/probe/clock.h"
#include "engine/probe/cupti/activity_buffers.h"
#include "engine/probe/cupti/activity_decoder.h"
#include "engine/probe/cupti/work_scope.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace stagecraft::runtime {

struct CuptiOptions {
    BufferOptions buffers = {};
    // How often records are asked for. 0: by flush() alone, without a thread.
    TimeNs flushEvery = 50'000'000;
    // How often the offset of CUPTI's clock is measured anew, where it does not take the host's.
    TimeNs clockEvery = 1'000'000'000;
    // How long stop() waits for buffers that CUPTI still has: it may give them back a little after it was asked.
    TimeNs lateBuffers = 100'000'000;
    NameReader readName = demangled;
};

class CuptiSession {
public:
    using Take = std::function<void(ActivityBatch)>;

    // The clock stays where it is, and is that of CLOCK_MONOTONIC except in tests.
    static traces::Expected<std::unique_ptr<CuptiSession>> create(std::shared_ptr<const CuptiLibrary> library, const Clock& clock,
                                                                  const CuptiOptions& options = {});
    ~CuptiSession(); // the device has nothing left to do: what has not ended is given up
    CuptiSession(const CuptiSession&) = delete;
    CuptiSession& operator=(const CuptiSession&) = delete;

    // What begins from now on goes to `take`, a batch after every flush, also an empty one. Below level Kernels CUPTI stays off.
    // Precondition: not recording. An error leaves it so.
    traces::Expected<void> record(TraceLevel level, Take take);
    // Asks for what is complete and hands it on, on the calling thread. Only where there is no flush thread.
    void flush();
    // Hands on the last batch and ends. The device has been synchronised, or what it still does is missing.
    void stop();

    [[nodiscard]] bool recording() const;
    // Whether calls of the host come with the launches (JoinOptions::calls).
    [[nodiscard]] bool recordsCalls() const;
    // Run number in the marks: counts on from 1 with every record(), modulo kRuns.
    [[nodiscard]] std::uint32_t run() const;
    // Stays valid until the process ends, so that a thread may mark while the session goes.
    [[nodiscard]] const WorkMarks& marks() const;
    // What did not work although the recording goes on, one sentence each. Once stop() has returned, else on the flush thread.
    [[nodiscard]] const std::vector<std::string>& notes() const;

private:
    class Recorder;
    explicit CuptiSession(std::unique_ptr<Recorder> recorder);
    std::unique_ptr<Recorder> recorder_;
};

} // namespace stagecraft::runtime
