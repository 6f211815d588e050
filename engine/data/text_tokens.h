// SPDX-License-Identifier: Apache-2.0
//
// A text as tokens: its characters (code points of UTF-8) in the order of their numbers, or its bytes. Plain value.
//
//   const TextTokens text = textTokens("abba", TokenUnit::Character).value();
//   text.tokens == {0, 1, 1, 0}, text.vocabulary == {"a", "b"}
//   text.entropy()                // 0.69: of a token without those before it, in nats
#pragma once

#include "engine/plan/data_spec.h"
#include "traces/base/expected.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::engine {

struct TextTokens {
    std::vector<std::int32_t> tokens;
    std::vector<std::string> vocabulary; // what each token stands for; of bytes all 256

    // -sum p ln p over the tokens' shares: the loss of whoever knows how often each comes, and nothing of the order (Shannon 1948).
    [[nodiscard]] double entropy() const;
    // The text of tokens; those beyond the vocabulary, which a model may have, as U+FFFD.
    [[nodiscard]] std::string text(const std::vector<std::int64_t>& of) const;
};

// An error names the byte that is no UTF-8.
traces::Expected<TextTokens> textTokens(std::string_view text, TokenUnit unit);

// The text that ships with the program: resources/texts/line.txt.
std::string_view shippedText();

} // namespace stagecraft::engine
