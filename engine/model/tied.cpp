// SPDX-License-Identifier: Apache-2.0
#include "engine/model/tied.h"

#include <fmt/format.h>

namespace stagecraft::engine {

std::int64_t tiedValues(const ModelSpec& model)
{
    if (!model.tiedEmbeddings || model.empty()) return 0;
    const auto* embedding = std::get_if<Embedding>(&model.layers.front());
    return embedding == nullptr ? 0 : static_cast<std::int64_t>(embedding->vocabulary) * embedding->dim;
}

std::vector<LayerCounts> heldCounts(const ModelSpec& model, std::size_t stages, Precision precision)
{
    std::vector<LayerCounts> counts = layerCounts(model, precision);
    if (stages > 1) counts.back().parameters += tiedValues(model);
    return counts;
}

Expected<void> checkTied(const ModelSpec& model)
{
    if (!model.tiedEmbeddings) return {};
    const auto* embedding = std::get_if<Embedding>(&model.layers.front());
    if (embedding == nullptr)
        return Error{fmt::format("tied_embeddings: the first layer is {}, and there is no table to share; it must be an embedding",
                                 layerName(model.layers.front()))};
    const auto* head = std::get_if<Head>(&model.layers.back());
    if (head == nullptr)
        return Error{fmt::format("tied_embeddings: the last layer is {}, and only a head can take the embedding's table", layerName(model.layers.back()))};
    if (head->vocabulary != embedding->vocabulary || head->dim != embedding->dim)
        return Error{fmt::format("tied_embeddings: the table is {}×{}, and the head's matrix {}×{}; both need the same vocabulary and dim",
                                 embedding->vocabulary, embedding->dim, head->vocabulary, head->dim)};
    return {};
}

} // namespace stagecraft::engine
