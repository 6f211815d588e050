// SPDX-License-Identifier: Apache-2.0
//
// What a session says and is told, as JSON objects of one line: messages come inside SessionRecords of the stream,
// commands go to a worker's standard input, one a line.
//
//   {"message":"state","state":"running"}
//   {"message":"progress","text":"step 3 of 5","fraction":0.6}
//   {"message":"failure","text":"...","rank":1,"stage":1,"microbatch":3,"step":0}
//   {"message":"result","result":{...}}                      the object of `run --json`
//   {"command":"start","plan":{...}}   {"command":"pause"}   {"command":"resume"}   {"command":"stop"}   {"command":"quit"}
//   {"command":"trouble","stage":1,"factor":2.5,"held":true}      factor or held, or both
#pragma once

#include "engine/plan/plan.h"
#include "engine/session/session.h"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stagecraft::engine {

struct StateMessage {
    SessionState state = SessionState::Idle;
    bool operator==(const StateMessage&) const = default;
};
struct ProgressMessage {
    std::string text;
    double fraction = 0; // 0..1
    bool operator==(const ProgressMessage&) const = default;
};
struct FailureMessage {
    std::string text; // what failed, where, and what to do
    std::optional<int> rank;
    std::optional<int> stage;
    std::optional<int> microbatch;
    std::optional<int> step;
    bool operator==(const FailureMessage&) const = default;
};

enum class GradientCheck : std::uint8_t { Off, Bitwise, Tolerance, Failed };
std::string_view gradientCheckText(GradientCheck check); // "off", "bitwise", "tolerance", "failed"

// How fast a run was, by its middle step. FLOPs are the model's, forward and backward, whatever is computed again; the peak is that of one
// thread's matrix product on the same machine (engine/probe/matmul_peak.h), and a rank has one thread.
struct Throughput {
    double samplesPerSecond = 0;
    double tokensPerSecond = 0; // 0: the model takes no tokens
    double flopsPerSecond = 0;
    double peakFlopsPerSecond = 0; // of one rank
    double utilisation = 0;        // flopsPerSecond / (peak of all ranks)
    bool operator==(const Throughput&) const = default;
};

// Of a run that learned a text.
struct TextLearned {
    double entropy = 0;  // of its tokens one by one, in nats: the loss of whoever knows nothing but how often each comes
    std::string before;  // what the model would write: the begin of the text, and on from there
    std::string after;   // the steps
    bool operator==(const TextLearned&) const = default;
};

// What a stage keeps of a micro-batch from its forward to its backward (of a slice of one, the largest), as the run's activations ask.
struct StageActivations {
    Bytes saved = 0;      // what autograd saved, each block once, without weights and the run's data
    Bytes forWeights = 0; // what of it, and of the gradients, a weight gradient of its own waits with
    Bytes booked = 0;     // what the allocator had booked as activations behind the forward and not before it
    bool operator==(const StageActivations&) const = default;
};
// The most that a rank kept of what autograd saved, of all micro-batches in flight, wherever it lay; and what the order of its actions
// makes of the stages' figures.
struct RankActivations {
    Bytes peak = 0;
    std::optional<Bytes> predicted; // nothing where activations are computed again
    bool operator==(const RankActivations&) const = default;
};

// What a run measured; times in ns, virtual when emulated. The figures of each rank come from the trace.
struct RunResult {
    std::string mode;
    std::string device;
    int steps = 0;              // completed
    TimeNs stepNs = 0;          // of the middle step; the first is left out where there are three or more
    TimeNs predictedStepNs = 0; // simulated from this run's median costs and hand-off times
    TimeNs idealStepNs = 0;     // the same without hand-off cost
    double efficiency = 0;      // idealStepNs / stepNs
    std::vector<double> loss;   // one per step
    std::vector<std::vector<std::int64_t>> outputs; // shape of the last stage's output over the whole batch of a step
    GradientCheck gradientCheck = GradientCheck::Off;
    double gradientMaxAbsDiff = 0;
    std::optional<TextLearned> text;
    Throughput throughput;
    std::vector<StageCosts> measuredCosts; // medians per stage, to be taken over into a plan
    TimeNs measuredTransferNs = 0;         // median hand-off
    // By stage and by rank; empty unless the plan's run.activations is saved-tensors.
    std::vector<StageActivations> stageActivations;
    std::vector<RankActivations> rankActivations;
    bool operator==(const RunResult&) const = default;
};
struct ResultMessage {
    RunResult result;
    bool operator==(const ResultMessage&) const = default;
};

using SessionMessage = std::variant<StateMessage, ProgressMessage, FailureMessage, ResultMessage>;
std::string writeMessage(const SessionMessage& message);
Expected<SessionMessage> readMessage(std::string_view json);

enum class CommandKind : std::uint8_t { Start, Pause, Resume, Stop, Trouble, Quit };
struct SessionCommand {
    CommandKind kind = CommandKind::Stop;
    Plan plan; // Start only
    StageTrouble trouble = {}; // Trouble only
    bool operator==(const SessionCommand&) const = default;
};
std::string writeCommand(const SessionCommand& command); // one line, without the line end
Expected<SessionCommand> readCommand(std::string_view line);
// Whether a line that readCommand() refuses is a start all the same: whoever sent it waits for a run.
bool asksForRun(std::string_view line);

} // namespace stagecraft::engine
