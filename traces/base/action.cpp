// SPDX-License-Identifier: Apache-2.0
#include "traces/base/action.h"

#include "traces/base/text.h"

#include <charconv>
#include <limits>

namespace stagecraft::traces {
namespace {

struct KindWords {
    ActionKind kind;
    std::string_view text;
    std::string_view name;
    bool takesMicroBatch;
};

// Longest texts first where one begins with another: the parser takes the first that matches.
constexpr std::array<KindWords, kActionKindCount> kKinds{{
    {ActionKind::SendForward, "SEND_F", "send of an activation", true},
    {ActionKind::RecvForward, "RECV_F", "receipt of an activation", true},
    {ActionKind::SendBackward, "SEND_B", "send of a gradient", true},
    {ActionKind::RecvBackward, "RECV_B", "receipt of a gradient", true},
    {ActionKind::Recompute, "RECOMPUTE", "recompute", true},
    {ActionKind::Offload, "OFFLOAD", "offload of activations", true},
    {ActionKind::Reload, "RELOAD", "reload of activations", true},
    {ActionKind::Unshard, "UNSHARD", "gathering of weights", false},
    {ActionKind::Reshard, "RESHARD", "release of gathered weights", false},
    {ActionKind::ReduceGrad, "REDUCE_GRAD", "reduction of gradients", false},
    {ActionKind::AllReduce, "ALL_REDUCE", "all-reduce", false},
    {ActionKind::Optimizer, "OPTIMIZER", "optimizer step", false},
    {ActionKind::Forward, "F", "forward", true},
    {ActionKind::Backward, "B", "backward", true},
    {ActionKind::InputGrad, "I", "input gradient", true},
    {ActionKind::WeightGrad, "W", "weight gradient", true},
    {ActionKind::Overlap, "OVERLAP_F_B", "overlapped forward and backward", true},
    {ActionKind::None, "", "", false},
}};

const KindWords& words(ActionKind kind)
{
    for (const KindWords& w : kKinds)
        if (w.kind == kind) return w;
    return kKinds.back();
}

// Takes a leading decimal number off `text`; false when there is none or it exceeds `most`.
bool takeNumber(std::string_view& text, std::int32_t most, std::int32_t& number)
{
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || number < 0 || number > most) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

Error badCell(std::string_view cell, std::string_view why)
{
    return Error{"action \"" + std::string(cell) + "\": " + std::string(why) +
                 "; expected a form such as 0F0, 2I3, 1W4, 3B1, 3SEND_F1 or (0F1;3B0)OVERLAP_F_B"};
}

Expected<Work> parseWork(std::string_view cell)
{
    std::string_view rest = trimmed(cell);
    Work work;
    if (rest.starts_with('d') || rest.starts_with('u')) {
        work.flow = rest.front() == 'd' ? Flow::Down : Flow::Up;
        rest.remove_prefix(1);
    }
    std::int32_t stage = 0;
    if (!takeNumber(rest, std::numeric_limits<std::int16_t>::max(), stage))
        return badCell(cell, "it does not begin with a stage number from 0 to 32767");
    work.stage = Stage{stage};
    for (const KindWords& w : kKinds) {
        if (w.kind == ActionKind::None || w.kind == ActionKind::Overlap || !rest.starts_with(w.text)) continue;
        std::string_view number = rest.substr(w.text.size());
        work.kind = w.kind;
        if (number.empty()) {
            if (w.takesMicroBatch) return badCell(cell, "the micro-batch number is missing");
            return work;
        }
        std::int32_t microbatch = 0;
        if (!takeNumber(number, std::numeric_limits<std::int32_t>::max(), microbatch) || !number.empty())
            return badCell(cell, "\"" + std::string(rest.substr(w.text.size())) + "\" is no micro-batch number");
        work.microbatch = MicroBatch{microbatch};
        return work;
    }
    return badCell(cell, "\"" + std::string(rest) + "\" is no known kind of action");
}

void appendWork(std::string& out, const Work& work)
{
    if (work.flow != Flow::Single) out += work.flow == Flow::Down ? 'd' : 'u';
    out += std::to_string(work.stage.value);
    out += words(work.kind).text;
    if (work.microbatch != kNoMicroBatch) out += std::to_string(work.microbatch.value);
}

} // namespace

std::string_view kindText(ActionKind kind) { return words(kind).text; }
std::string_view kindName(ActionKind kind) { return words(kind).name; }

void appendText(std::string& out, const Action& action)
{
    if (action.kind() == ActionKind::None) return;
    if (action.kind() != ActionKind::Overlap) {
        appendWork(out, action.work);
        return;
    }
    Work ahead = action.work;
    ahead.kind = ActionKind::Forward;
    out += '(';
    appendWork(out, ahead);
    out += ';';
    appendWork(out, action.partner);
    out += ")OVERLAP_F_B";
}

std::string toText(const Action& action)
{
    std::string out;
    appendText(out, action);
    return out;
}

Expected<Action> parseAction(std::string_view cell)
{
    const std::string_view text = trimmed(cell);
    if (text.empty()) return Action{};
    if (!text.starts_with('(')) {
        Expected<Work> work = parseWork(text);
        if (!work.ok()) return work.error();
        return Action{work.value(), Work{}};
    }
    const std::size_t middle = text.find(';');
    const std::size_t close = text.find(')');
    if (middle == std::string_view::npos || close == std::string_view::npos || close < middle ||
        trimmed(text.substr(close + 1)) != "OVERLAP_F_B")
        return badCell(cell, "an overlapped pair has the form (forward;backward)OVERLAP_F_B");
    Expected<Work> ahead = parseWork(text.substr(1, middle - 1));
    if (!ahead.ok()) return ahead.error();
    Expected<Work> back = parseWork(text.substr(middle + 1, close - middle - 1));
    if (!back.ok()) return back.error();
    Action action{ahead.value(), back.value()};
    if (action.work.kind != ActionKind::Forward)
        return badCell(cell, "the first of an overlapped pair must be a forward");
    if (action.partner.kind != ActionKind::Backward && action.partner.kind != ActionKind::InputGrad)
        return badCell(cell, "the second of an overlapped pair must be a backward (B) or an input gradient (I)");
    action.work.kind = ActionKind::Overlap;
    return action;
}

} // namespace stagecraft::traces
