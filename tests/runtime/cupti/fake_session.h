// SPDX-License-Identifier: Apache-2.0
//
// A session on the fake CUPTI, and what it hands on.
//
//   FakeSession test;                                  // the fake is reset
//   test.session->record(TraceLevel::Kernels, test.take());
//   test.fake.launch({.start = 100, .end = 200});
//   test.session->flush();
//   test.kernels() == {...}
#pragma once

#include "engine/probe/cupti/activity_join.h"
#include "engine/probe/cupti/cupti_session.h"
#include "tests/runtime/cupti/fake_cupti.h"
#include "tests/runtime/manual_clock.h"

#include <dlfcn.h>

namespace stagecraft::runtime {

inline FakeCupti& theFake()
{
    void* library = dlopen(STAGECRAFT_FAKE_CUPTI, RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<FakeCuptiFunction>(dlsym(library, "fakeCupti"))();
}

inline std::shared_ptr<const CuptiLibrary> fakeLibrary() { return CuptiLibrary::open({.name = STAGECRAFT_FAKE_CUPTI}).value(); }

struct FakeSession {
    // By flush() alone, and without waiting for what comes late.
    static CuptiOptions byHand() { return {.flushEvery = 0, .lateBuffers = 0}; }

    explicit FakeSession(const CuptiOptions& options = byHand(), bool start = true)
    {
        fake.reset();
        if (start) session = CuptiSession::create(fakeLibrary(), clock, options).value();
    }

    CuptiSession::Take take()
    {
        return [this](ActivityBatch batch) {
            ++batches;
            counts += batch.counts;
            names.insert(names.end(), batch.newNames.begin(), batch.newNames.end());
            for (const DeviceActivity& each : batch.activities) join.add(each, joined);
            join.flushed(batch.at, joined);
        };
    }

    [[nodiscard]] std::vector<JoinedActivity> kernels() const
    {
        std::vector<JoinedActivity> out;
        for (const JoinedActivity& each : joined) {
            if (std::holds_alternative<KernelActivity>(each.activity)) out.push_back(each);
        }
        return out;
    }
    [[nodiscard]] std::vector<traces::Interval> spans() const
    {
        std::vector<traces::Interval> out;
        for (const JoinedActivity& each : kernels()) out.push_back(std::get<KernelActivity>(each.activity).span);
        return out;
    }
    [[nodiscard]] std::vector<std::string> callsOf(std::string_view function) const
    {
        std::vector<std::string> out;
        for (const std::string& each : fake.calls()) {
            if (each.substr(0, each.find(' ')) == function) out.push_back(each);
        }
        return out;
    }

    FakeCupti& fake = theFake();
    ManualClock clock;
    ActivityJoin join{{.patience = 0, .patienceFlushes = 100}};
    int batches = 0;
    ActivityCounts counts;
    std::vector<std::string> names;
    std::vector<JoinedActivity> joined;
    std::unique_ptr<CuptiSession> session;
};

} // namespace stagecraft::runtime
