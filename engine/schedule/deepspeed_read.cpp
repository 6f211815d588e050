// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/deepspeed.h"
#include "engine/schedule/deepspeed_names.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace stagecraft::engine {
namespace {

using Kind = DeepSpeedKind;
using traces::trimmed;

// No program takes that many; a slip in the text must not take the memory.
constexpr int kMostBuffers = 1 << 20;

std::optional<int> numberOf(std::string_view digits, int most)
{
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() || number < 0 || number > most) return std::nullopt;
    return number;
}

// "stage 3", also as a comment or with a colon.
std::optional<int> stageOf(std::string_view line)
{
    constexpr std::string_view kWord = "stage ";
    if (line.starts_with('#')) line = trimmed(line.substr(1));
    if (line.ends_with(':')) line.remove_suffix(1);
    if (!line.starts_with(kWord)) return std::nullopt;
    return numberOf(trimmed(line.substr(kWord.size())), kMaxStages - 1);
}

// Follows what the buffers of one stage hold, and so gives each instruction its micro-batch.
class StageReader {
public:
    StageReader(int stage, bool trains) : stage_(stage), trains_(trains) {}

    // The action of the instruction; none for what is not part of a schedule.
    Expected<Action> read(const DeepSpeedInstruction& instruction)
    {
        Buffer& buffer = buffers_[instruction.buffer];
        const auto refused = [&](std::string_view why) {
            return Error{fmt::format("{}(buffer_id={}): {}", deepSpeedName(instruction.kind), instruction.buffer, why)};
        };
        const bool occupied = trains_ && buffer.awaitsBackward;
        switch (instruction.kind) {
        case Kind::RecvActivation:
            if (occupied || buffer.received >= 0) return refused("the buffer is still in use");
            buffer.received = received_++;
            return action(ActionKind::RecvForward, buffer.received);
        case Kind::ForwardPass:
            if (occupied) return refused("the buffer is still in use");
            if (buffer.received >= 0 && buffer.received != forwarded_)
                return refused(fmt::format("the buffer has micro-batch {}, and {} is next; they are taken in the order of their arrival",
                                           buffer.received, forwarded_));
            buffer.received = -1;
            buffer.forwarded = forwarded_++;
            buffer.awaitsBackward = true;
            return action(ActionKind::Forward, buffer.forwarded);
        case Kind::SendActivation:
            if (buffer.forwarded < 0) return refused("no ForwardPass has filled the buffer");
            return action(ActionKind::SendForward, buffer.forwarded);
        case Kind::RecvGrad:
        case Kind::BackwardPass:
            if (!buffer.awaitsBackward) return refused("no ForwardPass has filled the buffer");
            if (instruction.kind == Kind::RecvGrad) return action(ActionKind::RecvBackward, buffer.forwarded);
            buffer.awaitsBackward = false;
            buffer.backwarded = buffer.forwarded;
            return action(ActionKind::Backward, buffer.backwarded);
        case Kind::SendGrad:
            if (buffer.backwarded < 0) return refused("no BackwardPass has filled the buffer");
            return action(ActionKind::SendBackward, buffer.backwarded);
        default: return Action{}; // data is loaded, or the step closed
        }
    }

private:
    struct Buffer { // micro-batches; -1: none
        int received = -1; // and no forward yet
        int forwarded = -1;
        int backwarded = -1;
        bool awaitsBackward = false;
    };

    [[nodiscard]] Action action(ActionKind kind, int microbatch) const
    {
        return traces::makeAction(kind, Stage{stage_}, MicroBatch{microbatch});
    }

    int stage_;
    bool trains_;
    int received_ = 0;
    int forwarded_ = 0;
    std::map<int, Buffer> buffers_;
};

// "ForwardPass(buffer_id=0)", "OptimizerStep()"
Expected<DeepSpeedInstruction> parseInstruction(std::string_view text)
{
    const auto unknown = [&] {
        return Error{fmt::format("\"{}\" is no instruction; expected one such as ForwardPass(buffer_id=0) or OptimizerStep()", text)};
    };
    const std::size_t open = text.find('(');
    if (open == std::string_view::npos || !text.ends_with(')')) return unknown();
    const std::optional<Kind> kind = deepSpeedKindOf(trimmed(text.substr(0, open)));
    if (!kind) return unknown();
    std::string_view inside = trimmed(text.substr(open + 1, text.size() - open - 2));
    if (*kind >= Kind::ReduceTiedGrads) return inside.empty() ? Expected<DeepSpeedInstruction>(DeepSpeedInstruction{*kind, -1}) : unknown();
    constexpr std::string_view kWord = "buffer_id=";
    if (inside.starts_with(kWord)) inside.remove_prefix(kWord.size());
    const std::optional<int> buffer = numberOf(trimmed(inside), kMostBuffers);
    if (!buffer) return unknown();
    return DeepSpeedInstruction{*kind, *buffer};
}

// "[RecvGrad(buffer_id=1), BackwardPass(buffer_id=1)]"
Expected<std::vector<Action>> parseStep(std::string_view line, StageReader& stage)
{
    std::vector<Action> actions;
    if (!line.starts_with('[') || !line.ends_with(']'))
        return Error{"a step is a list in brackets, such as [LoadMicroBatch(buffer_id=0), ForwardPass(buffer_id=0)]"};
    std::string_view rest = trimmed(line.substr(1, line.size() - 2));
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find(')'), rest.size() - 1) + 1; // no comma is inside an instruction
        Expected<DeepSpeedInstruction> instruction = parseInstruction(trimmed(rest.substr(0, end)));
        if (!instruction.ok()) return instruction.error();
        Expected<Action> action = stage.read(instruction.value());
        if (!action.ok()) return action.error();
        if (action.value().kind() != ActionKind::None) actions.push_back(action.value());
        rest = trimmed(rest.substr(end));
        if (rest.starts_with(',')) rest = trimmed(rest.substr(1));
    }
    return actions;
}

} // namespace

bool looksLikeDeepSpeed(std::string_view text)
{
    // a step of such a list is in brackets, which no action text has
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        if (trimmed(text.substr(at, end - at)).starts_with('[')) return true;
        at = end + 1;
    }
    return false;
}

Expected<Schedule> readDeepSpeed(std::string_view text, std::string name)
{
    Schedule schedule;
    schedule.name = std::move(name);
    const bool trains = text.find(deepSpeedName(Kind::BackwardPass)) != std::string_view::npos;
    std::optional<StageReader> reader;
    std::size_t number = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = trimmed(text.substr(at, end - at));
        at = end + 1;
        ++number;
        if (const std::optional<int> stage = stageOf(line)) {
            if (*stage != static_cast<int>(schedule.order.size()))
                return Error{fmt::format("line {}: stage {} follows stage {}; they come in order, from 0", number, *stage,
                                         static_cast<int>(schedule.order.size()) - 1)};
            schedule.order.emplace_back();
            reader.emplace(*stage, trains);
            continue;
        }
        if (line.empty() || line.starts_with('#')) continue;
        if (!reader) return Error{fmt::format("line {}: a line \"stage 0\" must come before the first step", number)};
        Expected<std::vector<Action>> actions = parseStep(line, *reader);
        if (!actions.ok()) return actions.error().in(fmt::format("line {}, stage {}", number, schedule.order.size() - 1));
        schedule.order.back().insert(schedule.order.back().end(), actions.value().begin(), actions.value().end());
    }
    return schedule;
}

} // namespace stagecraft::engine
