// SPDX-License-Identifier: Apache-2.0
//
// Sets of moments as intervals that are in order, apart from each other and not empty. Pure; all but unionOf() are linear.
//
//   lengthOf(intersectionOf(unionOf(kernels), unionOf(copies)))   // time in which both are at work
#pragma once

#include "traces/base/units.h"

#include <vector>

namespace stagecraft::traces {

using IntervalSet = std::vector<Interval>;

IntervalSet unionOf(std::vector<Interval> intervals); // any, in any order
IntervalSet intersectionOf(const IntervalSet& a, const IntervalSet& b);
IntervalSet differenceOf(const IntervalSet& a, const IntervalSet& b); // in a, and not in b
TimeNs lengthOf(const IntervalSet& set);

} // namespace stagecraft::traces
