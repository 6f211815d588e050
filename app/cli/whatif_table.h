// SPDX-License-Identifier: Apache-2.0
//
// What whatif tells: the trace's own step, what was predicted of it, and of each changed plan, as JSON and for people.
//
//   print(json ? jsonText(whatIfJson(told)) : whatIfText(told));
#pragma once

#include "app/cli/figures_json.h"
#include "engine/explain/what_if.h"

#include <string>
#include <vector>

namespace stagecraft::cli {

struct LeftOutPlan {
    std::string schedule;
    std::string reason;
};

struct WhatIf {
    std::string file;
    engine::Observed observed;
    std::vector<engine::WhatIfRow> rows = {}; // the trace, the same, then each changed plan, behind it its run if there was one
    std::vector<LeftOutPlan> leftOut = {};
    std::vector<std::string> notes = {};
};

// {trace, costs, rows: [...], left_out: [...], notes: [...]}; docs/whatif.md
Json whatIfJson(const WhatIf& told);
std::string whatIfText(const WhatIf& told);

} // namespace stagecraft::cli
