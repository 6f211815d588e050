// SPDX-License-Identifier: Apache-2.0
//
// A schedule is data: for each rank the list of actions that it executes in order. Generators, validator, simulator, live
// runtime, importer and exporter share it, and its one text form: a line per rank, actions separated by commas, '#' lines
// are comments (PyTorch's CSV, see traces/base/action.h for the cells). A cell may also be a batch of transfers that are posted together,
// "(0SEND_F2;0RECV_B0)P2P" (batch.h), which PyTorch does not have.
//
//   Schedule s = generate({.name = "1f1b", .ranks = 4, .microbatches = 8}).value();
//   std::cout << toText(s);
#pragma once

#include "traces/base/action.h"
#include "traces/base/expected.h"
#include "traces/base/ids.h"

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::engine {

using traces::Action;
using traces::ActionKind;
using traces::Error;
using traces::Expected;
using traces::Flow;
using traces::MicroBatch;
using traces::Rank;
using traces::Stage;

// When the weights change, and which version of them a micro-batch goes by.
enum class UpdateRule : std::uint8_t {
    Flush,          // synchronous: once, after all micro-batches
    Stashed,        // asynchronous: every so often; a micro-batch keeps the weights of its forward for its backward (PipeDream)
    VerticalSync,   // asynchronous: the same on every stage, the newest version that the first had at its forward (PipeDream, optional)
    DoubleBuffered, // asynchronous: the same, and group k goes by the weights after update k-1 (PipeDream-2BW)
};

// How a family that is made of units goes on where there are more micro-batches than one unit has (Chimera, arXiv 2107.06925).
enum class Concatenation : std::uint8_t {
    Direct,   // the next unit's forwards where the last one's backwards leave room
    Doubling, // two micro-batches go forward at once, which takes about as long as a backward, and back one by one
    Halving,  // whole micro-batches go forward and come back in halves; a half is written as a slice
};

// Where activations go that an OFFLOAD takes off their rank.
enum class OffloadTo : std::uint8_t {
    Host,
    Partner, // rank p-1-r of rank r (BPipe)
};

struct Schedule {
    std::string name;
    int ranks = 0;
    int chunks = 1; // stages of one rank (v)
    int microbatches = 0;
    std::vector<Rank> stageToRank; // one entry per global stage; of two directions, the one that runs down
    std::vector<std::vector<Action>> order; // [rank][position]
    int slices = 1; // of a sequence: slice k of micro-batch i is numbered i * slices + k in actions
    // Two directions (DualPipe, Chimera): every rank holds stages of both, and each numbers its own micro-batches from 0.
    std::vector<Rank> upStageToRank = {}; // empty where there is one direction
    int upMicrobatches = 0;          // of all micro-batches, those that go up
    // Asynchronous schedules have an OPTIMIZER of a stage after each group of so many micro-batches; the last group takes the rest.
    UpdateRule updates = UpdateRule::Flush;
    int microbatchesPerUpdate = 0; // 0 for Flush
    OffloadTo offloadTo = OffloadTo::Host; // without meaning where nothing is offloaded

    [[nodiscard]] Rank partnerOf(Rank rank) const { return Rank{ranks - 1 - rank.value}; }
    [[nodiscard]] bool inference() const; // has forwards and no backward: activations are let go at the end of each
    [[nodiscard]] bool asynchronous() const { return updates != UpdateRule::Flush; }
    [[nodiscard]] int stages() const { return static_cast<int>(stageToRank.size()); }
    [[nodiscard]] bool twoDirections() const { return !upStageToRank.empty(); }
    [[nodiscard]] bool has(Flow flow) const { return twoDirections() == (flow != Flow::Single); }
    [[nodiscard]] Rank rankOf(Flow flow, Stage stage) const { return (flow == Flow::Up ? upStageToRank : stageToRank)[index(stage)]; }
    // How many numbers an action of that direction may have as its micro-batch.
    [[nodiscard]] int units(Flow flow) const
    {
        return (flow == Flow::Up ? upMicrobatches : microbatches - upMicrobatches) * slices;
    }
    // The directions that there are, for loops over all stages.
    [[nodiscard]] std::vector<Flow> flows() const;
    [[nodiscard]] std::size_t actionCount() const;
    bool operator==(const Schedule&) const = default;
};

// What a family that plans by itself goes by: times and sizes of each stage, and how much a rank may keep.
struct CostTable;

struct ScheduleRequest {
    std::string name = "1f1b";
    int ranks = 4;
    int chunks = 1;
    int microbatches = 8;
    int slices = 1;                   // of a sequence, for the families that cut sequences
    int group = 0;                    // micro-batches of a group, for families that go in groups; 0: the family's own
    Concatenation concatenation = Concatenation::Direct; // for families of units
    bool verticalSync = false;        // for families that stash versions of the weights: one version of a micro-batch on all stages
    double offload = 0;               // share of the activations that goes to the host for a while (offload.h)
    const CostTable* costs = nullptr; // for families that plan by costs; none: F, I and W take the same time, nothing to transfer
    std::int64_t memoryLimit = 0;     // bytes of activations of a rank, for the same; 0: the family's own
    std::stop_token stop = {};        // ends the making of a large schedule early, with an error; looked at once per rank
};

// What others call the same schedule.
struct ForeignName {
    std::string where; // "PyTorch", "Megatron-LM", "DeepSpeed", "paper", ...
    std::string name;  // "ScheduleGPipe"
};

// What a schedule needs and does, for lists, tooltips and error messages.
struct ScheduleFamily {
    std::string name;       // "1f1b", the word of plans and of the command line
    std::string title;      // "1F1B"
    std::string idea;       // one sentence
    std::string conditions; // "any p and m; one chunk per rank"
    std::string source;     // paper or framework
    int minChunks = 1;
    int maxChunks = 1;
    std::vector<ForeignName> elsewhere = {};
    bool plansByCosts = false; // goes by the costs and the memory limit of a request; the others leave them alone
    bool cutsSequences = false; // takes more than one slice
    bool goesInGroups = false;  // takes the size of a group of micro-batches
    bool concatenates = false;  // is made of units, which can follow each other in more ways than one
    bool stashesVersions = false; // keeps the weights of each forward, and takes vertical sync
    bool takesOffload = true;   // its activations can go to the host: they wait for a backward, and it does not move them itself
    bool asynchronous = false;  // its weights change while micro-batches are in flight, see weight_versions.h
};

// The schedules that generate() knows, in the order of the command line contract.
const std::vector<ScheduleFamily>& scheduleFamilies();
const ScheduleFamily* findFamily(std::string_view name);

// Limits of every request: ranks, chunks and micro-batches at least 1, stages at most kMaxStages and actions at most
// kMaxActions, so that a typing error does not take the machine's memory.
inline constexpr int kMaxStages = 16384;
inline constexpr int kMaxSlices = 1024; // of a sequence
inline constexpr long long kMaxActions = 20'000'000;

// An error names the schedule, the value that it cannot take, why, and the nearest value that it can.
Expected<Schedule> generate(const ScheduleRequest& request);
// The same judgement without making the schedule: constant time, for a control that asks at every key.
Expected<void> checkRequest(const ScheduleRequest& request);

// Rank of each stage when chunks are laid around the ranks in a loop: stage g on rank g mod p (Megatron, PyTorch).
std::vector<Rank> loopPlacement(int ranks, int chunks);
// The same there and back: every second chunk runs from the last rank to the first, so that both stages at a turn lie on one
// rank ("V" with two chunks, ZB-V arXiv 2401.10241 sec. 6; waves with more, Hanayo arXiv 2308.15762).
std::vector<Rank> wavePlacement(int ranks, int chunks);

std::string toText(const Schedule& schedule);

// Reads the text form. Ranks are the lines; stages and micro-batches follow from the actions, and a stage lies on the rank
// where it first appears. Some comment lines say what actions cannot: "# slices K", that sequences are cut into K slices,
// "# updates G stashed", "# updates G vertical-sync" or "# updates G double-buffered", that the weights change after every G micro-batches, and "# offload to
// partner", that OFFLOAD goes to rank p-1-r.
// DeepSpeed's instruction lists are read as well, known by their brackets (deepspeed.h).
// Errors name line, cell and what was expected. The result may still be illegal: see validate.h.
Expected<Schedule> parseSchedule(std::string_view text, std::string name = "custom");

} // namespace stagecraft::engine
