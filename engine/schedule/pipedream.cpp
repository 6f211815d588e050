// SPDX-License-Identifier: Apache-2.0
//
// PipeDream (Narayanan et al., SOSP 2019, arXiv 1806.03377), p = 3; ' is the update of the stage's weights:
//
//   rank 0 | F0 F1 F2       B0'F3 B1'F4 B2'F5 B3' ...
//   rank 1 |    F0 F1    B0'F2 B1'F3 B2'F4 B3'F5  ...
//   rank 2 |       F0 B0'F1 B1'F2 B2'F3 B3'F4 B4' ...
//
// The order of 1F1B over all micro-batches without a flush: p of them are in flight (the paper's NOAM of a straight pipeline), and
// every stage takes a step with each gradient, so that once it is full nobody waits. For the gradient to fit its forward, rank r
// keeps the weights of each micro-batch in flight, at most min(p-r, m) versions (weight stashing); in the steady state a gradient is
// p-1-r updates late on rank r. With vertical sync all stages take a micro-batch by the version that rank 0 has when it enters: p
// versions on every rank, and all gradients p-1 updates late. weight_versions.h tells the version of each micro-batch. Any p and m.
#include "engine/schedule/one_f_one_b_updates.h"

namespace stagecraft::engine {
namespace {

Schedule pipeDreamSchedule(const ScheduleRequest& request)
{
    return oneFOneBWithUpdates(request, request.verticalSync ? UpdateRule::VerticalSync : UpdateRule::Stashed, 1);
}

} // namespace

Generator pipeDream()
{
    Generator made{{"pipedream", "PipeDream",
                    "1F1B without a flush: a stage updates its weights after every micro-batch and keeps older ones for those in flight.",
                    "any number of ranks and micro-batches; one chunk per rank; asynchronous, up to p versions of the weights",
                    "Narayanan et al. 2019, arXiv 1806.03377", 1, 1,
                    {{"paper", "PipeDream with weight stashing, 1F1B"}}},
                   &pipeDreamSchedule};
    made.family.asynchronous = true;
    made.family.stashesVersions = true;
    return made;
}

} // namespace stagecraft::engine
