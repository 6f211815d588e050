// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/cupti/device_place_ranks.h"

#include <algorithm>
#include <type_traits>

namespace stagecraft::runtime {

using traces::Rank;

std::optional<Rank> DevicePlaceRanks::rankOf(const MarkedWork& marked) const
{
    const traces::Work& work = marked.work;
    const bool up = work.flow == traces::Flow::Up && !placement_.upStageToRank.empty();
    const std::vector<Rank>& ranks = up ? placement_.upStageToRank : placement_.stageToRank;
    if (index(work.stage) >= ranks.size()) return std::nullopt;
    return Rank{ranks[index(work.stage)].value + marked.replica * placement_.ranksPerReplica};
}

Attribution DevicePlaceRanks::of(const JoinedActivity& joined)
{
    Attribution out{.rank = placement_.otherwise, .work = std::nullopt};
    if (std::optional<MarkedWork> marked = unpackWork(joined.work); marked && marked->run == placement_.run) {
        marked->step = stepNear(marked->step, newest_);
        newest_ = std::max(newest_, marked->step);
        out.work = marked;
        out.beside = placement_.beside.contains(marked->work);
    }
    const std::optional<Rank> marked = out.work ? rankOf(*out.work) : std::nullopt;
    const auto place = [&](auto& known, const auto& key) {
        const auto at = known.find(key);
        if (marked) {
            out.known = true;
            out.rank = *marked;
            known.insert_or_assign(key, *marked);
        } else if (at != known.end()) {
            out.known = true;
            out.rank = at->second;
        }
    };
    std::visit(
        [&](const auto& each) {
            if constexpr (requires { each.place; }) {
                if constexpr (requires { each.span; }) {
                    place(streams_, each.place);
                } else if (marked) { // an allocation: of its device, and of no stream's work
                    out.known = true;
                    out.rank = *marked;
                }
                const auto device = placement_.deviceToRank.find(each.place.device);
                if (!out.known && device != placement_.deviceToRank.end()) out.rank = device->second;
            } else if constexpr (requires { each.thread; }) {
                place(threads_, each.thread);
            } else if constexpr (requires { each.stream; }) {
                // A wait names its stream without the device; no two contexts have one number.
                const auto at = std::find_if(streams_.begin(), streams_.end(), [&](const auto& known) {
                    return known.first.context == each.context && known.first.stream == each.stream;
                });
                if (at == streams_.end()) return;
                out.known = true;
                out.rank = at->second;
            }
        },
        joined.activity);
    return out;
}

} // namespace stagecraft::runtime
