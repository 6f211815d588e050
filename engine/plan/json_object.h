// SPDX-License-Identifier: Apache-2.0
//
// Reads a JSON object key by key, and keeps the first thing that is wrong with it: a key that nobody asked for, a wrong
// type, a value out of range. Private to the engine's .cpp files; nlohmann::json stays out of public headers.
//
//   JsonObject object(json, "pipeline");
//   object.integer("ranks", plan.pipeline.ranks, 1, 1024);
//   if (Expected<void> read = object.finish(); !read.ok()) return read.error();
#pragma once

#include "traces/base/expected.h"
#include "traces/base/units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace stagecraft::engine {

using Json = nlohmann::json;

class JsonObject {
public:
    JsonObject(const Json& json, std::string path) : json_(json), path_(std::move(path))
    {
        if (!json_.is_object()) fail(path_.empty() ? "the document" : path_, "must be an object { ... }, not " + shown(json_));
    }

    [[nodiscard]] bool has(std::string_view key) const { return json_.is_object() && json_.contains(key); }

    // The value of a key, or null where the key is missing or an error came before.
    const Json* find(std::string_view key)
    {
        asked_.emplace(key);
        if (!error_.empty()) return nullptr;
        const auto at = json_.find(key);
        return at == json_.end() ? nullptr : &*at;
    }
    const Json* require(std::string_view key)
    {
        const Json* value = find(key);
        if (value == nullptr) fail(pathOf(key), "is missing");
        return value;
    }

    template <class Int>
    void integer(std::string_view key, Int& out, Int least, Int most)
    {
        const Json* value = find(key);
        if (value == nullptr) return;
        const bool whole = value->is_number_integer();
        const bool fits = whole && (value->is_number_unsigned() ? std::in_range<Int>(value->get<std::uint64_t>())
                                                                : std::in_range<Int>(value->get<std::int64_t>()));
        if (!fits || value->get<Int>() < least || value->get<Int>() > most)
            return fail(pathOf(key), fmt::format("{} is not allowed; a whole number from {} to {}", shown(*value), least, most));
        out = value->get<Int>();
    }

    void number(std::string_view key, double& out, double least, double most)
    {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (!value->is_number() || !(value->get<double>() >= least) || !(value->get<double>() <= most))
            return fail(pathOf(key), fmt::format("{} is not allowed; a number from {:g} to {:g}", shown(*value), least, most));
        out = value->get<double>();
    }

    void boolean(std::string_view key, bool& out)
    {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (!value->is_boolean()) return fail(pathOf(key), fmt::format("{} is not allowed; true or false", shown(*value)));
        out = value->get<bool>();
    }

    void text(std::string_view key, std::string& out)
    {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (!value->is_string()) return fail(pathOf(key), "must be a text, not " + shown(*value));
        out = value->get<std::string>();
    }

    // A text that `parse` turns into a value, such as parseDuration.
    template <class T>
    void parsed(std::string_view key, T& out, traces::Expected<T> (*parse)(std::string_view))
    {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (!value->is_string())
            return fail(pathOf(key), "must be a text with a number and its unit, not " + shown(*value));
        traces::Expected<T> result = parse(value->get_ref<const std::string&>());
        if (!result.ok()) return fail(pathOf(key), result.error().message);
        out = result.value();
    }

    template <class Enum>
    void choice(std::string_view key, Enum& out, std::span<const std::pair<std::string_view, Enum>> choices)
    {
        const Json* value = find(key);
        if (value == nullptr) return;
        std::string allowed;
        for (const auto& [word, meaning] : choices) {
            if (value->is_string() && value->get_ref<const std::string&>() == word) {
                out = meaning;
                return;
            }
            allowed += (allowed.empty() ? "" : ", ") + fmt::format("\"{}\"", word);
        }
        fail(pathOf(key), fmt::format("{} is not allowed; one of {}", shown(*value), allowed));
    }

    // Calls visit(element, path of the element) for each; visit returns Expected<void>.
    template <class Visit>
    void array(std::string_view key, Visit&& visit)
    {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (!value->is_array()) return fail(pathOf(key), "must be a list [ ... ], not " + shown(*value));
        for (std::size_t i = 0; i < value->size() && error_.empty(); ++i)
            take(visit((*value)[i], fmt::format("{}[{}]", pathOf(key), i)));
    }

    // Keeps the error of a nested read.
    void take(const traces::Expected<void>& nested)
    {
        if (!nested.ok() && error_.empty()) error_ = nested.error().message;
    }

    void fail(const std::string& where, const std::string& what)
    {
        if (error_.empty()) error_ = where + ": " + what;
    }

    [[nodiscard]] bool sound() const { return error_.empty(); } // so far

    [[nodiscard]] std::string pathOf(std::string_view key) const
    {
        return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
    }

    // After all keys were asked for: the first error, or the first key that is not known.
    traces::Expected<void> finish()
    {
        if (!error_.empty()) return traces::Error{error_};
        for (const auto& [key, value] : json_.items()) {
            if (asked_.contains(key)) continue;
            std::string known;
            for (const std::string& name : asked_) known += (known.empty() ? "" : ", ") + name;
            return traces::Error{fmt::format("{}: this key is not known; known here are {}", pathOf(key), known)};
        }
        return {};
    }

    // A value as a message shows it; long ones are cut, and what holds others is only named.
    static std::string shown(const Json& value)
    {
        if (value.is_array()) return "a list";
        if (value.is_object()) return "an object";
        std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
        constexpr std::size_t kMost = 60;
        if (text.size() > kMost) text = text.substr(0, kMost) + "...";
        return text;
    }

private:
    const Json& json_;
    std::string path_;
    std::set<std::string, std::less<>> asked_;
    std::string error_;
};

// Parses a JSON text. Refused beside what is no JSON: a key that stands twice in its object, of which one value would be lost
// without a word, and a depth that no plan has, before it overflows a stack. Where the place is known the error tells it.
traces::Expected<Json> parseJson(std::string_view text);

} // namespace stagecraft::engine
