// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/sweep.h"

#include "engine/explain/sweep_point.h"
#include "engine/simulate/simulate.h"
#include "traces/analysis/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stagecraft::engine {
namespace {

constexpr TimeNs kMostFixed = 1'000'000'000'000'000; // as the longest time of a plan: sums over a schedule must not overflow

Expected<SweepPoint> simulatedPoint(const PointInput& input, double value, const std::stop_token& stop)
{
    const Expected<Schedule> schedule = scheduleOf(input.plan, stop, &input.costs); // with what every action costs beside
    if (!schedule.ok()) return schedule.error();
    const Expected<traces::Trace> trace = simulate(schedule.value(), input.costs, stop);
    if (!trace.ok()) return trace.error();
    const Expected<traces::StepFigures> figures = traces::stepFigures(trace.value(), traces::Step{0});
    if (!figures.ok()) return figures.error();
    const traces::StepFigures& step = figures.value();
    SweepPoint point{.value = value,
                     .makespan = step.makespan,
                     .span = step.maxSpan,
                     .work = step.work,
                     .bubbleMakespan = step.bubbleMakespan,
                     .bubbleSpan = step.bubbleSpan,
                     .bubbleOverIdeal = step.bubbleOverIdeal,
                     .peakActivations = 0,
                     .peakMemory = 0,
                     .throughput = 0};
    for (const traces::RankFigures& rank : step.ranks) {
        point.peakActivations = std::max(point.peakActivations, rank.peakActivations);
        point.peakMemory = std::max(point.peakMemory, rank.peakMemory);
    }
    const PipelineSpec& pipeline = input.plan.pipeline;
    if (step.makespan > 0) point.throughput = input.samples * pipeline.microbatches * 1e9 / static_cast<double>(step.makespan);
    point.forms = formsBeside(pipeline, input.costs);
    return point;
}

// The share of a schedule's work that Amdahl's law takes for serial, on the ranks of this point: see sweep.h.
std::optional<double> serialShareOf(const PointInput& input)
{
    const PipelineSpec& pipeline = input.plan.pipeline;
    if (pipeline.ranks < 2) return std::nullopt;
    FormTimes times{.forward = 0, .inputGrad = 0, .weightGrad = 0, .backward = 0, .overlap = 0, .transfer = 0};
    for (const StageCosts& stage : input.costs.stages) { // of equal stages; a rank's, but for a factor that all have
        times.forward += static_cast<double>(stage.forward);
        times.inputGrad += static_cast<double>(stage.inputGrad);
        times.weightGrad += static_cast<double>(stage.weightGrad);
        times.backward += static_cast<double>(stage.backward);
        times.overlap += static_cast<double>(stage.overlap);
    }
    const ClosedForms forms = closedForms(pipeline, times);
    if (!forms.bubbleOverIdeal) return std::nullopt;
    return std::clamp(forms.bubbleOverIdeal->value / (pipeline.ranks - 1), 0.0, 1.0);
}

class SweepRun {
public:
    SweepRun(const SweepRequest& request, const std::function<void(const SweepProgress&)>& observe, const std::stop_token& stop)
        : request_(request), observe_(observe), stop_(stop)
    {
    }

    Expected<Sweep> run()
    {
        if (Expected<void> sound = check(); !sound.ok()) return sound.error();
        Sweep sweep{.axis = request_.axis,
                    .scaling = request_.scaling,
                    .fixed = fixedText(),
                    .throughputUnit = !request_.plan.model.empty()                                 ? "rows/s"
                                      : request_.axis.quantity == SweepQuantity::MicrobatchSize ? "samples/s"
                                                                                                 : "micro-batches/s",
                    .series = {},
                    .notes = notes()};
        total_ = schedules_.size() * request_.axis.values.size();
        for (const std::string& schedule : schedules_) {
            Expected<SweepSeries> series = seriesOf(schedule);
            if (!series.ok()) return series.error();
            sweep.series.push_back(std::move(series).value());
        }
        if (observe_) observe_({.done = total_, .total = total_, .schedule = {}, .value = 0});
        return sweep;
    }

private:
    Expected<void> check()
    {
        schedules_ = request_.schedules;
        if (schedules_.empty()) schedules_ = {request_.plan.pipeline.schedule};
        for (std::size_t i = 0; i < schedules_.size(); ++i) {
            const std::string& name = schedules_[i];
            if (std::find(schedules_.begin(), schedules_.begin() + static_cast<std::ptrdiff_t>(i), name) !=
                schedules_.begin() + static_cast<std::ptrdiff_t>(i))
                return Error{fmt::format("schedule {} is named twice", name)};
            const bool known = name == "custom" ? !request_.plan.pipeline.customSchedule.empty() : findFamily(name) != nullptr;
            if (!known) return Error{fmt::format("schedule \"{}\" is unknown; stagecraft-cli list schedules names those that there are", name)};
        }
        if (request_.axis.values.empty()) return Error{"a sweep needs at least one value"};
        if (Expected<void> counts = checkCounts(); !counts.ok()) return counts;
        if (request_.scaling != Scaling::None && request_.axis.quantity != SweepQuantity::Ranks)
            return Error{"strong and weak scaling are over ranks; vary ranks, or leave the scaling out"};
        if (request_.serialShare && !(*request_.serialShare >= 0 && *request_.serialShare <= 1))
            return Error{fmt::format("a serial share of {:g} is not allowed; 0 to 1", *request_.serialShare)};
        if (request_.batch < 0 || request_.fixedPerAction < 0) return Error{"a batch and a fixed cost are not below 0"};
        if (request_.fixedPerAction > kMostFixed)
            return Error{fmt::format("a fixed cost of {} is too long; at most {}", traces::formatDuration(request_.fixedPerAction),
                                     traces::formatDuration(kMostFixed))};
        return {};
    }

    [[nodiscard]] bool someTake(bool ScheduleFamily::*quality) const
    {
        return std::ranges::any_of(schedules_, [&](const std::string& name) {
            const ScheduleFamily* family = findFamily(name);
            return family && family->*quality;
        });
    }

    // A quantity that changes nothing would give the same point again and again.
    [[nodiscard]] Expected<void> checkCounts() const
    {
        const CostSpec& costs = request_.plan.costs;
        const bool sends = costs.boundaryBytes > 0 || !request_.plan.model.empty();
        const bool timesBytes = costs.bandwidth > 0 || request_.plan.machine.between.bytesPerSecond > 0;
        switch (request_.axis.quantity) {
        case SweepQuantity::MemoryLimit:
            if (!someTake(&ScheduleFamily::plansByCosts))
                return Error{"memory-limit: none of the schedules plans for a limit; take zb-auto or zb-v-auto"};
            break;
        case SweepQuantity::Group:
            if (!someTake(&ScheduleFamily::goesInGroups))
                return Error{"group: none of the schedules goes in groups of micro-batches; take interleaved or pipedream-2bw"};
            break;
        case SweepQuantity::Offload:
            if (!someTake(&ScheduleFamily::takesOffload) && schedules_ != std::vector<std::string>{"custom"})
                return Error{"offload: none of the schedules keeps activations that may go to the host"};
            break;
        case SweepQuantity::Bandwidth:
            if (!sends) return Error{"bandwidth: nothing says how much is sent; give the bytes of a boundary, or a plan with a model"};
            break;
        case SweepQuantity::BoundaryBytes:
            if (!timesBytes) return Error{"boundary-bytes: without a bandwidth they take no time; give one"};
            break;
        default: break;
        }
        return {};
    }

    Expected<SweepSeries> seriesOf(const std::string& schedule)
    {
        SweepSeries series;
        series.schedule = schedule;
        series.title = titleOf(schedule);
        for (const double value : request_.axis.values) {
            if (stop_.stop_requested()) return Error{"the sweep was stopped"};
            if (observe_) observe_({.done = done_, .total = total_, .schedule = schedule, .value = value});
            ++done_;
            Expected<PointInput> input = pointInput(request_, schedule, value);
            if (input.ok()) {
                Expected<SweepPoint> point = simulatedPoint(input.value(), value, stop_);
                if (point.ok()) {
                    addSpeedup(input.value(), series, point.value());
                    series.points.push_back(std::move(point).value());
                    continue;
                }
                if (stop_.stop_requested()) return Error{"the sweep was stopped"};
                series.leftOut.push_back({value, point.error().message, true});
            } else {
                series.leftOut.push_back({value, input.error().message});
            }
        }
        addLine(series);
        series.bestSize = bestSizeOf(schedule);
        return series;
    }

    void addSpeedup(const PointInput& input, SweepSeries& series, SweepPoint& point) const
    {
        if (request_.scaling == Scaling::None) return;
        point.speedup = point.makespan > 0 ? input.serialTime / static_cast<double>(point.makespan) : 0;
        point.efficiency = point.speedup / input.plan.pipeline.ranks;
        if (const std::optional<double> share = serialShareOf(input))
            series.serialShare = std::min(*share, series.serialShare.value_or(1));
    }

    // A line that the schedule outruns, because its form holds for other numbers of ranks alone, bounds nothing and is left out.
    void addLine(SweepSeries& series) const
    {
        if (request_.scaling == Scaling::None) return;
        if (request_.serialShare) series.serialShare = request_.serialShare;
        if (!series.serialShare) return;
        const auto at = [&](const SweepPoint& point) {
            return request_.scaling == Scaling::Strong ? amdahlSpeedup(*series.serialShare, point.value) : gustafsonSpeedup(*series.serialShare, point.value);
        };
        constexpr double kRounding = 1 + 1e-4; // of times to whole nanoseconds
        const bool bounds = std::ranges::all_of(series.points, [&](const SweepPoint& point) { return point.speedup <= at(point) * kRounding; });
        if (!bounds && !request_.serialShare) {
            series.serialShare.reset();
            return;
        }
        for (SweepPoint& point : series.points) point.law = at(point);
    }

    // From a micro-batch of one sample, without what an action costs beside.
    [[nodiscard]] std::optional<ClosedForm> bestSizeOf(const std::string& schedule) const
    {
        if (request_.axis.quantity != SweepQuantity::MicrobatchSize || request_.fixedPerAction == 0) return std::nullopt;
        SweepRequest one = request_;
        one.fixedPerAction = 0;
        const double own = samplesOf(request_.plan);
        one.batch = request_.batch > 0 ? request_.batch : std::llround(own * request_.plan.pipeline.microbatches);
        const Expected<PointInput> input = pointInput(one, schedule, static_cast<double>(one.batch)); // rounds least
        if (!input.ok()) return std::nullopt;
        const PipelineSpec& pipeline = input.value().plan.pipeline;
        const auto times = equalTimes(input.value().costs, pipeline);
        if (!times || times->transfer != 0) return std::nullopt;
        const auto batch = static_cast<double>(one.batch);
        return bestMicrobatchSize(pipeline, batch, static_cast<double>(request_.fixedPerAction), (times->forward + times->backward) / 2 / batch);
    }

    [[nodiscard]] std::string titleOf(const std::string& schedule) const
    {
        const ScheduleFamily* family = findFamily(schedule);
        std::string title = family ? family->title : schedule;
        const int chunks = chunksFor(schedule, request_.plan.pipeline.chunks);
        if (chunks > 1 && request_.axis.quantity != SweepQuantity::Chunks) title += fmt::format(", v={}", chunks);
        const int slices = slicesFor(schedule, request_.plan.pipeline.slices);
        if (slices > 1 && request_.axis.quantity != SweepQuantity::Slices) title += fmt::format(", k={}", slices);
        return title;
    }

    [[nodiscard]] std::string fixedText() const
    {
        const PipelineSpec& pipeline = request_.plan.pipeline;
        const SweepQuantity quantity = request_.axis.quantity;
        std::string text;
        const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
        if (quantity != SweepQuantity::Ranks) add(fmt::format("p={}", pipeline.ranks));
        if (quantity == SweepQuantity::MicrobatchSize)
            add(fmt::format("B={}", request_.batch > 0 ? request_.batch
                                                       : std::llround(samplesOf(request_.plan) * pipeline.microbatches)));
        else if (quantity != SweepQuantity::Microbatches)
            add(fmt::format("m={}", pipeline.microbatches));
        if (request_.fixedPerAction > 0) add(fmt::format("α={} per action", traces::formatDuration(request_.fixedPerAction)));
        return text;
    }

    [[nodiscard]] std::vector<std::string> notes() const
    {
        std::vector<std::string> notes;
        const SweepQuantity quantity = request_.axis.quantity;
        const CostSpec& costs = request_.plan.costs;
        const bool shape = quantity == SweepQuantity::Ranks || quantity == SweepQuantity::Chunks;
        if (shape && request_.scaling == Scaling::None) {
            if (costs.source == CostSource::Measured)
                notes.emplace_back("Measured times hold for the shape they were measured in; others are simulated with the model's estimate.");
            if (!costs.stageScale.empty())
                notes.emplace_back("Factors of stages are left out where the number of stages is another.");
        }
        const MachineModel& machine = request_.plan.machine;
        if (quantity == SweepQuantity::Ranks && !(machine.rankScale.empty() && machine.lateStart.empty()))
            notes.emplace_back("Factors and late starts of ranks are left out where the number of ranks is another.");
        if (request_.scaling == Scaling::Weak)
            notes.emplace_back("Weak scaling: every rank keeps its share of work, so the model grows with the ranks; Gustafson's line.");
        if (request_.scaling == Scaling::Strong)
            notes.emplace_back("Strong scaling: model and batch stay, so a rank's share shrinks; Amdahl's line.");
        const bool takesTimes = quantity == SweepQuantity::Forward || quantity == SweepQuantity::Backward;
        if (takesTimes && costs.source != CostSource::Assumed)
            notes.emplace_back("The plan's times are set aside: forward and backward are assumed, equal on all ranks.");
        addMachineNotes(notes);
        return notes;
    }

    // A curve that stays flat for want of another number of the plan.
    void addMachineNotes(std::vector<std::string>& notes) const
    {
        const SweepQuantity quantity = request_.axis.quantity;
        const MachineModel& machine = request_.plan.machine;
        const bool oneNode = machine.ranksPerNode == 0 || machine.ranksPerNode >= request_.plan.pipeline.ranks;
        if ((quantity == SweepQuantity::NodeLatency || quantity == SweepQuantity::NodeBandwidth) && oneNode)
            notes.emplace_back("All ranks lie on one node, so that nothing goes between nodes; give the plan ranks per node.");
        if (quantity == SweepQuantity::RanksPerNode && machine.between == Link{})
            notes.emplace_back("The plan gives no latency or bandwidth between nodes: what goes between them takes no time.");
        if (quantity == SweepQuantity::Replicas && machine.replica == Link{})
            notes.emplace_back("The plan gives no latency or bandwidth between replicas: the sums of their gradients take no time.");
        if (quantity == SweepQuantity::Replicas || machine.replicas > 1) notes.emplace_back("The throughput is that of one replica.");
    }

    const SweepRequest& request_;
    const std::function<void(const SweepProgress&)>& observe_;
    const std::stop_token& stop_;
    std::vector<std::string> schedules_;
    std::size_t total_ = 0;
    std::size_t done_ = 0;
};

} // namespace

Expected<Sweep> runSweep(const SweepRequest& request, const std::function<void(const SweepProgress&)>& observe, const std::stop_token& stop)
{
    return SweepRun(request, observe, stop).run();
}

const SweepPoint* fastest(const SweepSeries& series)
{
    const auto best = std::ranges::max_element(series.points, {}, &SweepPoint::throughput);
    return best == series.points.end() ? nullptr : &*best;
}

} // namespace stagecraft::engine
