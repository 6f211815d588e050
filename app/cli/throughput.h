// SPDX-License-Identifier: Apache-2.0
//
// How fast a run was, as JSON and for people.
//
//   text += throughputText(result.throughput);
#pragma once

#include "app/cli/figures_json.h"
#include "engine/session/session_message.h"

#include <string>

namespace stagecraft::cli {

// {samples_per_s, tokens_per_s (null without tokens), flops_per_s, peak_flops_per_s (of one rank), utilisation}
Json throughputJson(const engine::Throughput& throughput);
std::string throughputText(const engine::Throughput& throughput);

} // namespace stagecraft::cli
