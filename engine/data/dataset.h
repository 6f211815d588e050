// SPDX-License-Identifier: Apache-2.0
//
// The data that a run learns from, out of files: a text, or samples with their targets. What a step takes is a function of seed and step
// alone, so that a run that is resumed goes on where it was, and every way of running takes the same rows. Immutable; any thread.
//
//   const Dataset data = openDataset({.source = DataSource::Text}).value();
//   if (auto fits = checkFit(plan.data, data, plan.model); !fits.ok()) return fits.error();   // data_fit.h
//   for (const std::int64_t row : data.rowsOf({.seed = 1, .step = 7, .rows = 32})) data.writeInputs(row, model, ...);
//
//   text      a row is a piece of it, which may begin anywhere; its targets are the tokens behind each
//   samples   a row of the inputs and the row of the targets with its number; every sample comes once in each pass over the data, which
//             takes them in an order of its own
#pragma once

#include "engine/data/array.h"
#include "engine/data/text_tokens.h"
#include "engine/model/model.h"
#include "engine/plan/data_spec.h"

#include <span>
#include <variant>
#include <vector>

namespace stagecraft::engine {

struct Samples {
    Array inputs;
    Array targets;
    // Bytes of images become (value / 255 - mean) / deviation, both over all of them; other numbers stay.
    double mean = 0;
    double deviation = 1;
};

struct RowsOfStep {
    std::uint64_t seed = 0;
    std::int64_t step = 0;
    std::int64_t rows = 0; // of a step
};

class Dataset {
public:
    explicit Dataset(TextTokens text) : content_(std::move(text)) {}
    explicit Dataset(Samples samples) : content_(std::move(samples)) {}

    [[nodiscard]] const TextTokens* text() const { return std::get_if<TextTokens>(&content_); }
    [[nodiscard]] const Samples* samples() const { return std::get_if<Samples>(&content_); }

    // The rows that a step takes. `length`: of a row, in tokens; of samples without meaning.
    [[nodiscard]] std::vector<std::int64_t> rowsOf(const RowsOfStep& step, std::int64_t length) const;

    // One row, into as many places as it has. Whole numbers are tokens and classes. Precondition: checkFit() had no objection.
    void writeInputs(std::int64_t row, std::span<float> to) const;
    void writeInputs(std::int64_t row, std::span<std::int64_t> to) const;
    void writeTargets(std::int64_t row, std::span<float> to) const;
    void writeTargets(std::int64_t row, std::span<std::int64_t> to) const;

private:
    std::variant<TextTokens, Samples> content_;
};

// Reads the files. Precondition: the source is not Synthetic. Errors name file, byte and remedy.
Expected<Dataset> openDataset(const DataSpec& spec);

// Does the plan's data go with its model at all, as far as can be said without reading a file?
Expected<void> checkData(const DataSpec& spec, const ModelSpec& model);

} // namespace stagecraft::engine
