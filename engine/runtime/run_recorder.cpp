// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/run_recorder.h"

namespace stagecraft::runtime {

using namespace traces;

RunRecorder::RunRecorder(const engine::Schedule& schedule, std::size_t ringCapacity, RecordInbox& inbox, int replicas, std::optional<Rank> only)
    : builder_(schedule, replicas, only), inbox_(inbox), totals_(schedule.stages())
{
    if (only) writer_.emplace([this](std::string_view bytes) { journal_.append(bytes); });
    for (int r = 0; r < replicas * schedule.ranks; ++r) {
        rings_.push_back(std::make_unique<EventRing<RunEvent>>(ringCapacity));
        collectiveRings_.push_back(std::make_unique<EventRing<RunEvent>>(ringCapacity / 4 + 1));
    }
}

void RunRecorder::start(const TraceInfo& info)
{
    std::vector<Record> opening{InfoRecord{info}};
    builder_.begin(opening);
    {
        const std::lock_guard lock(mutex_);
        posted_.insert(posted_.begin(), opening.begin(), opening.end());
    }
    collector_ = std::jthread([this](const std::stop_token& stop) { collect(stop); });
}

void RunRecorder::post(Record record)
{
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(record));
}

void RunRecorder::watchDevice(RankPlacement placement, const DeviceRecorderOptions& options)
{
    const std::lock_guard lock(mutex_);
    device_.emplace(builder_, std::move(placement), options);
}

void RunRecorder::post(ActivityBatch batch)
{
    const std::lock_guard lock(mutex_);
    batches_.push_back(std::move(batch));
}

void RunRecorder::post(OperatorBatch batch)
{
    const std::lock_guard lock(mutex_);
    operators_.push_back(std::move(batch));
}

void RunRecorder::finish()
{
    if (!collector_.joinable()) return;
    collector_.request_stop();
    collector_.join();
}

void RunRecorder::collect(const std::stop_token& stop)
{
    while (!stop.stop_requested()) {
        if (inbox_.size() < kInboxLimit) collectOnce();
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, stop, kPeriod, [] { return false; });
    }
    collectOnce(true); // whatever the inbox holds: nothing is left behind at the end
}

void RunRecorder::collectOnce(bool last)
{
    // The posted ones first: events pushed before they were posted are then in the rings for certain.
    std::vector<Record> posted;
    std::vector<ActivityBatch> batches;
    std::vector<OperatorBatch> operators;
    {
        const std::lock_guard lock(mutex_);
        posted.swap(posted_);
        operators.swap(operators_);
        if (device_) batches.swap(batches_);
    }
    std::vector<Record> out;
    std::size_t next = 0;
    const auto isOpening = [](const Record& record) {
        return std::holds_alternative<InfoRecord>(record) || std::holds_alternative<LaneRecord>(record);
    };
    for (; next < posted.size() && isOpening(posted[next]); ++next) out.push_back(std::move(posted[next]));

    std::int64_t lost = 0;
    for (std::size_t r = 0; r < rings_.size(); ++r)
        for (EventRing<RunEvent>* ring : {rings_[r].get(), collectiveRings_[r].get()}) {
            ring->drain([&](const RunEvent& event) { builder_.add(Rank{r}, event, out); });
            lost += ring->lost();
        }
    if (lost > lostReported_) {
        out.push_back(LostRecord{lost - lostReported_});
        lostReported_ = lost;
    }
    for (; next < posted.size(); ++next) {
        if (const auto* step = std::get_if<StepRecord>(&posted[next])) {
            builder_.endStep(step->step.step, out);
            if (device_) device_->beginStep(step->step.step);
        }
        out.push_back(std::move(posted[next]));
    }
    for (const OperatorBatch& batch : operators) builder_.add(batch, out);
    for (const ActivityBatch& batch : batches) device_->add(batch, out);
    if (last && device_) device_->finish(out);
    for (const Record& record : out) {
        totals_.take(record);
        if (writer_ && !std::holds_alternative<SessionRecord>(record)) writer_->write(record);
    }
    inbox_.push(std::move(out));
}

} // namespace stagecraft::runtime
