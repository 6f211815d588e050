// SPDX-License-Identifier: Apache-2.0
//
// Follows one live run from start to end: builds its trace, shows how far it is and says its notes on standard error as they
// come, stops it on Ctrl-C, keeps what came. A run that ends before its first action leaves no trace: an older file stays.
//
//   LiveRun run = follow(*session, plan, {.journal = "out.strace"}).value();
//   if (run.failure) ...
#pragma once

#include "app/cli/command.h"
#include "engine/session/session.h"
#include "engine/session/session_message.h"
#include "traces/analysis/gpu_memory.h"
#include "traces/store/recent_trace.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::cli {

struct FollowOptions {
    std::string journal;   // from the first action on, records are written there as they are taken, so that a crash loses none; empty: nowhere
    bool progress = false; // on standard error, for a terminal
    std::size_t slices = traces::RecentTrace::kEverything; // that stay in memory: the last steps, so that a run may go on for days
    bool notes = true;     // on standard error as they come
    // Of several processes, each of which follows its own session: from how opening the journal went here, how it went for all.
    std::function<Expected<void>(const Expected<void>& opened)> agree = {};
};

struct LiveRun {
    traces::Trace trace; // of the steps that stayed in memory
    bool ran = false;             // an action has; else there is nothing to keep
    bool journalBegun = false;    // the file is this run's
    std::size_t slices = 0;       // of the whole run
    std::vector<traces::GpuPeak> gpuPeaks; // the same
    std::size_t droppedSteps = 0; // before those of the trace
    engine::SessionState state = engine::SessionState::Idle;
    std::optional<engine::RunResult> result;
    std::optional<engine::FailureMessage> failure;
    std::optional<Error> journalFault; // the journal is incomplete, which was said on standard error; the rest is not
};

// Where the stream holds a second run, as of several processes, the trace is that one, and the journal the first.
// An error where the run cannot start, or its journal cannot be opened. SIGINT and SIGTERM stop the run; a second one
// ends the program at once.
Expected<LiveRun> follow(engine::Session& session, const engine::Plan& plan, const FollowOptions& options);

// "step 1, rank 0: ..."
Error failureOf(const engine::FailureMessage& failure);

} // namespace stagecraft::cli
