// SPDX-License-Identifier: Apache-2.0
//
// Marks what the calling thread launches as belonging to one action, until its end. The marks of a thread form a stack, of which
// CUPTI notes the innermost; other threads have their own, so that whoever launches must mark: the backward of a stage runs on
// the stage's thread for that reason. Does nothing while nothing is recorded.
//
//   {
//       const WorkScope scope(marks, step, work);   // marks: const WorkMarks*, null where there is no GPU
//       stage.forward(...);
//   }
#pragma once

#include "engine/probe/cupti/cupti_library.h"
#include "engine/probe/cupti/work_id.h"

#include <atomic>

namespace stagecraft::runtime {

// Whether marks are set, and for which run. One per process, any thread.
class WorkMarks {
public:
    explicit WorkMarks(std::shared_ptr<const CuptiLibrary> library) : library_(std::move(library)) {}

    void begin(std::uint32_t run); // from here on scopes mark
    void end();

    [[nodiscard]] bool on() const { return run_.load(std::memory_order_relaxed) >= 0; }
    [[nodiscard]] std::int64_t failed() const { return failed_.load(std::memory_order_relaxed); } // marks that could not be set

private:
    friend class WorkScope;
    std::shared_ptr<const CuptiLibrary> library_;
    std::atomic<std::int32_t> run_{-1};
    mutable std::atomic<std::int64_t> failed_{0};
};

class WorkScope {
public:
    WorkScope(const WorkMarks* marks, traces::Step step, const traces::Work& work, int replica = 0)
    {
        if (marks != nullptr && marks->on()) mark(*marks, step, work, replica);
    }
    ~WorkScope()
    {
        if (marked_ != nullptr) unmark();
    }
    WorkScope(const WorkScope&) = delete;
    WorkScope& operator=(const WorkScope&) = delete;

private:
    void mark(const WorkMarks& marks, traces::Step step, const traces::Work& work, int replica);
    void unmark();

    const WorkMarks* marked_ = nullptr; // where it has been set: a recording that ends meanwhile leaves the stack as it was
};

} // namespace stagecraft::runtime
