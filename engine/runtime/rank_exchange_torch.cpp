// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/rank_exchange_torch.h"

#include "engine/runtime/rank_work.h"

#include <ATen/TensorOperators.h>

#include <utility>
#include <vector>

namespace stagecraft::runtime {

using namespace traces;

bool RankExchange::waitForSums(const Work& before, Step step)
{
    if (parts_.replica == nullptr) return true;
    bool all = false;
    return parts_.failures.settled([&] { all = parts_.replica->allGradients(); }, kWaitForSums, step, before) && all;
}

std::optional<TimeNs> RankExchange::sumGradients(const Action& action, Step step)
{
    const Execution& run = parts_.run;
    const RankLinks& links = parts_.links;
    if (links.waits != nullptr) links.waits->enter(parts_.own, action.work);
    const Place own = placeOf(action.work);
    const Place other = placeOf(action.partner);
    const bool both = run.schedule.rankOf(other.flow, other.stage) == parts_.own;
    if (!waitForSums(action.work, step)) return std::nullopt; // each copy's own sum comes first
    if (!settleBefore(action.work, step)) return std::nullopt;
    std::optional<Arrival<std::vector<at::Tensor>>> arrival;
    if (!both) {
        const BoxAddress box = gradientBox(action.work, action.partner);
        links.gradients.put(gradientBox(action.partner, action.work), run.pipeline.sharedGradients(own, other), run.clock);
        if (!links.gradients.full(box)) run.control.rest(rank_);
        arrival = links.gradients.take(box);
        if (!arrival) return std::nullopt;
    }
    if (!run.control.enter(rank_)) return std::nullopt;
    ActionTimes times{.begin = run.clock.now()};
    const auto sum = [&] {
        const WorkScope mark(run.marks, step, action.work, run.replica);
        if (both) run.pipeline.sumBoth(own, other);
        else run.pipeline.addShared(own, other, arrival->payload);
        parts_.device.drain(); // what the other gave is read
        return true;
    };
    if (!parts_.failures.attempt(action.work, step, sum)) return std::nullopt;
    arrival.reset();
    times.end = run.clock.now();
    takeMemory(times.end);
    parts_.collectives.push(actionEvent(step, action.work, times));
    return times.end;
}

std::optional<TimeNs> RankExchange::clipGradients(const Work& work, Step step)
{
    const Execution& run = parts_.run;
    Handoff<at::Tensor>& norms = parts_.links.norms;
    const Rank own = parts_.own;
    const auto box = [](Direction direction, int rank) { return BoxAddress{direction, Stage{rank}, MicroBatch{0}, Flow::Single}; };
    if (!waitForSums(work, step) || !settleBefore(work, step) || !run.control.enter(rank_)) return std::nullopt;
    ActionTimes times{.begin = run.clock.now()}; // it lasts until the last rank has come
    const auto clip = [&] {
        const WorkScope mark(run.marks, step, work, run.replica);
        at::Tensor squares = run.pipeline.squaredNorms(own);
        if (own > Rank{0}) {
            const std::optional<at::Tensor> before = takeNorms(box(Direction::Forward, own.value));
            if (!before) return false;
            squares = squares + *before;
        }
        if (own.value + 1 < run.schedule.ranks) {
            norms.put(box(Direction::Forward, own.value + 1), std::move(squares), run.clock);
            const std::optional<at::Tensor> all = takeNorms(box(Direction::Backward, own.value));
            if (!all) return false;
            squares = *all;
        }
        if (own > Rank{0}) norms.put(box(Direction::Backward, own.value - 1), squares, run.clock);
        times.ready = run.clock.now();
        run.pipeline.clipGradients(own, squares);
        parts_.device.drain();
        return true;
    };
    if (!parts_.failures.attempt(work, step, clip)) return std::nullopt;
    times.end = run.clock.now();
    takeMemory(times.end);
    RunEvent event = actionEvent(step, work, times);
    event.value[RunEvent::kOfAll] = 1;
    parts_.collectives.push(event);
    return times.end;
}

bool RankExchange::settleBefore(const Work& work, Step step)
{
    return parts_.failures.settled([&] { parts_.queue.drain(step); }, "the device's part", step, work);
}

std::optional<at::Tensor> RankExchange::takeNorms(const BoxAddress& box)
{
    if (!parts_.links.norms.full(box)) parts_.run.control.rest(rank_);
    std::optional<Arrival<at::Tensor>> arrival = parts_.links.norms.take(box);
    if (!arrival || !parts_.run.control.enter(rank_)) return std::nullopt;
    return std::move(arrival->payload);
}

void RankExchange::takeMemory(TimeNs time)
{
    if (parts_.replica != nullptr)
        for (const MemorySample& sample : parts_.replica->takeSamples()) parts_.memory.add(sample);
    parts_.memory.sample(time);
}

} // namespace stagecraft::runtime
