// SPDX-License-Identifier: Apache-2.0
//
// What goes from layer to layer, and whether it fits.
#include "engine/model/model.h"
#include "engine/model/overloaded.h"
#include "engine/model/tied.h"

#include "traces/base/text.h"
#include "traces/store/bounds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace stagecraft::engine {
namespace {

constexpr int kMostSize = 1 << 20;
constexpr double kMostFlops = 1e18;            // of a synthetic or loaded layer, for one row
constexpr std::int64_t kMostParameters = std::int64_t{1} << 40;
constexpr auto kMostBytes = static_cast<double>(traces::kMostBytes);

Error atLayer(std::size_t i, const Layer& layer, const std::string& what)
{
    return Error{fmt::format("layer {} ({}): {}", i, layerName(layer), what)};
}

// "64 values", "16 positions of 64 values", "3 channels of 32x32"
std::string shapeText(const RowShape& shape)
{
    switch (shape.size()) {
    case 1: return traces::counted(shape[0], "value");
    case 2: return fmt::format("{} of {}", traces::counted(shape[0], "position"), traces::counted(shape[1], "value"));
    case 3: return fmt::format("{} of {}x{}", traces::counted(shape[0], "channel"), shape[1], shape[2]);
    default: return fmt::format("[{}]", fmt::join(shape, ", "));
    }
}

// The sizes of one layer by themselves; the first thing that is wrong with them.
class SizeCheck {
public:
    SizeCheck(std::size_t i, const Layer& layer) : i_(i), layer_(layer) {}

    void operator()(const Linear& l) { all({{"in", l.in}, {"out", l.out}}); }
    void operator()(const Embedding& e) { all({{"vocabulary", e.vocabulary}, {"sequence", e.sequence}, {"dim", e.dim}}); }
    void operator()(const TransformerBlock& b)
    {
        all({{"dim", b.dim}, {"heads", b.heads}, {"ffn", b.ffn}, {"key_value_heads", b.keyHeads()}});
        if (!error_.empty()) return;
        if (b.dim % b.heads != 0) return say(fmt::format("dim {} is no multiple of heads {}", b.dim, b.heads));
        if (b.heads % b.keyHeads() != 0)
            return say(fmt::format("heads {} are no multiple of key_value_heads {}: each of those serves as many of the others", b.heads,
                                   b.keyHeads()));
        if (b.positions == Positions::Rotary && b.headDim() % 2 != 0)
            say(fmt::format("a head has {}, and rotary positions turn them in pairs: take an even number, which is dim / heads",
                            traces::counted(b.headDim(), "value")));
    }
    void operator()(const Head& h) { all({{"dim", h.dim}, {"vocabulary", h.vocabulary}}); }
    void operator()(const Convolution& c)
    {
        all({{"in", c.in}, {"out", c.out}, {"kernel", c.kernel}, {"stride", c.stride}, {"groups", c.groups}});
        if (error_.empty() && c.kernel % 2 == 0) say(fmt::format("kernel {} has no middle; take an odd one", c.kernel));
        grouped(c.out, c.groups);
    }
    void operator()(const ResidualBlock& b)
    {
        all({{"in", b.in}, {"out", b.out}, {"stride", b.stride}, {"groups", b.groups}});
        grouped(b.out, b.groups);
    }
    void operator()(const PooledHead& h) { all({{"in", h.in}, {"classes", h.classes}}); }
    void operator()(const Dropout& d)
    {
        if (!(d.probability >= 0 && d.probability < 1)) say(fmt::format("p is {:g}; 0 to less than 1 is allowed", d.probability));
    }
    void operator()(const Synthetic& s)
    {
        all({{"in", s.in}, {"out", s.out}});
        counted(s.flops, s.activationBytes, s.parameters);
    }
    void operator()(const TorchScript& t)
    {
        if (t.file.empty()) say("file is empty; give the name of a file that torch.jit.save has written");
        for (const auto& [name, extents] : {std::pair{"in", &t.in}, {"out", &t.out}}) {
            if (extents->empty()) say(fmt::format("{} is empty; give the extents of one row, such as [784]", name));
            for (const int extent : *extents) all({{name, extent}});
        }
        if (t.vocabulary != 0) all({{"vocabulary", t.vocabulary}});
        if (t.vocabulary != 0 && t.in.size() != 1) say("it takes tokens, so in has one extent: the length of a sequence");
        counted(t.flops, t.activationBytes, t.parameters);
    }

    Expected<void> result() const
    {
        if (error_.empty()) return {};
        return atLayer(i_, layer_, error_);
    }

private:
    void say(std::string what)
    {
        if (error_.empty()) error_ = std::move(what);
    }
    void all(std::initializer_list<std::pair<std::string_view, int>> sizes)
    {
        for (const auto& [name, value] : sizes)
            if (value < 1 || value > kMostSize) say(fmt::format("{} is {}; 1 to {} is allowed", name, value, kMostSize));
    }
    void grouped(int channels, int groups)
    {
        if (error_.empty() && channels % groups != 0)
            say(fmt::format("{} cannot be divided into groups {} of equal size", traces::counted(channels, "channel"), groups));
    }
    void counted(double flops, Bytes activation, std::int64_t parameters)
    {
        if (!(flops >= 0 && flops <= kMostFlops)) say(fmt::format("flops is {:g}; 0 to {:g} is allowed", flops, kMostFlops));
        if (activation < 0 || activation > traces::kMostBytes)
            say(fmt::format("activation_bytes is {}; 0 to {} is allowed", activation, traces::kMostBytes));
        if (parameters < 1 || parameters > kMostParameters)
            say(fmt::format("parameters is {}; 1 to {} is allowed", parameters, kMostParameters));
    }

    std::size_t i_;
    const Layer& layer_;
    std::string error_;
};

RowShape extentsOf(const std::vector<int>& extents) { return {extents.begin(), extents.end()}; }

// What one row of a sound model's input is like.
RowShape firstShape(const ModelSpec& model)
{
    if (model.image) return {model.image->channels, model.image->height, model.image->width};
    return std::visit(Overloaded{[](const Linear& l) -> RowShape { return {l.in}; }, [](const Embedding& e) -> RowShape { return {e.sequence}; },
                                 [](const Synthetic& s) -> RowShape { return {s.in}; },
                                 [](const TorchScript& t) { return extentsOf(t.in); },
                                 [](const TransformerBlock&) -> RowShape { return {}; }, [](const Head&) -> RowShape { return {}; },
                                 [](const Convolution&) -> RowShape { return {}; }, [](const ResidualBlock&) -> RowShape { return {}; },
                                 [](const PooledHead&) -> RowShape { return {}; }, [](const Dropout&) -> RowShape { return {}; }},
                      model.layers.front());
}

// Behind a layer, if what is in front of it fits.
class ShapeAfter {
public:
    explicit ShapeAfter(RowShape before) : before_(std::move(before)) {}

    // The last extent alone counts: of a sequence each position is taken by itself.
    [[nodiscard]] std::optional<RowShape> operator()(const Linear& l) const { return lastTo(l.in, l.out, before_.size() <= 2); }
    [[nodiscard]] std::optional<RowShape> operator()(const Embedding& e) const { return RowShape{e.sequence, e.dim}; }
    [[nodiscard]] std::optional<RowShape> operator()(const TransformerBlock& b) const { return lastTo(b.dim, b.dim, before_.size() == 2); }
    [[nodiscard]] std::optional<RowShape> operator()(const Head& h) const { return lastTo(h.dim, h.vocabulary, before_.size() == 2); }
    [[nodiscard]] std::optional<RowShape> operator()(const Convolution& c) const { return image(c.in, c.out, c.stride); }
    [[nodiscard]] std::optional<RowShape> operator()(const ResidualBlock& b) const { return image(b.in, b.out, b.stride); }
    [[nodiscard]] std::optional<RowShape> operator()(const PooledHead& h) const
    {
        if (!image(h.in, h.in, 1)) return std::nullopt;
        return RowShape{h.classes};
    }
    [[nodiscard]] std::optional<RowShape> operator()(const Dropout&) const { return before_; }
    [[nodiscard]] std::optional<RowShape> operator()(const Synthetic& s) const { return lastTo(s.in, s.out, before_.size() == 1); }
    [[nodiscard]] std::optional<RowShape> operator()(const TorchScript& t) const
    {
        if (before_ != extentsOf(t.in)) return std::nullopt;
        return extentsOf(t.out);
    }

private:
    [[nodiscard]] std::optional<RowShape> lastTo(int in, int out, bool fits) const
    {
        if (!fits || before_.empty() || before_.back() != in) return std::nullopt;
        RowShape after = before_;
        after.back() = out;
        return after;
    }
    [[nodiscard]] std::optional<RowShape> image(int in, int out, int stride) const
    {
        if (before_.size() != 3 || before_.front() != in) return std::nullopt;
        return RowShape{out, (before_[1] + stride - 1) / stride, (before_[2] + stride - 1) / stride};
    }

    RowShape before_;
};

// What a layer takes, as a message tells it.
std::string takesText(const Layer& layer)
{
    const auto channels = [](int in) { return fmt::format("images of {}", traces::counted(in, "channel")); };
    return std::visit(Overloaded{[](const Linear& l) { return traces::counted(l.in, "value"); },
                                 [](const Embedding&) { return std::string("tokens"); },
                                 [](const TransformerBlock& b) { return fmt::format("sequences of {}", traces::counted(b.dim, "value")); },
                                 [](const Head& h) { return fmt::format("sequences of {}", traces::counted(h.dim, "value")); },
                                 [&](const Convolution& c) { return channels(c.in); }, [&](const ResidualBlock& b) { return channels(b.in); },
                                 [&](const PooledHead& h) { return channels(h.in); },
                                 [](const Dropout&) { return std::string("values"); },
                                 [](const Synthetic& s) { return traces::counted(s.in, "value"); },
                                 [](const TorchScript& t) { return shapeText(extentsOf(t.in)); }},
                      layer);
}

bool takesImages(const Layer& layer)
{
    return std::holds_alternative<Convolution>(layer) || std::holds_alternative<ResidualBlock>(layer) ||
           std::holds_alternative<PooledHead>(layer);
}

bool worksOnSequences(const Layer& layer)
{
    return std::holds_alternative<TransformerBlock>(layer) || std::holds_alternative<Head>(layer);
}

// The first layer takes the data itself.
Expected<void> checkInput(const ModelSpec& model)
{
    const Layer& first = model.layers.front();
    if (std::holds_alternative<Dropout>(first)) return atLayer(0, first, "it takes what another layer gives; put one before it");
    if (worksOnSequences(first)) return atLayer(0, first, "it works on sequences; the first layer must be an embedding");
    if (takesImages(first) && !model.image) return atLayer(0, first, "it takes images; say of what size: \"image\" with channels, height and width");
    if (!takesImages(first) && model.image)
        return Error{fmt::format("image: the first layer ({}) takes none; leave it out", layerName(first))};
    if (!model.image) return {};
    for (const auto& [name, value] : {std::pair{"channels", model.image->channels}, {"height", model.image->height}, {"width", model.image->width}})
        if (value < 1 || value > kMostSize) return Error{fmt::format("image: {} is {}; 1 to {} is allowed", name, value, kMostSize)};
    return {};
}

Expected<void> checkPlace(std::size_t i, const ModelSpec& model)
{
    const Layer& layer = model.layers[i];
    if (i != 0 && std::holds_alternative<Embedding>(layer)) return atLayer(i, layer, "an embedding takes tokens, so it must be the first layer");
    if (const auto* scripted = std::get_if<TorchScript>(&layer); i != 0 && scripted && scripted->vocabulary != 0)
        return atLayer(i, layer, "it takes tokens, so it must be the first layer");
    const auto* block = std::get_if<TransformerBlock>(&layer);
    const auto* embedding = std::get_if<Embedding>(&model.layers.front());
    if (block && embedding && block->positions != embedding->positions)
        return atLayer(i, layer, fmt::format("its positions are {}, those of the embedding {}; let both be the same",
                                             block->positions == Positions::Rotary ? "rotary" : "learned",
                                             embedding->positions == Positions::Rotary ? "rotary" : "learned"));
    return {};
}

Expected<void> checkLoss(const ModelSpec& model, const RowShape& output)
{
    if (model.loss != Loss::CrossEntropy) return {};
    if (output.size() == 1) {
        if (output.back() >= 2) return {};
        return Error{"the loss is cross-entropy over classes, but the last layer gives 1 value; take 2 or more, or mse"};
    }
    if (output.size() != 2)
        return Error{fmt::format("the loss is cross-entropy, but the last layer gives {}: end with a pooled_head, or take mse", shapeText(output))};
    const std::optional<TokenInput> tokens = tokenInput(model);
    if (!tokens) return Error{"the loss is cross-entropy on the next token; the first layer must be an embedding, or take mse"};
    if (output.front() != tokens->sequence)
        return Error{fmt::format("the loss is cross-entropy on the next token of {}, but the last layer gives {}",
                                 traces::counted(tokens->sequence, "position"), shapeText(output))};
    if (output.back() < tokens->vocabulary)
        return Error{fmt::format("the loss is cross-entropy over a vocabulary of {}, but the last layer gives {} values", tokens->vocabulary,
                                 output.back())};
    return {};
}

Expected<void> checkBytes(const ModelSpec& model)
{
    double bytes = 0;
    for (const LayerCounts& layer : layerCounts(model)) {
        bytes += 16.0 * static_cast<double>(layer.parameters); // floats, with gradient and two moments
        bytes += static_cast<double>(layer.activationBytes) + static_cast<double>(layer.outputBytes);
    }
    if (bytes < kMostBytes) return {};
    return Error{fmt::format("one micro-batch of {} through all layers needs {:.3g} bytes, more than can be counted ({:.3g}); "
                             "take fewer rows or smaller layers",
                             traces::counted(model.microbatchRows, "row"), bytes, kMostBytes)};
}

std::vector<std::int64_t> withRows(int rows, const RowShape& shape)
{
    std::vector<std::int64_t> whole{rows};
    whole.insert(whole.end(), shape.begin(), shape.end());
    return whole;
}

} // namespace

Expected<void> checkModel(const ModelSpec& model)
{
    if (model.empty()) return Error{"the model has no layers; add some, or take a plan that has a model"};
    if (model.layers.size() > kMostLayers)
        return Error{fmt::format("the model has {} layers; at most {} are possible", model.layers.size(), kMostLayers)};
    if (model.microbatchRows < 1 || model.microbatchRows > kMostSize)
        return Error{fmt::format("microbatch_rows is {}; 1 to {} is allowed", model.microbatchRows, kMostSize)};
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        SizeCheck sizes(i, model.layers[i]);
        std::visit(sizes, model.layers[i]);
        if (Expected<void> ok = sizes.result(); !ok.ok()) return ok;
    }
    if (Expected<void> input = checkInput(model); !input.ok()) return input;
    RowShape shape = firstShape(model);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        const Layer& layer = model.layers[i];
        if (Expected<void> place = checkPlace(i, model); !place.ok()) return place;
        const std::optional<RowShape> after = std::visit(ShapeAfter(shape), layer);
        if (!after && worksOnSequences(layer) && shape.size() != 2)
            return atLayer(i, layer, "it works on sequences; the first layer must be an embedding");
        if (!after && i == 0) return atLayer(i, layer, fmt::format("it takes {}, but the model's images have {}", takesText(layer), shapeText(shape)));
        if (!after)
            return atLayer(i, layer, fmt::format("it takes {}, but layer {} ({}) gives {}", takesText(layer), i - 1, layerName(model.layers[i - 1]),
                                                 shapeText(shape)));
        shape = *after;
    }
    if (Expected<void> tied = checkTied(model); !tied.ok()) return tied;
    if (Expected<void> loss = checkLoss(model, shape); !loss.ok()) return loss;
    return checkBytes(model);
}

std::vector<RowShape> rowShapes(const ModelSpec& model)
{
    std::vector<RowShape> shapes{firstShape(model)};
    for (const Layer& layer : model.layers) shapes.push_back(std::visit(ShapeAfter(shapes.back()), layer).value_or(RowShape{}));
    return shapes;
}

std::vector<std::int64_t> inputShape(const ModelSpec& model, int rows) { return withRows(rows, firstShape(model)); }
std::vector<std::int64_t> outputShape(const ModelSpec& model, int rows) { return withRows(rows, rowShapes(model).back()); }

std::vector<std::int64_t> targetShape(const ModelSpec& model, int rows)
{
    std::vector<std::int64_t> shape = outputShape(model, rows);
    if (model.loss == Loss::CrossEntropy) shape.pop_back();
    return shape;
}

std::optional<TokenInput> tokenInput(const ModelSpec& model)
{
    if (model.empty()) return std::nullopt;
    const Layer& first = model.layers.front();
    if (const auto* embedding = std::get_if<Embedding>(&first)) return TokenInput{embedding->vocabulary, embedding->sequence};
    if (const auto* scripted = std::get_if<TorchScript>(&first); scripted && scripted->vocabulary != 0)
        return TokenInput{scripted->vocabulary, scripted->in.front()};
    return std::nullopt;
}

} // namespace stagecraft::engine
