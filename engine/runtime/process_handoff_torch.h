// SPDX-License-Identifier: Apache-2.0
//
// A hand-off whose other end may be in another process: what is for a stage of this process is put into a box here, all else is sent to
// the rank that holds the receiver and put into a box there. What arrives is memory of the receiving rank, a transfer's buffer until it is
// taken. Private to the runtime.
//
//   ProcessHandoff<Boundary> handoff(all, {...}, MailKind::Boundary, [&](const BoxAddress& box) { return schedule.rankOf(...); });
#pragma once

#include "engine/probe/memory_ledger.h"
#include "engine/runtime/process_run.h"
#include "engine/transport/local_handoff.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace stagecraft::runtime {

// Boundary, at::Tensor for norms, or std::vector<at::Tensor> for the gradients of a stage.
template <class Payload>
class ProcessHandoff final : public Handoff<Payload>, private PostOffice::Receiver {
public:
    struct Size {
        int stages = 0;
        int units = 0;
        int flows = 1;
    };
    struct Place {
        RunControl& control;
        MemoryLedger& ledger; // of the rank
        const Clock& clock;
    };
    using OwnerOf = std::function<traces::Rank(const BoxAddress&)>;
    ProcessHandoff(ProcessRun& all, const Size& size, const Place& place, MailKind kind, OwnerOf ownerOf);
    ~ProcessHandoff() override;

    TimeNs put(const BoxAddress& address, Payload payload, const Clock& clock) override;
    std::optional<Arrival<Payload>> take(const BoxAddress& address) override;
    [[nodiscard]] bool full(const BoxAddress& address) override { return boxes_.full(address); }
    void cancel() override { boxes_.cancel(); }

private:
    std::shared_ptr<void> prepare(int from, std::string_view text, std::span<const std::size_t> sizes, std::vector<std::span<std::byte>>& room) override;
    void arrived(int from, MailKind kind, const std::string& text, const std::shared_ptr<void>& prepared) override;
    void refused(int from, const std::exception_ptr& error) override;

    ProcessRun& all_;
    Place place_;
    MailKind kind_;
    OwnerOf ownerOf_;
    LocalHandoff<Payload> boxes_;
};

} // namespace stagecraft::runtime
