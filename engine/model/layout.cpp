// SPDX-License-Identifier: Apache-2.0
#include "engine/model/layout.h"

#include "traces/base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft::engine {

using traces::counted;

namespace {

constexpr char kBorder = '|';
constexpr std::size_t kMostLetters = 2 * kMostLayers; // a layer and a border each

char letterOf(const Layer& layer)
{
    if (std::holds_alternative<Embedding>(layer)) return 'E';
    return std::holds_alternative<Head>(layer) ? 'L' : 't';
}

// A stage in short: runs of three or more as a repetition.
std::string shortened(const std::string& stage)
{
    std::string text;
    for (std::size_t i = 0; i < stage.size();) {
        const std::size_t end = std::min(stage.find_first_not_of(stage[i], i), stage.size());
        text += end - i < 3 ? stage.substr(i, end - i) : fmt::format("{}*{}", stage[i], end - i);
        i = end;
    }
    return text;
}

// Reads letters, borders and their repetitions into one text without repetitions.
class Unrolling {
public:
    explicit Unrolling(std::string_view layout) : layout_(layout) {}

    Expected<std::string> text()
    {
        while (skipCommas() < layout_.size())
            if (Expected<void> read = layout_[at_] == '(' ? group() : letter(text_); !read.ok()) return read.error();
        return std::move(text_);
    }

private:
    std::size_t skipCommas()
    {
        while (at_ < layout_.size() && layout_[at_] == ',') ++at_;
        return at_;
    }

    Error here(const std::string& what) const { return Error{fmt::format("at place {} of \"{}\": {}", at_ + 1, layout_, what)}; }

    Expected<void> group()
    {
        const std::size_t begin = at_++;
        std::string body;
        while (skipCommas() < layout_.size() && layout_[at_] != ')') {
            if (layout_[at_] == '(') return here("a group within a group is not allowed");
            if (Expected<void> read = letter(body); !read.ok()) return read;
        }
        const bool closed = at_ < layout_.size();
        at_ += closed ? 1 : 0;
        if (closed && skipCommas() < layout_.size() && layout_[at_] == '*' && !body.empty()) return repeat(body, text_);
        at_ = begin;
        return here("a group is written as (layers)*number");
    }

    Expected<void> letter(std::string& to)
    {
        const char c = layout_[at_];
        if (c == 'm') return here("m is a layer for the prediction of several tokens, and models here have none");
        if (std::string_view("EtL|").find(c) == std::string_view::npos)
            return here(fmt::format("'{}' is no layer; E is an embedding, t a layer, L a head, | ends a stage", c));
        ++at_;
        return skipCommas() < layout_.size() && layout_[at_] == '*' ? repeat(std::string(1, c), to) : append(std::string(1, c), 1, to);
    }

    Expected<void> repeat(const std::string& what, std::string& to)
    {
        ++at_; // the star
        std::size_t times = 0;
        const std::size_t begin = skipCommas();
        for (; skipCommas() < layout_.size() && layout_[at_] >= '0' && layout_[at_] <= '9'; ++at_)
            times = std::min(times * 10 + static_cast<std::size_t>(layout_[at_] - '0'), kMostLetters + 1);
        if (at_ == begin) return here("a number of repetitions is missing");
        if (at_ < layout_.size() && layout_[at_] == '*') return here("it has a number of repetitions already");
        return append(what, times, to);
    }

    Expected<void> append(const std::string& what, std::size_t times, std::string& to)
    {
        if (to.size() + times * what.size() > kMostLetters)
            return Error{fmt::format("\"{}\" has more than {}, the most that a model may have", layout_, counted(kMostLayers, "layer"))};
        for (std::size_t i = 0; i < times; ++i) to += what;
        return {};
    }

    std::string_view layout_;
    std::size_t at_ = 0;
    std::string text_;
};

} // namespace

std::string layoutOf(const ModelSpec& model, const Partition& partition)
{
    std::vector<std::string> stages;
    std::size_t layer = 0;
    for (const int count : partition) {
        std::string& stage = stages.emplace_back();
        for (int i = 0; i < count; ++i) stage += letterOf(model.layers[layer++]);
    }
    std::string text;
    for (std::size_t s = 0; s < stages.size();) {
        std::size_t end = s + 1;
        while (end + 1 < stages.size() && stages[end] == stages[s]) ++end; // the last stage has no border behind it
        const std::string stage = shortened(stages[s]);
        if (end == s + 1) text += stage + (end < stages.size() ? "|" : "");
        else text += fmt::format("({}|)*{},", stage, end - s);
        s = end;
    }
    return text;
}

Expected<Partition> partitionOfLayout(const ModelSpec& model, std::string_view layout)
{
    const Expected<std::string> unrolled = Unrolling(layout).text();
    if (!unrolled.ok()) return unrolled.error();
    Partition partition{0};
    std::size_t layer = 0;
    for (const char c : unrolled.value()) {
        if (c == kBorder) {
            partition.push_back(0);
            continue;
        }
        if (layer < model.layers.size() && letterOf(model.layers[layer]) != c)
            return Error{fmt::format("\"{}\" has {} as layer {}, and the model's is {} ({})", layout, c, layer, letterOf(model.layers[layer]),
                                     layerName(model.layers[layer]))};
        ++partition.back();
        ++layer;
    }
    if (layer != model.layers.size())
        return Error{fmt::format("\"{}\" has {}, the model {}", layout, counted(layer, "layer"), model.layers.size())};
    for (std::size_t s = 0; s < partition.size(); ++s)
        if (partition[s] == 0) return Error{fmt::format("\"{}\" leaves stage {} empty; every stage needs a layer", layout, s)};
    return partition;
}

} // namespace stagecraft::engine
