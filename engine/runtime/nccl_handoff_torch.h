// SPDX-License-Identifier: Apache-2.0
//
// The hand-off by NCCL, of processes that have a GPU each: what is for another rank is exchanged in the order that all ranks share
// (engine/schedule/transfer_order.h), on a stream of its own. putting is a word alone: the exchanges are issued by passed(),
// between the actions where the order has them. What stays on its rank goes through boxes.
//
//   rank 0   0F0 .   0F1 . .                    passed(1): >0F0     passed(2): >0F1
//   stream        >0F0    >0F1
//   stream   <0F0    <0F1                       passed(0): <0F0     passed(1): <0F1
//   rank 1         1F0     1F1
//
// A rank takes what is there: its streams never wait for another rank, which may be paused or held, and so no action of it does.
//
// What a tensor looks like its receiver hears by mail when the first of its kind is put; from then on it has the same form in each step.
// Of the rank's thread, but for mail. Private to the runtime.
//
//   NcclHandoff handoff(all, schedule, {link.communicator(), order}, {control, ledger, device, clock});
//   handoff.meetPeers();                                   // before anything is timed
//   handoff.passed(0); ... handoff.put(...); handoff.passed(1); ...; handoff.settle();
#pragma once

#include "engine/runtime/device_watch.h"
#include "engine/runtime/process_handoff_torch.h"
#include "engine/runtime/run_recorder.h"
#include "engine/schedule/transfer_order.h"
#include "engine/transport/nccl/communicator.h"

#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace stagecraft::runtime {

// Neither is owned.
struct NcclWay {
    NcclCommunicator& communicator;
    const engine::TransferOrder& order; // of all ranks
    DeviceWatch* watch = nullptr;
};

// What went over the stream and when, onto the rank's ring: for kernels of NCCL, which do not tell whose they are. Of the rank's thread.
class ExchangeBook {
public:
    ExchangeBook() = default; // keeps none
    ExchangeBook(EventRing<RunEvent>& ring, traces::Step first) : ring_(&ring), step_(first.value - 1) {}

    [[nodiscard]] bool kept() const { return ring_ != nullptr; }
    void beginStep() { ++step_.value; }
    void add(const traces::Action& exchange, DeviceMark begin, DeviceMark end) { asked_.push_back({step_, exchange, std::move(begin), std::move(end)}); }
    void settle();    // what is over
    void settleAll(); // waits; what is asked first is over first

private:
    struct Asked {
        traces::Step step{};
        traces::Action exchange{};
        DeviceMark begin{};
        DeviceMark end{};
    };
    void put(const Asked& asked) { ring_->push(exchangeEvent(asked.step, asked.exchange, {asked.begin->time(), asked.end->time()})); }

    EventRing<RunEvent>* ring_ = nullptr;
    traces::Step step_{};
    std::deque<Asked> asked_;
};

class NcclHandoff final : public Handoff<Boundary>, private PostOffice::Receiver {
public:
    NcclHandoff(ProcessRun& all, const engine::Schedule& schedule, const NcclWay& way, const HandoffPlace& place, ExchangeBook book = {});
    ~NcclHandoff() override; // waits for its stream

    // Connects it with the ranks that it will meet. Throws what went wrong.
    void meetPeers();
    // Whether all exchanges of the step are over; and once all are issued, waits until they are.
    [[nodiscard]] bool through() const;
    void waitThrough() const;

    TimeNs put(const BoxAddress& address, Boundary payload, const Clock& clock) override;
    std::optional<Arrival<Boundary>> take(const BoxAddress& address) override;
    [[nodiscard]] bool full(const BoxAddress& address) override;
    void passed(std::size_t actions) override;
    void settle() override;
    void cancel() override { boxes_.cancel(); }

private:
    struct Received {
        Boundary boundary;
        DeviceMark behind; // what this rank had sent by then, when it was made: the stream comes to what it receives after that
    };
    struct Sent {
        DeviceMark gone;
        at::Tensor tensor;
    };
    void arrived(int from, MailKind kind, const std::string& text, const std::shared_ptr<void>& prepared) override;
    void tellForm(const BoxAddress& address, const at::Tensor& tensor);
    std::string awaitForm(const BoxAddress& address); // empty where the run ends
    void issue(const engine::TransferGroup& group);
    void awaitOwn(const DeviceMark& made) const;
    [[nodiscard]] DeviceWatch::Wait awaitingOthers() const;
    void letGoOfSent();
    [[nodiscard]] bool stays(const BoxAddress& address) const;

    ProcessRun& all_;
    const engine::Schedule& schedule_;
    NcclCommunicator& communicator_;
    const engine::TransferOrder& order_;
    const std::vector<engine::TransferGroup>& groups_; // of the rank
    DeviceWatch* const watch_; // may be null
    HandoffPlace place_;
    c10::Stream stream_;
    ExchangeBook book_;
    std::size_t next_ = 0; // of groups_, in this step
    LocalHandoff<Boundary> boxes_;
    std::map<BoxAddress, Boundary> given_;    // to be sent
    std::map<BoxAddress, Received> received_; // to be taken
    std::deque<Sent> sent_;                   // perhaps on their way
    DeviceMark made_;                         // what was sent last
    DeviceMark last_;                         // the end of the exchange that was issued last
    std::vector<at::Tensor> inQuestion_;      // of an exchange that failed: NCCL may use them until the stream is over
    std::map<BoxAddress, std::string> told_;  // forms
    std::mutex mutex_;                        // guards forms_
    std::map<BoxAddress, std::string> forms_; // of the others'
};

} // namespace stagecraft::runtime
