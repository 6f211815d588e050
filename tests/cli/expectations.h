// SPDX-License-Identifier: Apache-2.0
//
// What the tests of several verbs ask of an output.
#pragma once

#include "tests/cli/process.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace stagecraft::cli::test {

using Json = nlohmann::ordered_json;

inline std::vector<std::string> keysOf(const Json& object)
{
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.push_back(key);
    return keys;
}

// The verb succeeds, says nothing on standard error and prints one JSON value.
inline Json jsonOf(const std::vector<std::string>& arguments)
{
    const Output output = stagecraft(arguments);
    EXPECT_EQ(output.exitCode, 0) << output.err;
    EXPECT_EQ(output.err, "");
    Json json = Json::parse(output.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << output.out;
    return json;
}

// The same for a real run or its trace, which may say that the machine was busy.
inline Json runJsonOf(const std::vector<std::string>& arguments)
{
    const Output output = stagecraft(arguments);
    EXPECT_EQ(output.exitCode, 0) << output.err;
    EXPECT_THAT(output.err, testing::AnyOf("", testing::HasSubstr(": the machine was busy")));
    Json json = Json::parse(output.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << output.out;
    return json;
}

// Ends with this code, says this on standard error, and prints no figures.
inline void expectRefusal(const std::vector<std::string>& arguments, int exitCode, const std::string& message)
{
    const Output output = stagecraft(arguments);
    EXPECT_EQ(output.exitCode, exitCode) << output.err;
    EXPECT_THAT(output.err, testing::HasSubstr(message));
    EXPECT_THAT(output.err, testing::StartsWith("stagecraft-cli: "));
    EXPECT_EQ(output.out, "");
}

inline const std::vector<std::string> kRankKeys{
    "rank", "replica", "busy_ns",           "idle_ns",           "first_start_ns",        "last_end_ns",
    "peak_activations", "peak_memory_bytes", "peak_memory_ns", "peak_memory_by_class", "peak_memory_held",
    "memory_limit_bytes", "runs_out_ns",   "idle_by_cause"};

} // namespace stagecraft::cli::test
