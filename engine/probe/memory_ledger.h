// SPDX-License-Identifier: Apache-2.0
//
// What one rank holds, by class, to the byte. The allocator books every block in the ledger of the rank that asked for
// it; a block that another thread frees is still taken off its owner's ledger. A tensor that is handed to the next stage
// therefore counts at the rank that made it until the last stage that uses it lets it go.
//
// A ledger lives until its handle and all its blocks are gone, so blocks may outlast a run.
//
//   LedgerHandle ledger = MemoryLedger::create(clock);
//   { AllocationScope scope({.ledger = ledger.get(), .memory = MemoryClass::Activations}); y = forward(x); }
//   ledger->held()
#pragma once

#include "engine/probe/clock.h"
#include "traces/store/trace.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace stagecraft::runtime {

using traces::Bytes;
using traces::MemoryClass;

using BytesByClass = std::array<Bytes, traces::kMemoryClassCount>;

struct MemorySample {
    TimeNs time = 0;
    BytesByClass bytes{};
};

class MemoryLedger {
public:
    struct Release {
        void operator()(MemoryLedger* ledger) const noexcept { ledger->release(); }
    };
    using Handle = std::unique_ptr<MemoryLedger, Release>;
    // `cap`: what the rank has; 0: no limit.
    static Handle create(const Clock& clock, Bytes cap = 0);

    // Any thread. False, and nothing is booked, where it would be more than the rank has.
    [[nodiscard]] bool add(MemoryClass memory, Bytes bytes) noexcept;
    // The same where nobody can be refused, as by the allocator of a GPU: then the rank may come to hold more than it has.
    void addRegardless(MemoryClass memory, Bytes bytes) noexcept;
    // By how much it did, at most, since it was asked last; 0: it did not.
    [[nodiscard]] Bytes takeOverdraft() noexcept { return overdraft_.exchange(0, std::memory_order_relaxed); }
    void remove(MemoryClass memory, Bytes bytes) noexcept;
    void move(MemoryClass from, MemoryClass to, Bytes bytes) noexcept;
    [[nodiscard]] BytesByClass held() const noexcept;
    // Why so much more was not to be had, for a person.
    [[nodiscard]] std::string refusal(Bytes bytes) const;
    [[nodiscard]] std::string overdrawn(Bytes bytes) const; // the same where it came to hold so much more

    // The highest sum since watchPeak(), where it was above the sum at that moment. Any thread; what others allocate meanwhile (copies,
    // messages) may be in it or not.
    void watchPeak() noexcept;
    [[nodiscard]] std::optional<MemorySample> peak() const noexcept;

private:
    MemoryLedger(const Clock& clock, Bytes cap) : clock_(clock), cap_(cap) {}
    ~MemoryLedger() = default;
    void release() noexcept;
    void book(MemoryClass memory, Bytes bytes, Bytes total) noexcept;

    const Clock& clock_;
    const Bytes cap_;
    alignas(64) std::array<std::atomic<Bytes>, traces::kMemoryClassCount> bytes_{};
    std::atomic<Bytes> total_{0};
    std::atomic<Bytes> overdraft_{0};
    std::atomic<std::int64_t> references_{1}; // the handle's, and one per block
    alignas(64) std::atomic<Bytes> peakTotal_{0};
    mutable std::mutex peakMutex_; // of several threads that allocate for the rank, guards what follows
    Bytes watchedFrom_ = 0;
    MemorySample peak_{};
};

using LedgerHandle = MemoryLedger::Handle;

} // namespace stagecraft::runtime
