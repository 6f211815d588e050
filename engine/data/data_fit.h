// SPDX-License-Identifier: Apache-2.0
//
// Can a model take the data that was read from files? Pure; any thread.
//
//   const Dataset data = openDataset(plan.data).value();
//   if (auto fits = checkFit(plan.data, data, plan.model); !fits.ok()) return fits.error();
#pragma once

#include "engine/data/dataset.h"

namespace stagecraft::engine {

// Errors name the file, the row and number that do not fit, and the remedy. `from` is what the data was opened with.
Expected<void> checkFit(const DataSpec& from, const Dataset& data, const ModelSpec& model);

} // namespace stagecraft::engine
