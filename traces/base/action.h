// SPDX-License-Identifier: Apache-2.0
//
// An action: one thing that a rank does for one micro-batch on one stage. Schedules are lists of actions, slices of a
// trace are actions with a time. The text form is PyTorch's (torch.distributed.pipelining schedules.py) where it has one:
// "0F0", "2I3", "1W4", "3B1" (full backward = I + W), "3SEND_F1", "1UNSHARD", "(0F1;3B0)OVERLAP_F_B"; beyond it a leading
// d or u names the direction of a two-direction schedule ("u3B1"), and there are "0OFFLOAD2", "0RELOAD2", "0RECOMPUTE2",
// "0ALL_REDUCE", "0OPTIMIZER".
//
//   Action a = parseAction("0F1").value();
//   toText(forward(Stage{0}, MicroBatch{1})) == "0F1"
#pragma once

#include "traces/base/expected.h"
#include "traces/base/ids.h"

#include <array>
#include <string>
#include <string_view>

namespace stagecraft::traces {

enum class ActionKind : std::uint8_t {
    None, // an empty cell, or a slice that is no action (its text names it)
    Forward,
    Backward,    // full backward: InputGrad and WeightGrad in one
    InputGrad,   // dgrad, the Zero-Bubble papers' "B"
    WeightGrad,  // wgrad
    Overlap,     // a forward and a backward executed together: `work` and `partner`
    SendForward, // activation to the next stage
    RecvForward,
    SendBackward, // gradient to the previous stage
    RecvBackward,
    Recompute,
    Offload,
    Reload,
    Unshard,
    Reshard,
    ReduceGrad,
    AllReduce,
    Optimizer,
};
inline constexpr int kActionKindCount = static_cast<int>(ActionKind::Optimizer) + 1;

// Direction of a two-direction schedule (DualPipe, Chimera); each direction counts stages from its own input.
enum class Flow : std::uint8_t { Single, Down, Up };

struct Work {
    ActionKind kind = ActionKind::None;
    Flow flow = Flow::Single;
    Stage stage{};
    MicroBatch microbatch = kNoMicroBatch;

    constexpr auto operator<=>(const Work&) const = default;
};
static_assert(sizeof(Work) == 8);

struct Action {
    Work work{};    // for Overlap: kind is Overlap, stage and micro-batch are those of the forward part
    // for Overlap: the backward part (Backward, or InputGrad); for a SEND or RECV: the one behind it that its rank posts together with
    // it, if any (engine/schedule/batch.h); else None
    Work partner{};

    [[nodiscard]] constexpr ActionKind kind() const { return work.kind; }
    [[nodiscard]] constexpr Stage stage() const { return work.stage; }
    [[nodiscard]] constexpr MicroBatch microbatch() const { return work.microbatch; }
    constexpr auto operator<=>(const Action&) const = default;
};
static_assert(sizeof(Action) == 16);

constexpr Action makeAction(ActionKind kind, Stage stage, MicroBatch microbatch = kNoMicroBatch, Flow flow = Flow::Single)
{
    return Action{Work{kind, flow, stage, microbatch}, Work{}};
}
constexpr Action forward(Stage s, MicroBatch i) { return makeAction(ActionKind::Forward, s, i); }
constexpr Action backward(Stage s, MicroBatch i) { return makeAction(ActionKind::Backward, s, i); }
constexpr Action inputGrad(Stage s, MicroBatch i) { return makeAction(ActionKind::InputGrad, s, i); }
constexpr Action weightGrad(Stage s, MicroBatch i) { return makeAction(ActionKind::WeightGrad, s, i); }
// A forward and a backward (Backward or InputGrad) executed together.
constexpr Action overlapped(const Work& forward, const Work& backward)
{
    return Action{{ActionKind::Overlap, forward.flow, forward.stage, forward.microbatch}, backward};
}

// F, B, I, W, OVERLAP, recompute: what counts as busy. The optimizer step counts as well; communication does not.
constexpr bool isCompute(ActionKind kind)
{
    return (kind >= ActionKind::Forward && kind <= ActionKind::Overlap) || kind == ActionKind::Recompute ||
           kind == ActionKind::Optimizer;
}
constexpr bool isTransfer(ActionKind kind) { return kind >= ActionKind::SendForward && kind <= ActionKind::RecvBackward; }

// "F", "B", "SEND_F", "OVERLAP_F_B", ...; empty for None.
std::string_view kindText(ActionKind kind);
// "forward", "full backward", "weight gradient", ...: for people.
std::string_view kindName(ActionKind kind);

std::string toText(const Action& action);
void appendText(std::string& out, const Action& action);

// Surrounding blanks are allowed; an empty cell is an action of kind None. Errors quote the cell and say what was expected.
Expected<Action> parseAction(std::string_view cell);

} // namespace stagecraft::traces
