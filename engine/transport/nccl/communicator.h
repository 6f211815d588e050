// SPDX-License-Identifier: Apache-2.0
//
// One rank's end of a clique (clique.h). Memory and streams are CUDA's, as plain pointers: nothing here looks into them.
//
//   NcclCommunicator& own = clique.of(rank);
//   own.warmUp(peers, twoBytes, stream);                                     // before anything is timed
//   own.exchange("0SEND_F1", {{NcclPart::Side::Send, 1, activation, bytes}, {NcclPart::Side::Receive, 1, gradient, bytes}}, stream);
//   record(event, stream);                                                   // behind the exchange, see below
//   own.track("0SEND_F1", [event] { return cudaEventQuery(event) == cudaSuccess; });
//
// All exchanges of a clique follow one order (engine/schedule/transfer_order.h). They are issued by one thread for each device, always
// the same, for all communicators of that device: NCCL does not order what two threads issue to one device.
//
// The communicators do not block: what NCCL is asked for goes on the stream from a thread of its own, after its call has returned
// ncclInProgress (ncclGroupEnd starts one for each group, group.cc). Each function here returns when it is on the stream and no sooner, so
// an event that is recorded then stands behind it. It has not been carried out by then.
#pragma once

#include "engine/transport/nccl/call_gate.h"
#include "engine/transport/nccl/nccl_context.h"

#include <atomic>
#include <deque>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>

namespace stagecraft::runtime {

struct NcclPart {
    enum class Side : std::uint8_t { Send, Receive };
    Side side = Side::Send;
    int peer = 0; // may be the rank itself: then its other side is in the same exchange
    void* buffer = nullptr;
    std::size_t bytes = 0;
};

enum class NcclType : std::uint8_t { Float32, Float64, Float16, BFloat16, Int64 };
enum class NcclReduction : std::uint8_t { Sum, Mean };

struct NcclAllReduce {
    const void* from = nullptr;
    void* to = nullptr; // may be the same
    std::size_t count = 0;
    NcclType type = NcclType::Float32;
    NcclReduction reduction = NcclReduction::Sum;
};

class NcclCommunicator {
public:
    // Large groups hang (pytorch/pytorch#174288, from about 256), and nobody here needs them.
    static constexpr std::size_t kMostParts = 16;

    // `known`: as what messages and faults name it; it may be another number than that in the clique.
    NcclCommunicator(NcclContext& context, int rank, int size, int known) : context_(context), rank_(rank), size_(size), known_(known) {}
    NcclCommunicator(const NcclCommunicator&) = delete;
    NcclCommunicator& operator=(const NcclCommunicator&) = delete;

    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] int size() const { return size_; }

    // The parts are carried out as one. `what` is for messages. After an error all communicators of the clique are ended.
    Expected<void> exchange(std::string_view what, std::span<const NcclPart> parts, void* stream);
    Expected<void> exchange(std::string_view what, std::initializer_list<NcclPart> parts, void* stream)
    {
        return exchange(what, std::span(parts.begin(), parts.size()), stream);
    }
    // Of all ranks, carried out as one; all call it in the same order, with as many values.
    Expected<void> allReduce(std::string_view what, std::span<const NcclAllReduce> all, void* stream);
    Expected<void> allReduce(std::string_view what, std::initializer_list<NcclAllReduce> all, void* stream)
    {
        return allReduce(what, std::span(all.begin(), all.size()), stream);
    }

    // NCCL connects two ranks when they first exchange something, and waits for both (NVIDIA/nccl#783): here, one byte each way with each
    // of the peers, in an order that all ranks share. `twoBytes` lie on the device.
    Expected<void> warmUp(std::span<const int> peers, void* twoBytes, void* stream);

    // What was put on the stream, for the watchdog to see it done: in the order of the stream.
    void track(std::string what, std::function<bool()> done);

private:
    friend class NcclClique;
    struct Tracked {
        std::string what;
        std::function<bool()> done;
        int generation = 0;
    };

    // Of the clique's one thread.
    NcclResult begin(const NcclId& id, int generation);
    void opened(); // NCCL has the communicator
    Expected<void> settle(std::string_view doing, NcclResult result, TimeNs patience);
    NcclResult finalize();
    void destroy();
    void end(); // any thread
    // Of the watchdog's.
    void look();
    void lookAtErrors(int generation);
    void lookAtProgress(int generation);

    template <class Calls>
    Expected<void> call(std::string_view doing, Calls&& calls);
    [[nodiscard]] Expected<void> checkCount(std::size_t parts) const;
    Expected<void> checkParts(std::span<const NcclPart> parts) const;
    Expected<void> checkThread();
    [[nodiscard]] Error ended() const;
    [[nodiscard]] Error fail(const std::string& text);
    [[nodiscard]] std::string named() const { return "rank " + std::to_string(known_); }

    NcclContext& context_;
    const int rank_;
    const int size_;
    const int known_;
    CallGate gate_; // open while there is a communicator
    std::atomic<void*> handle_{nullptr};
    std::atomic<int> generation_{0};
    std::atomic<std::thread::id> issuer_{};
    std::mutex mutex_; // guards tracked_
    std::deque<Tracked> tracked_;
    TimeNs movedAt_ = 0; // of the watchdog's thread: when the first of them became that
    const Tracked* first_ = nullptr;
};

} // namespace stagecraft::runtime
