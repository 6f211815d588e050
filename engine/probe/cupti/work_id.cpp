// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/work_id.h"

namespace stagecraft::runtime {

using traces::ActionKind;
using traces::Flow;
using traces::MicroBatch;
using traces::Stage;
using traces::Step;
using traces::Work;

namespace {

struct Field {
    unsigned shift;
    unsigned bits;

    [[nodiscard]] constexpr std::uint64_t mask() const { return (std::uint64_t{1} << bits) - 1; }
    [[nodiscard]] constexpr std::uint64_t put(std::uint64_t value) const { return (value & mask()) << shift; }
    [[nodiscard]] constexpr std::uint64_t get(std::uint64_t id) const { return id >> shift & mask(); }
};
constexpr Field kFlow{0, 2};
constexpr Field kKind{2, 5};
constexpr Field kMicroBatch{7, 16};
constexpr Field kStage{23, 11};
constexpr Field kReplica{34, 6};
constexpr Field kStep{40, 18};
constexpr Field kRun{58, 6};

static_assert(kRun.shift + kRun.bits == 64);
static_assert(kRun.mask() + 1 == kRuns && kStep.mask() + 1 == kSteps);
static_assert(kReplica.mask() == kMostMarkedReplica && kStage.mask() == kMostMarkedStage && kMicroBatch.mask() == kMostMarkedMicroBatch + 1);
static_assert(traces::kActionKindCount <= static_cast<int>(kKind.mask()) + 1);

} // namespace

std::optional<WorkId> packWork(const MarkedWork& marked)
{
    const Work& work = marked.work;
    const bool fits = work.kind != ActionKind::None && work.stage.value >= 0 && work.stage.value <= kMostMarkedStage &&
                      work.microbatch >= traces::kNoMicroBatch && work.microbatch.value <= kMostMarkedMicroBatch && marked.step.value >= 0 &&
                      marked.replica >= 0 && marked.replica <= kMostMarkedReplica;
    if (!fits) return std::nullopt;
    return kRun.put(marked.run) | kStep.put(static_cast<std::uint64_t>(marked.step.value)) |
           kReplica.put(static_cast<std::uint64_t>(marked.replica)) | kStage.put(static_cast<std::uint64_t>(work.stage.value)) |
           kMicroBatch.put(static_cast<std::uint64_t>(work.microbatch.value + 1)) | kKind.put(static_cast<std::uint64_t>(work.kind)) |
           kFlow.put(static_cast<std::uint64_t>(work.flow));
}

std::optional<MarkedWork> unpackWork(WorkId id)
{
    const std::uint64_t kind = kKind.get(id);
    const std::uint64_t flow = kFlow.get(id);
    if (kind == 0 || kind >= static_cast<std::uint64_t>(traces::kActionKindCount) || flow > static_cast<std::uint64_t>(Flow::Up)) {
        return std::nullopt;
    }
    return MarkedWork{.run = static_cast<std::uint32_t>(kRun.get(id)),
                      .step = Step{kStep.get(id)},
                      .work = {.kind = static_cast<ActionKind>(kind),
                               .flow = static_cast<Flow>(flow),
                               .stage = Stage{kStage.get(id)},
                               .microbatch = MicroBatch{static_cast<std::int32_t>(kMicroBatch.get(id)) - 1}},
                      .replica = static_cast<std::int32_t>(kReplica.get(id))};
}

Step stepNear(Step packed, Step newest)
{
    // The difference modulo kSteps, from -kSteps / 2 on.
    const std::int64_t ahead = std::int64_t{packed.value} - newest.value;
    const std::int64_t wrapped = ((ahead + kSteps / 2) % kSteps + kSteps) % kSteps - kSteps / 2;
    const std::int64_t near = newest.value + wrapped;
    return Step{near < 0 ? near + kSteps : near};
}

} // namespace stagecraft::runtime
