// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/in_flight_curve.h"

#include <algorithm>

namespace stagecraft::ui {

using traces::ActionKind;

std::size_t InFlightCurve::update(const traces::Trace& trace)
{
    struct Change {
        traces::TimeNs time;
        int by;
    };
    std::vector<Change> changes;
    for (int attempt = 0; attempt < 2; ++attempt) {
        changes.clear();
        read_.resize(trace.laneCount());
        for (std::size_t l = 0; l < trace.laneCount(); ++l) {
            const traces::Lane& lane = trace.lanes()[l];
            if (lane.info().rank != rank() || lane.info().kind != traces::LaneKind::Compute) continue;
            if (read_[l] > lane.size()) read_[l] = 0; // another trace took its place
            for (; read_[l] < lane.size(); ++read_[l]) {
                const traces::Action& action = lane.action(read_[l]);
                const ActionKind kind = action.kind();
                const bool frees = kind == ActionKind::Backward || kind == ActionKind::WeightGrad ||
                                   (kind == ActionKind::Forward && trace.info.inference) ||
                                   (kind == ActionKind::Overlap && action.partner.kind == ActionKind::Backward);
                if (kind == ActionKind::Forward || kind == ActionKind::Overlap) changes.push_back({lane.begin(read_[l]), 1});
                if (frees) changes.push_back({lane.end(read_[l]), -1});
            }
        }
        // What ends where the next begins is given back first.
        std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.time < b.time || (a.time == b.time && a.by < b.by); });
        if (changes.empty() || points().empty() || changes.front().time >= points().back().time) break;
        read_.clear(); // a lane brought something older than what is counted already
        live_ = 0;
        clear();
    }
    std::size_t kept = points().size();
    for (const Change& change : changes) {
        live_ += change.by;
        add({change.time, live_}, kept);
    }
    findHighest(kept);
    return kept;
}

} // namespace stagecraft::ui
