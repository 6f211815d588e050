// SPDX-License-Identifier: Apache-2.0
//
// The worker's side of a session across processes: commands come in as lines (session_message.h), the journal of records
// goes out. It ends on "quit", when its input ends (the window was closed or killed), on SIGTERM or SIGINT, or when nobody
// reads its output any more; a run that is going on is stopped first.
//
//   auto session = runtime::makeLocalSession();
//   return serveStandardStreams(*session);
//
// One call at a time in a process: it takes over SIGTERM, SIGINT and SIGPIPE until it returns.
#pragma once

#include "engine/session/session.h"

namespace stagecraft::engine {

// Returns the exit code: 0 also where the reader is gone, 1 where input or output failed otherwise (reason on stderr).
int serve(Session& session, int inputFd, int outputFd);

// The same over standard input and output. Standard output carries the journal alone: whatever else the process prints
// there from now on (libraries do) goes to standard error instead.
int serveStandardStreams(Session& session);

} // namespace stagecraft::engine
