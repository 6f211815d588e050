// SPDX-License-Identifier: Apache-2.0
//
// The options of `run`: those of every verb that changes a plan, and those of the plan's `run` and `data`. They stay text until they are
// applied, so that every message names the option, the value and what is allowed.
//
//   const auto options = std::make_shared<RunOptions>();
//   addRunOptions(verb, *options);
//   ...
//   Expected<engine::Plan> plan = withRunOptions(std::move(changed), *options); // after withOverrides()
#pragma once

#include "app/cli/overrides.h"

#include <string>

namespace stagecraft::cli {

struct RunOptions {
    using Text = Overrides::Text;

    std::string plan;
    Overrides overrides;
    Text mode, device, gpus, tracing, tf32, steps, check, data, targets, tokens;
    Text activations, handoff, handoffDepth, transport, slowdown;
    Text checkpoint, checkpointEvery, resume, clipNorm, lossScale;
    std::string trace;
    bool json = false;
    std::string asked; // what is run, as it would be typed: all but where this process writes and how
};

// `options` outlives the verb.
void addRunOptions(CLI::App& verb, RunOptions& options);
// For RunOptions::asked, once the line is parsed.
std::string askedText(const CLI::App& verb);

// Errors are wrong use.
Expected<engine::Plan> withRunOptions(engine::Plan plan, const RunOptions& options);

} // namespace stagecraft::cli
