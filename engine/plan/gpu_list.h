// SPDX-License-Identifier: Apache-2.0
//
// On which GPU each rank is, as a person writes it.
//
//   parseGpus("0, 0, 1, cpu").value()   // {0, 0, 1, kOnCpu}
//   gpusText({0, 0, 1, kOnCpu})         // "0, 0, 1, cpu"
#pragma once

#include "engine/plan/run_spec.h"
#include "traces/base/expected.h"

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::engine {

std::string gpusText(const std::vector<int>& gpus);
// Of an empty text none. Errors name the word.
traces::Expected<std::vector<int>> parseGpus(std::string_view text);

} // namespace stagecraft::engine
