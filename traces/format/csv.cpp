// SPDX-License-Identifier: Apache-2.0
#include "traces/format/csv.h"

#include "traces/format/chrome_words.h"

#include <fmt/format.h>

#include <iterator>
#include <string>

namespace stagecraft::traces {
namespace {

constexpr std::size_t kPieceBytes = 64 << 10;

void appendField(std::string& out, std::string_view text)
{
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
        out += text;
        return;
    }
    out.push_back('"');
    for (const char c : text) {
        if (c == '"') out.push_back('"');
        out.push_back(c);
    }
    out.push_back('"');
}

} // namespace

void writeCsv(const Trace& trace, const std::function<void(std::string_view)>& sink)
{
    std::string out = "step,rank,lane,stage,microbatch,action,kind,begin_ns,end_ns,duration_ns\r\n";
    const auto print = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
    };
    for (std::size_t l = 0; l < trace.laneCount(); ++l) {
        const LaneId id{l};
        const Lane& lane = trace.lane(id);
        for (std::uint32_t i = 0; i < lane.size(); ++i) {
            const Slice slice = lane.slice(i);
            const Action& action = slice.action;
            print("{},{},{},", slice.step.value, lane.info().rank.value, laneKindText(lane.info().kind));
            if (action.kind() != ActionKind::None) print("{}", action.stage().value);
            out.push_back(',');
            if (action.kind() != ActionKind::None && action.microbatch() != kNoMicroBatch)
                print("{}", action.microbatch().value);
            out.push_back(',');
            appendField(out, trace.sliceName({id, i}));
            print(",{},{},{},{}\r\n", kindText(action.kind()), slice.begin, slice.end, slice.duration());
            if (out.size() < kPieceBytes) continue;
            sink(out);
            out.clear();
        }
    }
    sink(out);
}

} // namespace stagecraft::traces
