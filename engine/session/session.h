// SPDX-License-Identifier: Apache-2.0
//
// A session is one live run and everything that can be done to it. The runtime's in-process session and the window's
// worker client behave alike: commands return at once, what happens comes back as records (traces/store/record.h) in one
// stream. All calls may come from any one thread at a time; none blocks on the run, but for the destructor, which stops
// and joins it.
//
//   std::unique_ptr<Session> session = runtime::makeLocalSession();
//   session->start(plan);
//   for (bool last = false; !last;) {
//       last = finished(session->state()); // asked first: whoever sees the end can take all records
//       if (!last) session->waitForRecords(std::chrono::milliseconds(50));
//       for (Record& record : session->takeRecords()) apply(trace, record);
//   }
//
// The trace's own records are built as a run goes; beside them SessionRecords carry one JSON object each, of the forms in
// session_message.h: state changes, progress, the first failure, the result.
#pragma once

#include "engine/plan/plan.h"
#include "traces/store/record.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::engine {

enum class SessionState : std::uint8_t {
    Idle,      // nothing ran yet
    Preparing, // building stages, data, reference
    Running,
    Paused,   // between two actions of each rank; nothing is lost
    Stopping, // ranks drain
    Finished, // all steps done
    Stopped,  // stopped by command; what ran until then is kept
    Failed,   // a failure was reported; what ran until then is kept
};
std::string_view stateText(SessionState state); // "running", ...
[[nodiscard]] constexpr bool finished(SessionState state)
{
    return state == SessionState::Finished || state == SessionState::Stopped || state == SessionState::Failed;
}

// A fault on purpose: what is not given stays as it is.
struct StageTrouble {
    int stage = 0;
    std::optional<double> factor = {}; // its actions take so many times as long, at least 1
    std::optional<bool> held = {};     // it stands still before its next action, until it is let go
    bool operator==(const StageTrouble&) const = default;
};

class Session {
public:
    virtual ~Session() = default;

    // Starts a run; an error where the plan cannot run (the reason, with the remedy) or a run is going on.
    virtual Expected<void> start(const Plan& plan) = 0;
    virtual void pause() = 0;
    virtual void resume() = 0;
    virtual void stop() = 0;
    // Of the run that goes on, from its next action on; without one, nothing.
    virtual void trouble(const StageTrouble& trouble) = 0;

    [[nodiscard]] virtual SessionState state() const = 0;
    // Why no other run can start in this process: a GPU has failed for good in it, or does not answer. Empty while one can; said by the end
    // of the run that it happened to. Who serves a session then ends, for a new process to take its place.
    [[nodiscard]] virtual std::string spent() const { return {}; }

    // Moves out all records since the last call, in order. The state may be `Finished` while records are still to be taken.
    virtual std::vector<traces::Record> takeRecords() = 0;
    // Waits until there are records or the time is over; tells whether there are.
    virtual bool waitForRecords(std::chrono::milliseconds timeout) = 0;
};

} // namespace stagecraft::engine
