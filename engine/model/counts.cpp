// SPDX-License-Identifier: Apache-2.0
//
// Parameters, FLOPs and bytes of each layer.
#include "engine/model/model.h"
#include "engine/model/overloaded.h"
#include "engine/model/tied.h"

#include "traces/store/bounds.h"

#include <algorithm>
#include <numeric>

namespace stagecraft::engine {
namespace {

constexpr double kLossBytes = 4; // of what the loss is computed of, float32 in every precision
constexpr double kTokenBytes = 8; // int64
constexpr auto kMostBytes = static_cast<double>(traces::kMostBytes);

// What is beyond a number of bytes is refused by checkModel().
Bytes toBytes(double bytes) { return static_cast<Bytes>(std::min(bytes, kMostBytes)); }

std::int64_t linearParameters(std::int64_t in, std::int64_t out) { return in * out + out; }

double valuesOf(const RowShape& row)
{
    return std::accumulate(row.begin(), row.end(), 1.0, [](double product, std::int64_t extent) { return product * static_cast<double>(extent); });
}

// Pixels of an image, of one channel.
double pixelsOf(const RowShape& row) { return static_cast<double>(row[1]) * static_cast<double>(row[2]); }

// One layer with what goes in and out, for so many rows.
class Count {
public:
    Count(double rows, const RowShape& in, const RowShape& out, Precision precision) : rows_(rows), in_(in), out_(out), value_(valueBytes(precision)) {}

    LayerCounts operator()(const Linear& l) const
    {
        const double at = rows_ * positions(in_);
        const double in = l.in;
        const double out = l.out;
        // a ReLU keeps its result, which is the next layer's input; a GELU keeps its own input as well
        const double kept = in + (l.activation == Activation::Gelu ? out : 0);
        return {.parameters = linearParameters(l.in, l.out),
                .forwardFlops = 2 * at * in * out,
                .activationBytes = toBytes(value_ * at * kept),
                .wgradBytes = toBytes(value_ * at * (in + out))};
    }

    LayerCounts operator()(const Embedding& e) const
    {
        const double at = rows_ * e.sequence;
        const bool table = e.positions == Positions::Learned;
        return {.parameters = (static_cast<std::int64_t>(e.vocabulary) + (table ? e.sequence : 0)) * e.dim,
                .forwardFlops = table ? at * e.dim : 0, // the one addition
                .activationBytes = toBytes(kTokenBytes * (at + (table ? e.sequence : 0))),
                .wgradBytes = toBytes((kTokenBytes + value_ * e.dim) * at)};
    }

    LayerCounts operator()(const TransformerBlock& b) const
    {
        const double at = rows_ * positions(in_);
        const double d = b.dim;
        const double k = b.keyWidth();
        const double f = b.ffn;
        const double wide = b.wideWidth();
        LayerCounts c;
        c.parameters = 4LL * b.dim + linearParameters(b.dim, b.dim + 2LL * b.keyWidth()) + linearParameters(b.dim, b.dim) +
                       linearParameters(b.dim, b.wideWidth()) + linearParameters(b.ffn, b.dim);
        // queries, keys and values, the projection, the wide layer; and the two products of attention (dense, as Megatron-LM counts)
        c.attentionFlops = 4 * at * positions(in_) * d;
        c.forwardFlops = 2 * at * (d * (d + 2 * k) + d * d + d * wide + f * d) + c.attentionFlops;
        // both norms' input and result, attention's result (laid out as the projection takes it), and the wide layer before and after
        // GELU, or gate, up, silu(gate) and their product
        c.activationBytes = toBytes(value_ * at * (5 * d + attentionInput(b) + (b.feedForward == FeedForward::SwiGlu ? 4 * f : 2 * f)));
        // into qkv, projection, up and down: 3 d + f; out of them: d + 2 k, d, wide and d
        c.wgradBytes = toBytes(value_ * at * (6 * d + 2 * k + f + wide));
        return c;
    }

    LayerCounts operator()(const Head& h) const
    {
        const double at = rows_ * positions(in_);
        const double d = h.dim;
        const double vocabulary = h.vocabulary;
        return {.parameters = 2LL * h.dim + linearParameters(h.dim, h.vocabulary),
                .forwardFlops = 2 * at * d * vocabulary,
                .activationBytes = toBytes(at * (value_ * 2 * d + kLossBytes * vocabulary)),
                .wgradBytes = toBytes(value_ * at * (d + vocabulary))};
    }

    // The convolution keeps its input and the norm its own; the ReLU keeps its result, which is the next layer's input. A late weight
    // gradient of a norm needs its input and the gradient of its result, as that of a convolution does.
    LayerCounts operator()(const Convolution& c) const
    {
        const double in = valuesOf(in_);
        const double out = valuesOf(out_);
        return {.parameters = convolutionParameters(c.in, c.out, c.kernel),
                .forwardFlops = convolutionFlops(c.in, c.out, c.kernel),
                .activationBytes = toBytes(value_ * rows_ * (in + out + 2.0 * c.groups)),
                .wgradBytes = toBytes(value_ * rows_ * (in + 3 * out + 2.0 * c.groups))};
    }

    LayerCounts operator()(const ResidualBlock& b) const
    {
        const double in = valuesOf(in_);
        const double out = valuesOf(out_);
        const double norms = b.projects() ? 3 : 2;
        const double project = b.projects() ? 1 : 0;
        return {.parameters = convolutionParameters(b.in, b.out, 3) + convolutionParameters(b.out, b.out, 3) +
                              (b.projects() ? convolutionParameters(b.in, b.out, 1) : 0),
                .forwardFlops = convolutionFlops(b.in, b.out, 3) + convolutionFlops(b.out, b.out, 3) + project * convolutionFlops(b.in, b.out, 1),
                // the input, both convolutions' results and the ReLU between them; the projection's result
                .activationBytes = toBytes(value_ * rows_ * (in + (3 + project) * out + norms * 2 * b.groups)),
                // without the ReLU's, which is the second one's input: each norm's and convolution's gradient; both sides of the sum have
                // the same one
                .wgradBytes = toBytes(value_ * rows_ * (in + (7 + 2 * project) * out + norms * 2 * b.groups))};
    }

    LayerCounts operator()(const PooledHead& h) const
    {
        const double in = h.in;
        const double classes = h.classes;
        return {.parameters = linearParameters(h.in, h.classes),
                .forwardFlops = rows_ * (valuesOf(in_) + 2 * in * classes),
                .activationBytes = toBytes(rows_ * (value_ * in + kLossBytes * classes)),
                .wgradBytes = toBytes(value_ * rows_ * (in + classes))};
    }

    // Which values it keeps, a byte each.
    LayerCounts operator()(const Dropout&) const
    {
        const double values = rows_ * valuesOf(in_);
        return {.forwardFlops = values, .activationBytes = toBytes(values)};
    }

    LayerCounts operator()(const Synthetic& s) const
    {
        const double kept = std::max(static_cast<double>(s.activationBytes), value_ * s.in);
        return {.parameters = s.parameters,
                .forwardFlops = rows_ * s.flops,
                .activationBytes = toBytes(rows_ * kept),
                .wgradBytes = toBytes(rows_ * (kept + value_ * s.out))};
    }

    LayerCounts operator()(const TorchScript& t) const
    {
        const double perRow = t.flops > 0 ? t.flops : 2 * static_cast<double>(t.parameters);
        const double in = (t.vocabulary != 0 ? kTokenBytes : value_) * valuesOf(in_);
        const double out = value_ * valuesOf(out_);
        const double kept = t.activationBytes > 0 ? static_cast<double>(t.activationBytes) : in + out;
        return {.parameters = t.parameters,
                .forwardFlops = rows_ * perRow,
                .activationBytes = toBytes(rows_ * kept),
                .wgradBytes = toBytes(rows_ * (kept + out))};
    }

private:
    static double positions(const RowShape& row) { return row.size() == 2 ? static_cast<double>(row.front()) : 1; }

    // Values that attention keeps of one position. Queries, keys and values are parts of one product, which lasts as long as one of
    // them does; turned ones are new, and so are keys and values that are repeated for groups of heads, but for a single one, which all
    // heads can read as it is.
    static double attentionInput(const TransformerBlock& b)
    {
        const double d = b.dim;
        const double product = d + 2 * b.keyWidth();
        const bool turned = b.positions == Positions::Rotary;
        const bool repeated = b.keyHeads() != b.heads && b.keyHeads() != 1;
        if (repeated) return turned ? 3 * d : product + 2 * d;
        return product + (turned ? d + b.keyWidth() : 0);
    }

    // Without bias; and the norm behind it, which has a factor and a bias for each channel.
    static std::int64_t convolutionParameters(std::int64_t in, std::int64_t out, std::int64_t kernel) { return in * out * kernel * kernel + 2 * out; }

    [[nodiscard]] double convolutionFlops(double in, double out, double kernel) const
    {
        return 2 * rows_ * pixelsOf(out_) * in * out * kernel * kernel;
    }

    double rows_;
    const RowShape& in_;
    const RowShape& out_;
    double value_; // bytes of one
};

} // namespace

std::vector<LayerCounts> layerCounts(const ModelSpec& model, Precision precision)
{
    std::vector<LayerCounts> counts;
    counts.reserve(model.layers.size());
    if (model.empty()) return counts;
    const std::vector<RowShape> shapes = rowShapes(model);
    const double rows = model.microbatchRows;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        LayerCounts c = std::visit(Count(rows, shapes[i], shapes[i + 1], precision), model.layers[i]);
        c.name = layerName(model.layers[i]);
        c.backwardFlops = 2 * c.forwardFlops;
        c.outputBytes = toBytes(valueBytes(precision) * rows * valuesOf(shapes[i + 1]));
        counts.push_back(std::move(c));
    }
    if (!counts.empty()) counts.back().parameters -= tiedValues(model); // the embedding has it
    return counts;
}

} // namespace stagecraft::engine
