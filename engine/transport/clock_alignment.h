// SPDX-License-Identifier: Apache-2.0
//
// How far another process' clock is from this one's, by asking it many times what time it is. The answer was given somewhere between
// asking and hearing; so the quickest answer is the best one, and half of its round trip bounds the error (Cristian, "Probabilistic clock
// synchronization", 1989).
//
//   asked  t0 ----------> they read t1
//   heard  t2 <----------
//
//   ClockAlignment alignment;
//   alignment.add({.asked = t0, .theirs = t1, .heard = t2});
//   own = theirs + alignment.offset();       // wrong by no more than alignment.error()
#pragma once

#include "traces/base/units.h"

#include <optional>

namespace stagecraft::runtime {

class ClockAlignment {
public:
    struct Answer {
        traces::TimeNs asked = 0;
        traces::TimeNs theirs = 0;
        traces::TimeNs heard = 0;
    };
    void add(const Answer& answer)
    {
        if (!best_ || answer.heard - answer.asked < best_->heard - best_->asked) best_ = answer;
    }
    // Of the quickest answer; 0 before any.
    [[nodiscard]] traces::TimeNs offset() const { return best_ ? best_->asked + (best_->heard - best_->asked) / 2 - best_->theirs : 0; }
    [[nodiscard]] traces::TimeNs error() const { return best_ ? (best_->heard - best_->asked + 1) / 2 : 0; }
    [[nodiscard]] traces::TimeNs theirs() const { return best_ ? best_->theirs : 0; }

private:
    std::optional<Answer> best_;
};

} // namespace stagecraft::runtime
