// SPDX-License-Identifier: Apache-2.0
//
// What keeps a run answerable while it prepares: building stages and the reference gradients of a large model take long.
// Whoever prepares says so before each piece of the work, and ends by an exception where the run is to end.
//
//   preparation.next({"building the stages", layer, layers});
#pragma once

#include "engine/runtime/run_control.h"

#include <functional>
#include <string_view>

namespace stagecraft::runtime {

struct PreparationStopped {}; // thrown

struct PreparationPiece {
    std::string_view doing;
    int done = 0; // pieces
    int all = 0;
};

class Preparation {
public:
    // `tell` hears of each piece; without it only stopping is looked for.
    explicit Preparation(const RunControl& control, std::function<void(const PreparationPiece&)> tell = {})
        : control_(control), tell_(std::move(tell))
    {
    }

    void next(const PreparationPiece& piece) const
    {
        goOn();
        if (tell_) tell_(piece);
    }
    void goOn() const // within a piece
    {
        if (control_.ending()) throw PreparationStopped{};
    }

private:
    const RunControl& control_;
    std::function<void(const PreparationPiece&)> tell_;
};

} // namespace stagecraft::runtime
