// SPDX-License-Identifier: Apache-2.0
#include "engine/data/dataset.h"

#include "engine/data/idx.h"
#include "engine/data/npy.h"
#include "engine/data/shuffle.h"
#include "traces/base/text.h"
#include "traces/format/input_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace stagecraft::engine {

using traces::counted;

namespace {

constexpr std::size_t kMostBytesOfData = std::size_t{1} << 30;

std::string shapeText(const std::vector<std::int64_t>& shape) { return shape.empty() ? "one number" : fmt::format("{}", fmt::join(shape, "x")); }

double valueAt(const Array& array, std::size_t i)
{
    return std::visit([i](const auto& values) { return static_cast<double>(values[i]); }, array.values);
}

Expected<Array> readArray(const DataSpec& spec, const std::string& file)
{
    const Expected<std::string> bytes = traces::readWholeFile(file, kMostBytesOfData);
    if (!bytes.ok()) return bytes.error();
    Expected<Array> array = spec.source == DataSource::Idx ? readIdx(bytes.value()) : readNpy(bytes.value());
    if (!array.ok()) return array.error().in(file);
    if (array.value().rows() == 0 || array.value().rowSize() == 0)
        return Error{fmt::format("{}: it holds no values ({}); a run needs a row per sample", file, shapeText(array.value().shape))};
    return array;
}

void normalise(Samples& samples)
{
    const auto* bytes = std::get_if<std::vector<std::uint8_t>>(&samples.inputs.values);
    if (bytes == nullptr) return;
    double sum = 0;
    double squares = 0;
    for (const std::uint8_t value : *bytes) {
        sum += value;
        squares += static_cast<double>(value) * value;
    }
    const auto count = static_cast<double>(bytes->size());
    samples.mean = sum / count / 255;
    const double variance = squares / count / (255.0 * 255) - samples.mean * samples.mean;
    samples.deviation = variance > 0 ? std::sqrt(variance) : 1; // all are the same
}

Expected<Dataset> openText(const DataSpec& spec)
{
    Expected<std::string> own = spec.path.empty() ? std::string(shippedText()) : traces::readWholeFile(spec.path, kMostBytesOfData);
    if (!own.ok()) return own.error();
    Expected<TextTokens> tokens = textTokens(own.value(), spec.tokens);
    if (!tokens.ok()) return tokens.error().in(spec.path);
    return Dataset(std::move(tokens).value());
}

constexpr std::uint64_t kRowStream = 0x726f77; // apart from what else is drawn from the seed

} // namespace

Expected<Dataset> openDataset(const DataSpec& spec)
{
    if (spec.source == DataSource::Text) return openText(spec);
    Expected<Array> inputs = readArray(spec, spec.path);
    if (!inputs.ok()) return inputs.error();
    Expected<Array> targets = readArray(spec, spec.targets);
    if (!targets.ok()) return targets.error();
    if (inputs.value().rows() != targets.value().rows())
        return Error{fmt::format("data: {} has {} and {} has {}; give files of the same samples", spec.path, counted(inputs.value().rows(), "row"),
                                 spec.targets, targets.value().rows())};
    Samples samples{.inputs = std::move(inputs).value(), .targets = std::move(targets).value()};
    normalise(samples);
    return Dataset(std::move(samples));
}

Expected<void> checkData(const DataSpec& spec, const ModelSpec& model)
{
    const bool files = spec.source == DataSource::Idx || spec.source == DataSource::Npy;
    if (files && (spec.path.empty() || spec.targets.empty()))
        return Error{fmt::format("data.{}: it is missing; give the file of the {}", spec.path.empty() ? "path" : "targets",
                                 spec.path.empty() ? "inputs" : "targets")};
    if (!files && !spec.targets.empty()) return Error{"data.targets: only \"idx\" and \"npy\" have a file of targets; leave it out"};
    if (spec.source == DataSource::Synthetic && !spec.path.empty())
        return Error{"data.path: synthetic data comes from the seed; name a source, or leave the path out"};
    if (spec.source != DataSource::Text && spec.tokens != TokenUnit::Character)
        return Error{"data.tokens: only a text has tokens; leave it out"};
    if (model.empty()) return {};
    const bool tokens = tokenInput(model).has_value();
    if (spec.source == DataSource::Text && (!tokens || model.loss != Loss::CrossEntropy))
        return Error{"data.source: a text needs a model that begins with an embedding and whose loss is cross_entropy"};
    if (spec.source == DataSource::Idx && tokens)
        return Error{"data.source: images are no tokens, and the model begins with an embedding; take \"text\", or another model"};
    return {};
}

std::vector<std::int64_t> Dataset::rowsOf(const RowsOfStep& step, std::int64_t length) const
{
    std::vector<std::int64_t> rows;
    const std::uint64_t stream = mixed(step.seed ^ kRowStream);
    for (std::int64_t r = 0; r < step.rows; ++r) {
        const auto number = static_cast<std::uint64_t>(step.step) * static_cast<std::uint64_t>(step.rows) + static_cast<std::uint64_t>(r);
        if (text() != nullptr) {
            const auto places = text()->tokens.size() - static_cast<std::size_t>(length);
            rows.push_back(static_cast<std::int64_t>(mixed(stream + number * kSplitMixStep) % places));
        } else {
            const auto count = static_cast<std::uint64_t>(samples()->inputs.rows());
            rows.push_back(static_cast<std::int64_t>(shuffled(number % count, count, mixed(stream + number / count * kSplitMixStep))));
        }
    }
    return rows;
}

void Dataset::writeInputs(std::int64_t row, std::span<float> to) const
{
    const Samples& from = *samples();
    const bool scaled = std::holds_alternative<std::vector<std::uint8_t>>(from.inputs.values);
    const std::size_t begin = static_cast<std::size_t>(row) * to.size();
    for (std::size_t i = 0; i < to.size(); ++i) {
        const double value = valueAt(from.inputs, begin + i);
        to[i] = static_cast<float>(scaled ? (value / 255 - from.mean) / from.deviation : value);
    }
}

void Dataset::writeInputs(std::int64_t row, std::span<std::int64_t> to) const
{
    const std::size_t begin = static_cast<std::size_t>(row) * (text() ? 1 : to.size());
    for (std::size_t i = 0; i < to.size(); ++i)
        to[i] = text() ? text()->tokens[begin + i] : static_cast<std::int64_t>(valueAt(samples()->inputs, begin + i));
}

void Dataset::writeTargets(std::int64_t row, std::span<float> to) const
{
    const std::size_t begin = static_cast<std::size_t>(row) * to.size();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(valueAt(samples()->targets, begin + i));
}

void Dataset::writeTargets(std::int64_t row, std::span<std::int64_t> to) const
{
    const std::size_t begin = static_cast<std::size_t>(row) * (text() ? 1 : to.size());
    for (std::size_t i = 0; i < to.size(); ++i)
        to[i] = text() ? text()->tokens[begin + 1 + i] : static_cast<std::int64_t>(valueAt(samples()->targets, begin + i));
}

} // namespace stagecraft::engine
