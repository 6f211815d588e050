// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/memory_ledger.h"

#include "traces/base/text.h"

#include <fmt/format.h>

namespace stagecraft::runtime {

namespace {
constexpr std::size_t slot(MemoryClass memory) { return static_cast<std::size_t>(memory); }
} // namespace

MemoryLedger::Handle MemoryLedger::create(const Clock& clock, Bytes cap) { return Handle(new MemoryLedger(clock, cap)); }

void MemoryLedger::release() noexcept
{
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

bool MemoryLedger::add(MemoryClass memory, Bytes bytes) noexcept
{
    const Bytes total = total_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (cap_ > 0 && total > cap_) {
        total_.fetch_sub(bytes, std::memory_order_relaxed);
        return false;
    }
    book(memory, bytes, total);
    return true;
}

void MemoryLedger::addRegardless(MemoryClass memory, Bytes bytes) noexcept
{
    const Bytes total = total_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (cap_ > 0) {
        Bytes most = overdraft_.load(std::memory_order_relaxed);
        while (total - cap_ > most && !overdraft_.compare_exchange_weak(most, total - cap_, std::memory_order_relaxed)) {}
    }
    book(memory, bytes, total);
}

void MemoryLedger::book(MemoryClass memory, Bytes bytes, Bytes total) noexcept
{
    references_.fetch_add(1, std::memory_order_relaxed);
    bytes_[slot(memory)].fetch_add(bytes, std::memory_order_relaxed);
    if (total <= peakTotal_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(peakMutex_);
    if (total <= peakTotal_.load(std::memory_order_relaxed)) return;
    peakTotal_.store(total, std::memory_order_relaxed);
    peak_ = {clock_.now(), held()};
}

std::string MemoryLedger::refusal(Bytes bytes) const
{
    const BytesByClass now = held();
    Bytes total = 0;
    std::string parts;
    for (std::size_t c = 0; c < now.size(); ++c) {
        if (now[c] == 0) continue;
        total += now[c];
        parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", traces::memoryClassText(static_cast<MemoryClass>(c)), traces::formatSize(now[c]));
    }
    const std::string holds = parts.empty() ? std::string("nothing yet") : fmt::format("{} ({})", traces::formatSize(total), parts);
    return fmt::format("the rank has {} of memory and holds {}; {} more do not fit", traces::formatSize(cap_), holds, traces::formatSize(bytes));
}

std::string MemoryLedger::overdrawn(Bytes bytes) const
{
    return fmt::format("the rank has {} of memory and came to hold {} more", traces::formatSize(cap_), traces::formatSize(bytes));
}

void MemoryLedger::remove(MemoryClass memory, Bytes bytes) noexcept
{
    bytes_[slot(memory)].fetch_sub(bytes, std::memory_order_relaxed);
    total_.fetch_sub(bytes, std::memory_order_relaxed);
    release();
}

void MemoryLedger::move(MemoryClass from, MemoryClass to, Bytes bytes) noexcept
{
    bytes_[slot(from)].fetch_sub(bytes, std::memory_order_relaxed);
    bytes_[slot(to)].fetch_add(bytes, std::memory_order_relaxed);
}

BytesByClass MemoryLedger::held() const noexcept
{
    BytesByClass result{};
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = bytes_[i].load(std::memory_order_relaxed);
    return result;
}

void MemoryLedger::watchPeak() noexcept
{
    const std::lock_guard lock(peakMutex_);
    watchedFrom_ = total_.load(std::memory_order_relaxed);
    peakTotal_.store(watchedFrom_, std::memory_order_relaxed);
}

std::optional<MemorySample> MemoryLedger::peak() const noexcept
{
    const std::lock_guard lock(peakMutex_);
    if (peakTotal_.load(std::memory_order_relaxed) <= watchedFrom_) return std::nullopt;
    return peak_;
}

} // namespace stagecraft::runtime
