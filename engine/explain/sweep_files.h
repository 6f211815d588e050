// SPDX-License-Identifier: Apache-2.0
//
// A sweep as CSV (RFC 4180, a row per point, for spreadsheets) and as JSON (for programs; it reads back, for pictures).
//
//   writeWholeFile("bubble.csv", sweepCsv(sweep));
//   Expected<Sweep> again = readSweep(sweepJson(sweep));
//
// Columns: schedule, the quantity, the figures by their keys, span_ns, work_ns, and for each figure with a closed form
// formula_<key>; a cell is empty where there is none. Points that were left out have no row.
// JSON: quantity, unit, geometric, scaling, fixed, throughput_unit, notes, and series of
//   {schedule, title, serial_share, best_size: {formula, value} | null, points: [{value, ...figures, span_ns, work_ns,
//    formulas: {key: {formula, value}}, law}], left_out: [{value, reason, legal}]}
#pragma once

#include "engine/explain/sweep.h"

#include <string>
#include <string_view>

namespace stagecraft::engine {

std::string sweepCsv(const Sweep& sweep);
std::string sweepJson(const Sweep& sweep);

// Errors name what is wrong or missing.
Expected<Sweep> readSweep(std::string_view json);

} // namespace stagecraft::engine
