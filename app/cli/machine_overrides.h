// SPDX-License-Identifier: Apache-2.0
//
// The options of overrides.h that change what a plan's pipeline runs on, and what both files read alike.
#pragma once

#include "app/cli/overrides.h"

namespace stagecraft::cli {

void addMachineOverrides(CLI::App& verb, Overrides& overrides);
Expected<void> applyMachine(engine::Plan& plan, const Overrides& given);

// What factors may be; the same as in a plan.
struct FactorRange {
    double least = 0;
    double most = 1e6;
};
inline constexpr FactorRange kScales;

// "1,1,1.5,0.5": a factor per stage, or per whatever `each` names. One text tells what is allowed, whatever is wrong.
Expected<std::vector<double>> parseFactors(std::string_view text, std::string_view each, FactorRange range);

// Reads `text` with `parse` into `target`; leaves it alone where the option was not given.
template <class Target, class Parse>
Expected<void> take(std::string_view option, const Overrides::Text& text, Target& target, Parse parse)
{
    if (!text) return {};
    auto value = parse(*text);
    if (!value.ok()) return value.error().in(option);
    target = std::move(value).value();
    return {};
}

} // namespace stagecraft::cli
