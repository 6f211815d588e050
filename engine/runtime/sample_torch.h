// SPDX-License-Identifier: Apache-2.0
//
// What a model that learns a text would write: the begin of the text, and on from there token by token, drawn from what the pipeline's own
// stages say comes next. Beside the steps: no graph, no ledger, no trace. Private to the runtime.
//
//   const std::string before = sampleText(replicas, plan, tokens);
#pragma once

#include "engine/data/text_tokens.h"
#include "engine/runtime/pipeline_torch.h"

#include <string>

namespace stagecraft::runtime {

// The same for equal weights and seed, whatever the schedule. It ends early where the model says no finite number. Precondition: the model begins with an embedding and ends with a value for
// each token.
std::string sampleText(const Replicas& replicas, const engine::Plan& plan, const engine::TextTokens& text);

} // namespace stagecraft::runtime
