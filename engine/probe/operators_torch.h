// SPDX-License-Identifier: Apache-2.0
//
// Which of LibTorch's operators a thread calls, and when: while a Scope lives on it. Only outermost ones are noted, those that no other
// operator called, so that they follow each other; of a backward these are autograd's nodes. LibTorch calls back at the begin and the end
// of each operator, which costs less than a microsecond each; without a Scope nothing is called.
//
//   OperatorRecording recording(clock);
//   {
//       const OperatorRecording::Scope here(&recording);   // null: nothing is recorded
//       y = stage.forward(x);
//   }
//   for (const OperatorSpan& each : recording.take()) ...
//
// One thread at a time. Private to the runtime.
#pragma once

#include "engine/probe/clock.h"
#include "engine/probe/operator_span.h"

#include <cstdint>
#include <vector>

namespace stagecraft::runtime {

class OperatorRecording {
public:
    explicit OperatorRecording(const Clock& clock) : clock_(&clock) {}

    class Scope {
    public:
        explicit Scope(OperatorRecording* recording);
        ~Scope();
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

    private:
        std::uint64_t callback_ = 0; // 0: nothing is recorded
    };

    [[nodiscard]] std::vector<OperatorSpan> take(); // those since the last time

private:
    friend struct OperatorCallbacks;

    const Clock* clock_;
    int depth_ = 0; // of operators that go on
    std::vector<OperatorSpan> spans_;
};

} // namespace stagecraft::runtime
