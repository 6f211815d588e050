// SPDX-License-Identifier: Apache-2.0
//
// The smallest change of one number that makes a schedule possible, for a button beside the message that says why it is not.
//
//   nearestLegal({.name = "1f1b", .chunks = 2}) -> {Chunks, 1}
#pragma once

#include "engine/schedule/schedule.h"

#include <optional>

namespace stagecraft::engine {

struct LegalChange {
    enum class Number { Chunks, MicroBatches, Ranks, Slices };
    Number number = Number::Chunks;
    int value = 0;
    bool operator==(const LegalChange&) const = default;
};

// nullopt where the request is legal, the schedule is unknown, or nothing near helps.
std::optional<LegalChange> nearestLegal(const ScheduleRequest& request);

} // namespace stagecraft::engine
