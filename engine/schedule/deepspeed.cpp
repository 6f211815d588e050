// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/deepspeed.h"

#include "engine/schedule/deepspeed_names.h"
#include "engine/schedule/lower.h"
#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::engine {
namespace {

using Kind = DeepSpeedKind;

struct Turn {
    int microbatch = 0;
    bool forward = true;
};

Turn turnOf(int step, int stage, int stages)
{
    const bool evenStep = step % 2 == 0;
    if (evenStep == (stage % 2 == 0)) return {step / 2 - stage / 2, true};
    return {evenStep ? step / 2 - stages + (stage + 1) / 2 : (step - 1) / 2 - stages + 1 + stage / 2, false};
}

void appendInstruction(std::string& out, const DeepSpeedInstruction& instruction)
{
    out += deepSpeedName(instruction.kind);
    out += instruction.buffer < 0 ? "()" : fmt::format("(buffer_id={})", instruction.buffer);
}

} // namespace

DeepSpeedSteps deepSpeedTrainSteps(int stages, int microbatches, int stage)
{
    const int buffers = std::max(2, std::min(stages - stage, microbatches)); // in flight at most, and never a single one
    const auto valid = [&](int microbatch) { return microbatch >= 0 && microbatch < microbatches; };
    const bool first = stage == 0;
    const bool last = stage + 1 == stages;
    const int total = 2 * (microbatches + stages - 1);
    DeepSpeedSteps steps;
    int before = -1; // the micro-batch of the last step, which went the other way
    for (int t = 0; t < total; ++t) {
        const Turn turn = turnOf(t, stage, stages);
        std::vector<DeepSpeedInstruction>& step = steps.emplace_back();
        const bool works = valid(turn.microbatch);
        const int buffer = works ? turn.microbatch % buffers : -1;
        if (turn.forward) {
            if (valid(before) && !first) step.push_back({Kind::SendGrad, before % buffers});
            if (works && !first) step.push_back({Kind::RecvActivation, buffer});
            if (works && (first || last)) step.push_back({Kind::LoadMicroBatch, buffer});
        } else {
            if (works && !last) step.push_back({Kind::RecvGrad, buffer});
            if (valid(before) && !last) step.push_back({Kind::SendActivation, before % buffers});
        }
        if (works) step.push_back({turn.forward ? Kind::ForwardPass : Kind::BackwardPass, buffer});
        if (t + 1 == total)
            for (const Kind kind : {Kind::ReduceTiedGrads, Kind::ReduceGrads, Kind::OptimizerStep}) step.push_back({kind, -1});
        before = turn.microbatch;
    }
    return steps;
}

DeepSpeedSteps deepSpeedInferenceSteps(int stages, int microbatches, int stage)
{
    const auto valid = [&](int microbatch) { return microbatch >= 0 && microbatch < microbatches; };
    const bool even = stage % 2 == 0;
    const bool first = stage == 0;
    const bool last = stage + 1 == stages;
    DeepSpeedSteps steps;
    for (int t = 0; t < microbatches + stages - 1; ++t) {
        const int microbatch = t - stage;
        const int recvBuffer = even ? t % 2 : (t + 1) % 2;
        std::vector<DeepSpeedInstruction>& step = steps.emplace_back();
        if ((first || last) && valid(microbatch)) step.push_back({Kind::LoadMicroBatch, recvBuffer});
        // even stages send first and odd ones receive first, so that neighbours meet
        for (const bool sends : {even, !even}) {
            if (sends && !last && valid(microbatch - 1)) step.push_back({Kind::SendActivation, 1 - recvBuffer});
            if (!sends && !first && valid(microbatch)) step.push_back({Kind::RecvActivation, recvBuffer});
        }
        if (valid(microbatch)) step.push_back({Kind::ForwardPass, recvBuffer});
    }
    return steps;
}

Expected<std::string> deepSpeedText(const Schedule& schedule)
{
    const Schedule plain = withoutCommunication(schedule);
    const auto is = [&](const char* family) {
        if (plain.stages() != plain.ranks) return false;
        const Expected<Schedule> made = generate({.name = family, .ranks = plain.ranks, .microbatches = plain.microbatches});
        return made.ok() && made.value().order == plain.order;
    };
    const bool trains = is("1f1b");
    if (!trains && !is("forward-only"))
        return Error{fmt::format("schedule {}: DeepSpeed has no instruction list for it, only for 1f1b and forward-only", schedule.name)};
    std::string out;
    for (int stage = 0; stage < plain.ranks; ++stage) {
        out += fmt::format("stage {}\n", stage);
        const auto steps = trains ? deepSpeedTrainSteps(plain.ranks, plain.microbatches, stage)
                                  : deepSpeedInferenceSteps(plain.ranks, plain.microbatches, stage);
        for (const auto& step : steps) {
            out += '[';
            for (std::size_t i = 0; i < step.size(); ++i) {
                if (i != 0) out += ", ";
                appendInstruction(out, step[i]);
            }
            out += "]\n";
        }
    }
    return out;
}

} // namespace stagecraft::engine
