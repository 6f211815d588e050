// SPDX-License-Identifier: Apache-2.0
#include "engine/data/text_tokens.h"

#include "traces/base/utf8.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

namespace stagecraft::engine {

using traces::Error;
using traces::Expected;

namespace {

TextTokens byBytes(std::string_view text)
{
    TextTokens made;
    for (int b = 0; b < 256; ++b) made.vocabulary.emplace_back(1, static_cast<char>(b));
    made.tokens.reserve(text.size());
    for (const char c : text) made.tokens.push_back(static_cast<unsigned char>(c));
    return made;
}

} // namespace

double TextTokens::entropy() const
{
    std::map<std::int32_t, double> count;
    for (const std::int32_t token : tokens) ++count[token];
    double sum = 0;
    for (const auto& [token, times] : count) {
        const double share = times / static_cast<double>(tokens.size());
        sum -= share * std::log(share);
    }
    return sum;
}

std::string TextTokens::text(const std::vector<std::int64_t>& of) const
{
    std::string text;
    for (const std::int64_t token : of)
        text += token >= 0 && token < static_cast<std::int64_t>(vocabulary.size()) ? vocabulary[static_cast<std::size_t>(token)] : "\ufffd";
    return text;
}

// The bytes of UTF-8 are in the order of the code points.
Expected<TextTokens> textTokens(std::string_view text, TokenUnit unit)
{
    if (unit == TokenUnit::Byte) return byBytes(text);
    std::map<std::string_view, std::int32_t> characters;
    std::vector<std::string_view> order;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = traces::utf8Length(text.substr(at));
        if (length == 0)
            return Error{fmt::format("byte {} is no UTF-8; convert the text (iconv -t UTF-8), or take its bytes as tokens", at)};
        order.push_back(text.substr(at, length));
        characters.emplace(order.back(), 0);
        at += length;
    }
    TextTokens made;
    for (auto& [character, number] : characters) {
        number = static_cast<std::int32_t>(made.vocabulary.size());
        made.vocabulary.emplace_back(character);
    }
    made.tokens.reserve(order.size());
    for (const std::string_view character : order) made.tokens.push_back(characters.at(character));
    return made;
}

} // namespace stagecraft::engine
