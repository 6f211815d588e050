// SPDX-License-Identifier: Apache-2.0
//
// Where the rows of a batch come from.
//
//   DataSpec data{.source = DataSource::Text, .tokens = TokenUnit::Character}; // the text that ships with the program
#pragma once

#include <cstdint>
#include <string>

namespace stagecraft::engine {

enum class DataSource : std::uint8_t {
    Synthetic, // from the run's seed, one batch for all steps
    Text,      // tokens of a text, another piece of it each step
    Idx,       // images and labels as MNIST has them (IDX files)
    Npy,       // arrays of NumPy, a row per sample
};
enum class TokenUnit : std::uint8_t { Character, Byte };

struct DataSpec {
    DataSource source = DataSource::Synthetic;
    std::string path;    // of text, images or inputs; empty: the text that ships
    std::string targets; // of labels or targets, for Idx and Npy
    TokenUnit tokens = TokenUnit::Character; // of a text

    bool operator==(const DataSpec&) const = default;
};

} // namespace stagecraft::engine
