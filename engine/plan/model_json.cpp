// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/model_json.h"

#include "engine/plan/plan_words.h"

namespace stagecraft::engine {

using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr int kMostSize = 1 << 20;   // of a layer
constexpr int kMostRepeat = 1 << 12; // of a layer
constexpr double kMostFlops = 1e18;
constexpr std::int64_t kMostParameters = std::int64_t{1} << 40;

template <class Enum, std::size_t N>
std::span<const Word<Enum>> choices(const std::array<Word<Enum>, N>& words)
{
    return words;
}

// The keys of each layer.
class LayerReader {
public:
    explicit LayerReader(JsonObject& object) : object_(object) {}

    void operator()(Linear& layer)
    {
        size("in", layer.in);
        size("out", layer.out);
        object_.choice("activation", layer.activation, choices(kActivationWords));
    }
    void operator()(Embedding& layer)
    {
        size("vocabulary", layer.vocabulary);
        size("sequence", layer.sequence);
        size("dim", layer.dim);
        object_.choice("positions", layer.positions, choices(kPositionsWords));
    }
    void operator()(TransformerBlock& layer)
    {
        size("dim", layer.dim);
        size("heads", layer.heads);
        size("ffn", layer.ffn);
        object_.integer("key_value_heads", layer.keyValueHeads, 1, kMostSize);
        object_.choice("positions", layer.positions, choices(kPositionsWords));
        object_.choice("activation", layer.feedForward, choices(kFeedForwardWords));
    }
    void operator()(Head& layer)
    {
        size("dim", layer.dim);
        size("vocabulary", layer.vocabulary);
    }
    void operator()(Convolution& layer)
    {
        size("in", layer.in);
        size("out", layer.out);
        object_.integer("kernel", layer.kernel, 1, kMostSize);
        object_.integer("stride", layer.stride, 1, kMostSize);
        object_.integer("groups", layer.groups, 1, kMostSize);
    }
    void operator()(ResidualBlock& layer)
    {
        size("in", layer.in);
        size("out", layer.out);
        object_.integer("stride", layer.stride, 1, kMostSize);
        object_.integer("groups", layer.groups, 1, kMostSize);
    }
    void operator()(PooledHead& layer)
    {
        size("in", layer.in);
        size("classes", layer.classes);
    }
    void operator()(Dropout& layer) { object_.number("p", layer.probability, 0, 1); }
    void operator()(Synthetic& layer)
    {
        size("in", layer.in);
        size("out", layer.out);
        sizes(layer);
    }
    void operator()(TorchScript& layer)
    {
        if (object_.require("file") != nullptr) object_.text("file", layer.file);
        extents("in", layer.in);
        extents("out", layer.out);
        object_.integer("vocabulary", layer.vocabulary, 1, kMostSize);
        object_.require("parameters");
        sizes(layer);
    }

private:
    void size(std::string_view key, int& out)
    {
        if (object_.require(key) != nullptr) object_.integer(key, out, 1, kMostSize);
    }
    void extents(std::string_view key, std::vector<int>& out)
    {
        object_.require(key);
        object_.array(key, [&](const Json& extent, const std::string& path) -> Expected<void> {
            if (!extent.is_number_integer() || extent < 1 || extent > kMostSize)
                return Error{fmt::format("{}: {} is not allowed; a whole number from 1 to {}", path, JsonObject::shown(extent), kMostSize)};
            out.push_back(extent.get<int>());
            return {};
        });
    }
    template <class Sized>
    void sizes(Sized& layer)
    {
        object_.integer("parameters", layer.parameters, std::int64_t{1}, kMostParameters);
        object_.number("flops", layer.flops, 0, kMostFlops);
        object_.parsed("activation_bytes", layer.activationBytes, &traces::parseSize);
    }

    JsonObject& object_;
};

Expected<Layer> layerOf(std::string_view type, const std::string& path)
{
    std::string known;
    for (const LayerType& each : layerTypes()) {
        if (each.name == type) return each.blank;
        known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", each.name);
    }
    return Error{fmt::format("{}: \"{}\" is not allowed; one of {}", path, type, known)};
}

Expected<void> readLayer(const Json& json, const std::string& path, std::vector<Layer>& layers)
{
    JsonObject object(json, path);
    std::string type;
    int repeat = 1;
    if (object.require("type") != nullptr) object.text("type", type);
    object.integer("repeat", repeat, 1, kMostRepeat);
    Expected<Layer> layer = layerOf(type, object.pathOf("type"));
    if (layer.ok()) std::visit(LayerReader(object), layer.value());
    else object.take(layer.error());
    if (layers.size() + static_cast<std::size_t>(repeat) > kMostLayers)
        object.fail(path, fmt::format("the model would have {} layers; at most {} are possible",
                                      layers.size() + static_cast<std::size_t>(repeat), kMostLayers));
    if (Expected<void> read = object.finish(); !read.ok()) return read;
    layers.insert(layers.end(), static_cast<std::size_t>(repeat), layer.value());
    return {};
}

Expected<void> readImage(const Json& json, ImageSize& image)
{
    JsonObject object(json, "model.image");
    for (const auto& [key, extent] : {std::pair{"channels", &image.channels}, {"height", &image.height}, {"width", &image.width}})
        if (object.require(key) != nullptr) object.integer(key, *extent, 1, kMostSize);
    return object.finish();
}

struct LayerWriter {
    OrderedJson& json;

    void operator()(const Linear& layer) const
    {
        json["in"] = layer.in;
        json["out"] = layer.out;
        if (layer.activation != Activation::None) json["activation"] = wordOf(kActivationWords, layer.activation);
    }
    void operator()(const Embedding& layer) const
    {
        json["vocabulary"] = layer.vocabulary;
        json["sequence"] = layer.sequence;
        json["dim"] = layer.dim;
        if (layer.positions != Positions::Learned) json["positions"] = wordOf(kPositionsWords, layer.positions);
    }
    void operator()(const TransformerBlock& layer) const
    {
        json["dim"] = layer.dim;
        json["heads"] = layer.heads;
        json["ffn"] = layer.ffn;
        if (layer.keyValueHeads != 0) json["key_value_heads"] = layer.keyValueHeads;
        if (layer.positions != Positions::Learned) json["positions"] = wordOf(kPositionsWords, layer.positions);
        if (layer.feedForward != FeedForward::Gelu) json["activation"] = wordOf(kFeedForwardWords, layer.feedForward);
    }
    void operator()(const Head& layer) const
    {
        json["dim"] = layer.dim;
        json["vocabulary"] = layer.vocabulary;
    }
    void operator()(const Convolution& layer) const
    {
        const Convolution usual;
        json["in"] = layer.in;
        json["out"] = layer.out;
        if (layer.kernel != usual.kernel) json["kernel"] = layer.kernel;
        if (layer.stride != usual.stride) json["stride"] = layer.stride;
        if (layer.groups != usual.groups) json["groups"] = layer.groups;
    }
    void operator()(const ResidualBlock& layer) const
    {
        const ResidualBlock usual;
        json["in"] = layer.in;
        json["out"] = layer.out;
        if (layer.stride != usual.stride) json["stride"] = layer.stride;
        if (layer.groups != usual.groups) json["groups"] = layer.groups;
    }
    void operator()(const PooledHead& layer) const
    {
        json["in"] = layer.in;
        json["classes"] = layer.classes;
    }
    void operator()(const Dropout& layer) const { json["p"] = layer.probability; }
    void operator()(const Synthetic& layer) const
    {
        json["in"] = layer.in;
        json["out"] = layer.out;
        sizes(layer);
    }
    void operator()(const TorchScript& layer) const
    {
        json["file"] = layer.file;
        json["in"] = layer.in;
        json["out"] = layer.out;
        if (layer.vocabulary != 0) json["vocabulary"] = layer.vocabulary;
        sizes(layer);
    }

private:
    template <class Sized>
    void sizes(const Sized& layer) const
    {
        if (layer.parameters != Sized{}.parameters) json["parameters"] = layer.parameters;
        if (layer.flops != 0) json["flops"] = layer.flops;
        if (layer.activationBytes != 0) json["activation_bytes"] = traces::exactSize(layer.activationBytes);
    }
};

} // namespace

Expected<void> readModel(const Json& json, ModelSpec& model)
{
    JsonObject object(json, "model");
    if (const Json* image = object.find("image")) object.take(readImage(*image, model.image.emplace()));
    if (object.require("layers") != nullptr)
        object.array("layers", [&](const Json& layer, const std::string& path) { return readLayer(layer, path, model.layers); });
    if (object.sound() && model.layers.empty()) object.fail("model.layers", "the list is empty; give the layers, or leave the model out to simulate alone");
    object.choice("loss", model.loss, choices(kLossWords));
    object.integer("microbatch_rows", model.microbatchRows, 1, kMostSize);
    object.boolean("tied_embeddings", model.tiedEmbeddings);
    return object.finish();
}

OrderedJson modelJson(const ModelSpec& model)
{
    OrderedJson json;
    if (model.image) json["image"] = {{"channels", model.image->channels}, {"height", model.image->height}, {"width", model.image->width}};
    OrderedJson layers = OrderedJson::array();
    for (std::size_t i = 0; i < model.layers.size();) {
        std::size_t end = i + 1;
        while (end < model.layers.size() && model.layers[end] == model.layers[i]) ++end;
        OrderedJson layer{{"type", layerTypes()[model.layers[i].index()].name}};
        std::visit(LayerWriter{layer}, model.layers[i]);
        if (end - i > 1) layer["repeat"] = end - i;
        layers.push_back(std::move(layer));
        i = end;
    }
    json["layers"] = std::move(layers);
    json["loss"] = wordOf(kLossWords, model.loss);
    json["microbatch_rows"] = model.microbatchRows;
    if (model.tiedEmbeddings) json["tied_embeddings"] = true;
    return json;
}

} // namespace stagecraft::engine
