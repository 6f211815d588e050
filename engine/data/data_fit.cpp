// SPDX-License-Identifier: Apache-2.0
#include "engine/data/data_fit.h"

#include "traces/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

namespace stagecraft::engine {

using traces::counted;

namespace {

std::int64_t productOf(const std::vector<std::int64_t>& shape)
{
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, [](std::int64_t product, std::int64_t extent) { return product * extent; });
}

// {784}, {28, 28} or {1, 28, 28}: what one row of the model's input or output is.
std::vector<std::int64_t> rowOf(std::vector<std::int64_t> shape)
{
    shape.erase(shape.begin());
    return shape;
}

std::string shapeText(const std::vector<std::int64_t>& shape) { return shape.empty() ? "one number" : fmt::format("{}", fmt::join(shape, "x")); }

double valueAt(const Array& array, std::size_t i)
{
    return std::visit([i](const auto& values) { return static_cast<double>(values[i]); }, array.values);
}

// "data: my.txt"; a text without a file is the one that ships with the program.
std::string inFile(const std::string& file) { return file.empty() ? "data" : "data: " + file; }

Expected<void> checkText(const TextTokens& text, const std::string& file, const TokenInput& input)
{
    if (static_cast<std::size_t>(input.vocabulary) < text.vocabulary.size())
        return Error{fmt::format("{}: the text has {} different tokens, and the model an embedding for {}; set vocabulary to {} or more, in the "
                                 "embedding and in the head",
                                 inFile(file), text.vocabulary.size(), input.vocabulary, text.vocabulary.size())};
    if (text.tokens.size() <= static_cast<std::size_t>(input.sequence))
        return Error{fmt::format("{}: the text has {}, and a sequence takes {} and the one behind; take a longer text or a shorter sequence",
                                 inFile(file), counted(text.tokens.size(), "token"), input.sequence)};
    return {};
}

// Numbers that stand for tokens or classes; `enlarge` names what makes room for more of them.
struct Numbers {
    const Array& array;
    const std::string& file;
    std::string_view what; // "token"
    std::int64_t known = 0;
    std::string_view enlarge;
};

Expected<void> checkNumbers(const Numbers& numbers)
{
    const Array& array = numbers.array;
    if (!array.whole())
        return Error{fmt::format("{}: it holds numbers with a point, and a {} is a whole one; save array.astype('int64')", inFile(numbers.file),
                                 numbers.what)};
    for (std::size_t i = 0; i < static_cast<std::size_t>(array.rows() * array.rowSize()); ++i) {
        const double value = valueAt(array, i);
        if (value >= 0 && value < static_cast<double>(numbers.known)) continue;
        const std::string remedy = value < 0 ? "correct the file" : fmt::format("correct the file, or {} {:.0f}", numbers.enlarge, value + 1);
        return Error{fmt::format("{}: row {} (the first is 0) has the {} {:.0f}, and the model knows 0 to {}; {}", inFile(numbers.file),
                                 i / static_cast<std::size_t>(array.rowSize()), numbers.what, value, numbers.known - 1, remedy)};
    }
    return {};
}

std::string targetRemedy(const Samples& samples, bool classes, std::int64_t known)
{
    if (!classes) return "give targets of that shape, or a last layer whose outputs have the targets'";
    if (samples.targets.rowSize() == known) return "it seems to hold a value for every class: save the number of the one, array.argmax(-1)";
    return "give the number of a class for each";
}

Expected<void> checkSamples(const Samples& samples, const DataSpec& from, const ModelSpec& model)
{
    const std::vector<std::int64_t> in = rowOf(inputShape(model, 1));
    if (samples.inputs.rowSize() != productOf(in))
        return Error{fmt::format("{}: a row has {} ({}), and the model takes {} ({}); give rows of that shape, or a first layer that takes the file's",
                                 inFile(from.path), counted(samples.inputs.rowSize(), "value"), shapeText(rowOf(samples.inputs.shape)), productOf(in),
                                 shapeText(in))};
    if (const std::optional<TokenInput> input = tokenInput(model)) {
        const Numbers tokens{samples.inputs, from.path, "token", input->vocabulary, "set vocabulary, in the embedding and in the head, to at least"};
        if (Expected<void> fit = checkNumbers(tokens); !fit.ok()) return fit;
    }
    const bool classes = model.loss == Loss::CrossEntropy;
    const std::vector<std::int64_t> out = rowOf(targetShape(model, 1));
    const std::int64_t known = outputShape(model, 1).back();
    if (samples.targets.rowSize() != productOf(out))
        return Error{fmt::format("{}: a target has {} ({}), and the loss compares {} ({}); {}", inFile(from.targets),
                                 counted(samples.targets.rowSize(), "value"), shapeText(rowOf(samples.targets.shape)), productOf(out), shapeText(out),
                                 targetRemedy(samples, classes, known))};
    if (!classes) return {};
    return checkNumbers({samples.targets, from.targets, "class", known, "give the last layer as many outputs as there are classes, at least"});
}

} // namespace

Expected<void> checkFit(const DataSpec& from, const Dataset& data, const ModelSpec& model)
{
    if (data.text() != nullptr) return checkText(*data.text(), from.path, *tokenInput(model));
    return checkSamples(*data.samples(), from, model);
}

} // namespace stagecraft::engine
