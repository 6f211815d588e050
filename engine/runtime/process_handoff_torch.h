// SPDX-License-Identifier: Apache-2.0
//
// A hand-off whose other end may be in another process: what is for a stage of this process is put into a box here, all else is sent to
// the rank that holds the receiver and put into a box there. What arrives is memory of the receiving rank, a transfer's buffer until it is
// taken; where the rank is on a GPU, memory of the host that is nobody's, until an action fetches it. What a rank on a GPU gives goes
// through the host as well. Private to the runtime.
//
//   ProcessHandoff<Boundary> handoff(all, {...}, MailKind::Boundary, [&](const BoxAddress& box) { return schedule.rankOf(...); });
#pragma once

#include "engine/probe/memory_ledger.h"
#include "engine/runtime/host_outbox_torch.h"
#include "engine/runtime/process_run.h"
#include "engine/transport/local_handoff.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <vector>

namespace stagecraft::runtime {

struct HandoffSize {
    int stages = 0;
    int units = 0;
    int flows = 1;
};
struct HandoffPlace {
    RunControl& control;
    MemoryLedger& ledger;     // of the rank
    const RankDevice& device; // the same
    const Clock& clock;
};

// Boundary, at::Tensor for norms, or std::vector<at::Tensor> for the gradients of a stage.
template <class Payload>
class ProcessHandoff final : public Handoff<Payload>, private PostOffice::Receiver {
public:
    using OwnerOf = std::function<traces::Rank(const BoxAddress&)>;
    ProcessHandoff(ProcessRun& all, const HandoffSize& size, const HandoffPlace& place, MailKind kind, OwnerOf ownerOf);
    ~ProcessHandoff() override;

    TimeNs put(const BoxAddress& address, Payload payload, const Clock& clock) override;
    std::optional<Arrival<Payload>> take(const BoxAddress& address) override;
    [[nodiscard]] bool full(const BoxAddress& address) override { return boxes_.full(address); }
    void cancel() override { boxes_.cancel(); }

private:
    void send(int to, const BoxAddress& address, const std::vector<at::Tensor>& tensors);
    std::shared_ptr<void> prepare(int from, std::string_view text, std::span<const std::size_t> sizes, std::vector<std::span<std::byte>>& room) override;
    void arrived(int from, MailKind kind, const std::string& text, const std::shared_ptr<void>& prepared) override;
    void refused(int from, const std::exception_ptr& error) override;

    ProcessRun& all_;
    HandoffPlace place_;
    MailKind kind_;
    OwnerOf ownerOf_;
    LocalHandoff<Payload> boxes_;
    std::optional<HostOutbox> outbox_; // of boundaries of a rank on a GPU; last: its thread uses the others
};

} // namespace stagecraft::runtime
