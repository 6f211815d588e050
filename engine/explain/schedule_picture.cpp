// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/schedule_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace stagecraft::engine {
namespace {

using traces::Flow;
using traces::PaintClass;
using traces::TimeNs;

// Which of the rank's stages in the trace's order, or the other direction.
class Shades {
public:
    explicit Shades(const traces::TraceInfo& info) : chunkOfStage_(info.stageToRank.size(), 0)
    {
        std::vector<int> held(static_cast<std::size_t>(std::max(info.ranks, 1)), 0);
        for (std::size_t s = 0; s < info.stageToRank.size(); ++s) {
            const auto rank = static_cast<std::size_t>(info.stageToRank[s].value);
            if (rank < held.size()) chunkOfStage_[s] = held[rank]++;
        }
    }
    [[nodiscard]] int of(const traces::Action& action) const
    {
        if (action.work.flow == Flow::Up) return 1;
        const auto stage = static_cast<std::size_t>(std::max<int>(action.stage().value, 0));
        return stage < chunkOfStage_.size() ? chunkOfStage_[stage] : 0;
    }

private:
    std::vector<int> chunkOfStage_;
};

void append(SchedulePicture& picture, PictureBlock block, bool merge)
{
    if (merge && !picture.blocks.empty()) {
        PictureBlock& last = picture.blocks.back();
        if (last.rank == block.rank && last.end == block.begin && last.paint == block.paint && last.chunk == block.chunk) {
            last.end = block.end;
            last.label.clear();
            return;
        }
    }
    picture.blocks.push_back(std::move(block));
}

char classLetter(PaintClass paint)
{
    // No family recomputes, and copies and collectives are not on a lane that computes: these have no style of their own.
    constexpr std::array<char, traces::kPaintClassCount> kLetters{'f', 'b', 'i', 'w', 'o', 't', 'u', 'x', 'f', 't', 't'};
    return kLetters[static_cast<std::size_t>(paint)];
}

// Two digits behind the point at most: thousands of coordinates make the file.
std::string coordinate(double value)
{
    std::string text = fmt::format("{:.2f}", value);
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text;
}

std::string escaped(std::string_view text)
{
    std::string out;
    for (const char c : text) out += c == '<' ? std::string("&lt;") : c == '&' ? std::string("&amp;") : std::string(1, c);
    return out;
}

// The window's colours, for a light and a dark ground.
constexpr std::string_view kStyle =
    "text{font:10px sans-serif;fill:#14181e;text-anchor:middle}"
    ".r{fill:#5a6370;text-anchor:start}.l{fill:#f1f3f6}"
    ".f{fill:#3274c4}.f1{fill:#7fb0e8}.b{fill:#eba434}.b1{fill:#f6cf8f}.i{fill:#db6a34}.i1{fill:#efa27e}.w{fill:#37a98a}.w1{fill:#8fd3bf}"
    ".o{fill:#b87ec4}.o1{fill:#d9b6e0}.u{fill:#716d9c}.x,.t{fill:#97a0ac}.n{fill:#fff}"
    "@media(prefers-color-scheme:dark){.r{fill:#9ba5b2}.l{fill:#20252c}}";

} // namespace

SchedulePicture pictureOf(const traces::Trace& trace, std::size_t mostBlocks)
{
    SchedulePicture picture{.ranks = trace.info.ranks, .length = 0, .blocks = {}};
    const Shades shades(trace.info);
    std::size_t slices = 0;
    for (const traces::Lane& lane : trace.lanes())
        if (lane.info().kind == traces::LaneKind::Compute) slices += lane.size();
    TimeNs start = 0;
    bool any = false;
    for (const traces::Lane& lane : trace.lanes())
        if (lane.info().kind == traces::LaneKind::Compute && !lane.empty()) {
            start = any ? std::min(start, lane.begin(0)) : lane.begin(0);
            any = true;
        }
    for (const traces::Lane& lane : trace.lanes()) {
        if (lane.info().kind != traces::LaneKind::Compute) continue;
        for (std::size_t k = 0; k < lane.size() && lane.step(k) == lane.step(0); ++k) {
            const traces::Action& action = lane.action(k);
            if (lane.end(k) == lane.begin(k)) continue;
            PictureBlock block{.rank = lane.info().rank.value,
                               .begin = lane.begin(k) - start,
                               .end = lane.end(k) - start,
                               .paint = traces::paintClass(action.kind()),
                               .chunk = shades.of(action),
                               .label = action.microbatch().value >= 0 ? std::to_string(action.microbatch().value) : std::string()};
            picture.length = std::max(picture.length, block.end);
            append(picture, std::move(block), slices > mostBlocks);
        }
    }
    return picture;
}

std::string pictureSvg(const SchedulePicture& picture, const SvgOptions& options)
{
    constexpr int kLeft = 22;
    constexpr int kGap = 3;
    constexpr double kLabelWidth = 6; // of a digit
    const int height = picture.ranks * options.laneHeight;
    std::string svg = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\">\n<title>{}</title>\n<style>{}</style>\n",
                                  options.width + kLeft, height, options.width + kLeft, escaped(options.title), kStyle);
    const int bar = options.laneHeight - kGap;
    for (int rank = 0; rank < picture.ranks; ++rank) {
        const int y = rank * options.laneHeight;
        svg += fmt::format("<text class=\"r\" x=\"0\" y=\"{}\">{}</text><rect class=\"l\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                           y + bar / 2 + 4, rank, kLeft, y, options.width, bar);
    }
    const double scale = picture.length > 0 ? options.width / static_cast<double>(picture.length) : 0;
    for (const PictureBlock& block : picture.blocks) {
        const double x = kLeft + scale * static_cast<double>(block.begin);
        const double width = scale * static_cast<double>(block.end - block.begin);
        const int y = block.rank * options.laneHeight;
        const bool pale = block.chunk % 2 == 1 && block.paint <= PaintClass::Overlap; // the others are of no chunk
        svg += fmt::format("<rect class=\"{}{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", classLetter(block.paint), pale ? "1" : "",
                           coordinate(x), y, coordinate(std::max(0.3, width - 0.6)), bar);
        if (!block.label.empty() && width > kLabelWidth * static_cast<double>(block.label.size()) + 2) {
            const bool dark = !pale && (block.paint == PaintClass::Forward || block.paint == PaintClass::Optimizer);
            svg += fmt::format("<text{} x=\"{}\" y=\"{}\">{}</text>", dark ? " class=\"n\"" : "", coordinate(x + width / 2), y + bar / 2 + 4, block.label);
        }
        svg += '\n';
    }
    return svg + "</svg>\n";
}

} // namespace stagecraft::engine
