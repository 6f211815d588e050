// SPDX-License-Identifier: Apache-2.0
//
// The worker's side of a session across processes: commands come in as lines (session_message.h), the journal of records
// goes out. It ends on "quit", when its input ends (the window was closed or killed), on SIGTERM or SIGINT, or when nobody
// reads its output any more; a run that is going on is stopped first, and what is left of the journal is written as long as
// someone reads. Where the input is a file, its end is no word to stop: the run that it started goes on to its own end.
//
//   auto session = runtime::makeLocalSession();
//   return serveStandardStreams(*session);
//
// One call at a time in a process: it takes over SIGTERM, SIGINT and SIGPIPE until it returns.
#pragma once

#include "engine/session/session.h"

#include <chrono>

namespace stagecraft::engine {

// How long a worker that is to end waits for a reader who takes nothing.
inline constexpr std::chrono::milliseconds kReaderPatience{2000};

// Returns the exit code: 0 also where the reader is gone, 1 where input or output failed otherwise (reason on stderr).
int serve(Session& session, int inputFd, int outputFd, std::chrono::milliseconds patience = kReaderPatience);

// What serve() returns where the session is spent (session.h): what it had to say has been written, and the next run takes a new process.
inline constexpr int kSpentStatus = 75; // sysexits.h: try again

// The same over standard input and output. Standard output carries the journal alone: whatever else the process prints
// there from now on (libraries do) goes to standard error instead.
int serveStandardStreams(Session& session);

} // namespace stagecraft::engine
