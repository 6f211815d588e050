// SPDX-License-Identifier: Apache-2.0
//
// From the events of ranks to the records of a trace: numbers lanes and slices, finds the producer of each input, lays
// hand-offs that overlap on lanes of their own, and leaves out memory values that did not change. Pure; one thread.
//
// The ranks of replica j come behind those of replica j - 1; each replica hands over within itself.
//
// Edges come after both of their slices and, for each consumer's lane, in the order of its slices (Trace::addEdge asks
// for that): an edge whose producer has not come yet holds back the later edges of its lane.
#pragma once

#include "engine/probe/cupti/device_lanes.h"
#include "engine/probe/operator_span.h"
#include "engine/runtime/boundary.h"
#include "engine/runtime/run_event.h"
#include "engine/schedule/schedule.h"
#include "traces/store/record.h"

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

namespace stagecraft::runtime {

class RecordBuilder final : public RecordNumbers {
public:
    // `schedule` gives ranks and the place of each stage, and stays where it is.
    // `only`: the one rank whose events come, where the others are in processes of their own: what it takes from them is then a RECV,
    // of no length, at the moment when it was there (traces/analysis/merge_ranks.h puts the two sides together).
    explicit RecordBuilder(const engine::Schedule& schedule, int replicas = 1, std::optional<traces::Rank> only = {});

    // The lanes: to be put into the stream before the first event.
    void begin(std::vector<traces::Record>& out);
    // Events of one rank come in the order in which its thread made them.
    void add(traces::Rank rank, const RunEvent& event, std::vector<traces::Record>& out);
    void add(const OperatorBatch& batch, std::vector<traces::Record>& out); // the same
    // Of others who write into the same stream, on the same thread.
    traces::LaneId addLane(traces::LaneInfo info, std::vector<traces::Record>& out) override;
    traces::TextId addText(std::string text, std::vector<traces::Record>& out) override;
    // All events of the step are in. Edges that still miss their producer, because it was lost, are let go.
    void endStep(traces::Step step, std::vector<traces::Record>& out);

private:
    // What somebody waits for.
    enum class Product : std::uint8_t {
        Output,    // of a replica: what lies in the box
        Gradients, // of a rank: its last of a stage, which the box names
        Sum,       // of a rank: the last of its sums of a stage's gradients
        Meeting,   // of all ranks: what the last of them brought
        Weights,   // of a rank: what an UNSHARD of the stage in the box gathers, the how many-th of the step is its micro-batch
    };
    static constexpr std::size_t kCopyLanes = 4; // off the rank, back, and the same of what a partner keeps here
    struct Producer {
        traces::Step step{};
        Product product = Product::Output;
        int of = 0; // replica or rank
        BoxAddress box;
        auto operator<=>(const Producer&) const = default;
    };
    struct WaitingEdge {
        std::variant<Producer, traces::SliceRef> from; // a slice that is there already, as a RELOAD before its backward
        traces::SliceRef consumer{};
        TimeNs ready = 0;
    };
    // Of an all-reduce of all ranks: who came last so far, and with what.
    struct Meeting {
        int ranks = 0;
        TimeNs came = 0;
        traces::SliceRef broughtBy{};
    };
    struct TransferLane {
        traces::LaneId id{};
        TimeNs lastEnd = 0;
    };
    struct RankLanes {
        traces::LaneId compute{};
        std::optional<traces::LaneId> beside;      // of what runs together with something else
        std::optional<traces::LaneId> collectives; // sums of gradients
        std::array<std::optional<traces::LaneId>, kCopyLanes> copies;
        std::array<std::optional<traces::LaneId>, 2> operators; // of the rank's thread, and of the one beside
        std::optional<traces::LaneId> exchanges; // by NCCL
        std::vector<TransferLane> transfers; // by depth
        // Of slices that compute, and of those of collectives.
        std::deque<WaitingEdge> waiting;
        std::deque<WaitingEdge> collectivesWaiting;
        std::optional<BytesByClass> memory;
        traces::SliceRef computed{};     // last
        std::optional<WaitingEdge> after; // a meeting: what it computes next has waited for that
    };

    void addAction(traces::Rank rank, const RunEvent& event, std::vector<traces::Record>& out);
    void addWait(traces::Rank rank, const RunEvent& event, std::vector<traces::Record>& out);
    void addCopy(traces::Rank rank, const RunEvent& event, std::vector<traces::Record>& out);
    traces::SliceRef addToCopyLane(traces::Rank rank, std::size_t which, const traces::Slice& slice, std::vector<traces::Record>& out);
    void addTransfer(traces::Rank rank, const RunEvent& event, std::vector<traces::Record>& out);
    traces::SliceRef addReceive(traces::Rank rank, const RunEvent& event, std::vector<traces::Record>& out);
    traces::SliceRef layTransfer(traces::Rank rank, const traces::Slice& slice, std::vector<traces::Record>& out);
    void addExchange(traces::Rank rank, const RunEvent& event, std::vector<traces::Record>& out);
    void addMemory(traces::Rank rank, const RunEvent& event, std::vector<traces::Record>& out);
    void settle(std::deque<WaitingEdge>& waiting, std::vector<traces::Record>& out);
    void linkReplicas(traces::Rank rank, const RunEvent& event, traces::SliceRef slice);
    void linkWeights(traces::Rank rank, const RunEvent& event, traces::SliceRef slice);
    [[nodiscard]] std::string nameOf(std::size_t rank) const;
    [[nodiscard]] int replicaOf(traces::Rank rank) const { return rank.value / schedule_.ranks; }
    void meet(traces::Rank rank, const RunEvent& event);
    traces::SliceRef addSlice(traces::LaneId lane, const traces::Slice& slice, std::vector<traces::Record>& out);
    [[nodiscard]] traces::LaneId collectivesOf(traces::Rank rank, std::vector<traces::Record>& out);
    [[nodiscard]] traces::LaneId laneOf(traces::Rank rank, const RunEvent& event, std::vector<traces::Record>& out);

    const engine::Schedule& schedule_;
    std::optional<traces::Rank> only_;
    std::vector<RankLanes> ranks_;
    std::vector<std::uint32_t> slices_; // per lane: how many so far
    std::map<traces::Step, Meeting> meetings_; // to which not all have come
    std::vector<std::string> texts_;    // so far; the first has number 1
    std::unordered_map<const char*, traces::TextId> operatorTexts_;
    std::map<Producer, traces::SliceRef> produced_; // outputs that nobody took yet, and gradients and sums of the steps that go on
    struct Copy {
        traces::SliceRef slice{};
        TimeNs end = 0;
    };
    std::map<std::tuple<traces::Step, traces::Rank, traces::Work>, int> weightMoves_; // UNSHARDs and RESHARDs of the step so far
    std::map<std::tuple<traces::Step, int, traces::Work>, Copy> copied_; // OFFLOADs and RELOADs of the step, by replica
};

} // namespace stagecraft::runtime
