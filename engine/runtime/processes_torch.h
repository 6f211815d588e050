// SPDX-License-Identifier: Apache-2.0
//
// This process' rank of a run in several ones. Rank 0 also does what belongs to the whole step: between two of them the others tell it
// how they fared, their losses, of a step that is checked the tensors that the check compares, and after one that is kept what a
// checkpoint holds.
//
// Process p has rank p % ranks of replica p / ranks.
//
//   rank 0   F0 F1 .... B0 B1 Opt |  all reported: loss, check, checkpoint, prepare | F0 F1 ...
//   rank 1      F0 B0 F1 B1 Opt   | Report, Checked, State ->                 <- Go |    F0 B0 ...
//
// Private to the runtime.
#pragma once

#include "engine/runtime/executor_torch.h"
#include "engine/runtime/process_run.h"
#include "engine/runtime/runnable.h"

#include <deque>
#include <map>
#include <utility>

namespace stagecraft::runtime {

// The stages of other processes, as rank 0 asks for them between two steps.
class ReportedStages final : public OtherStages, public OtherStates {
public:
    explicit ReportedStages(ProcessRun& all) : all_(all) {}

    void take(int rank, const Mail& report);
    std::vector<double> losses(const Place& place, Rank owner) override { return losses_[{owner, place}]; }
    std::vector<std::int64_t> outputShape(const Place& place, Rank owner) override { return shapes_[{owner, place}]; }
    [[nodiscard]] double peakFlops() const { return peakFlops_; } // of all that have reported: what each measured of its GPU before the run
    // Throw PreparationStopped where the run ends.
    std::vector<at::Tensor> tensors(const Place& place, Rank owner) override;
    StageState state(const Place& place, Rank owner) override;

private:
    Mail await(MailKind kind, Rank from);

    ProcessRun& all_;
    std::map<std::pair<Rank, Place>, std::vector<double>> losses_;
    std::map<std::pair<Rank, Place>, std::vector<std::int64_t>> shapes_;
    double peakFlops_ = 0;
};

struct ProcessPart {
    double peakFlops = 0;            // that this process measured
    const NcclWish* nccl = nullptr;  // how boundaries go; none: by the messages of the processes
};
void runAsProcess(const Execution& run, ProcessRun& all, ReportedStages& others, const ProcessPart& part);

} // namespace stagecraft::runtime
