// SPDX-License-Identifier: Apache-2.0
//
// A sweep for people: a table per schedule, what is best, and what was left out and why.
#pragma once

#include "engine/explain/sweep.h"

#include <string>

namespace stagecraft::cli {

std::string sweepText(const engine::Sweep& sweep);

} // namespace stagecraft::cli
