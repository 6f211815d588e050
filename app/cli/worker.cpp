// SPDX-License-Identifier: Apache-2.0
#include "app/cli/live_engine.h"
#include "app/cli/verbs.h"
#include "engine/session/serve.h"

namespace stagecraft::cli {

void addWorker(CLI::App& program, Work& work)
{
    CLI::App& verb =
        addVerb(program, "worker",
                "Run plans on request: commands come in as lines of JSON, records go out. The desktop program starts "
                "this, here or on another host",
                "stagecraft-cli worker < commands.jsonl > run.strace\n  ssh gpu-host stagecraft-cli worker");
    verb.callback([&work] {
        work = [] {
            const Expected<std::unique_ptr<engine::Session>> session = makeSession();
            if (!session.ok()) return failed(session.error());
            return engine::serveStandardStreams(*session.value());
        };
    });
}

} // namespace stagecraft::cli
