// SPDX-License-Identifier: Apache-2.0
//
// Partitions in the form of Megatron-LM's --pipeline-model-parallel-layout.
#include "engine/model/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <regex>

using namespace stagecraft;
using namespace stagecraft::engine;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

ModelSpec gpt(int blocks)
{
    ModelSpec model;
    model.layers.emplace_back(Embedding{100, 8, 16});
    for (int i = 0; i < blocks; ++i) model.layers.emplace_back(TransformerBlock{16, 2, 64});
    model.layers.emplace_back(Head{16, 100});
    model.loss = Loss::CrossEntropy;
    return model;
}

// Its unrolling by two replacements, as its parser makes them: groups, then single characters; commas are dropped before.
std::vector<std::string> unrolledByMegatron(std::string layout)
{
    std::erase(layout, ',');
    for (const char* pattern : {R"(\(([^)]+)\)\*(\d+))", R"((.)\*(\d+))"}) {
        std::string out;
        std::smatch found;
        const std::regex repetition(pattern);
        while (std::regex_search(layout, found, repetition)) {
            out += found.prefix();
            for (int i = std::stoi(found[2]); i > 0; --i) out += found[1];
            layout = found.suffix();
        }
        layout = out + layout;
    }
    std::vector<std::string> stages(1);
    for (const char c : layout) {
        if (c == '|') stages.emplace_back();
        else stages.back() += c;
    }
    return stages;
}

// The example of its documentation, without the layer for multi-token prediction, which models here do not have: DeepSeek-V3's 61 layers.
TEST(Layout, ReadsMegatronsExample)
{
    const Partition partition = partitionOfLayout(gpt(61), "Et*3|(tt|)*29,L").value();
    ASSERT_EQ(partition.size(), 31U);
    EXPECT_EQ(partition.front(), 4);
    EXPECT_EQ(partition[1], 2);
    EXPECT_EQ(partition.back(), 1);
    EXPECT_EQ(layoutOf(gpt(61), partition), "Et*3|(tt|)*29,L");
}

TEST(Layout, ReadsEveryFormOfRepetition)
{
    for (const char* text : {"Etttt|tttt|L", "Et*4|t*4|L", "E,t*4,|,t*4,|,L", "E(t)*4|(tt)*2|L", "E(tt)*2(|tttt)*1|L", "Et*4|t*4|*1L", "Et*4|t*4L*0|L"})
        EXPECT_THAT(partitionOfLayout(gpt(8), text).value(), ElementsAre(5, 4, 1)) << text;
    EXPECT_THAT(partitionOfLayout(gpt(4), "E|(t|)*4,L").value(), ElementsAre(1, 1, 1, 1, 1, 1));
    EXPECT_THAT(partitionOfLayout(gpt(4), "Et(|t)*3,L").value(), ElementsAre(2, 1, 1, 2));
}

TEST(Layout, TellsWhatIsWrong)
{
    const auto error = [](std::string_view text) {
        const auto read = partitionOfLayout(gpt(4), text);
        return read.ok() ? "no error" : read.error().message;
    };
    EXPECT_THAT(error("Ett|ttm|L"), HasSubstr("at place 7"));
    EXPECT_THAT(error("Ett|xtt|L"), HasSubstr("at place 5 of \"Ett|xtt|L\": 'x' is no layer"));
    EXPECT_THAT(error("Ett||ttL"), HasSubstr("leaves stage 1 empty"));
    EXPECT_THAT(error("Ett|ttL|"), HasSubstr("leaves stage 2 empty"));
    EXPECT_THAT(error("Ett|tL"), HasSubstr("as layer 4, and the model's is t (Block"));
    EXPECT_THAT(error("Ett|tt"), HasSubstr("has 5 layers, the model 6"));
    EXPECT_THAT(error("tt|ttL"), HasSubstr("as layer 0, and the model's is E (Embedding"));
    EXPECT_THAT(error("E(tt|)ttL"), HasSubstr("at place 2"));
    EXPECT_THAT(error("E((t|)*2)*2,L"), HasSubstr("a group within a group"));
    EXPECT_THAT(error("Et*|L"), HasSubstr("number of repetitions is missing"));
    EXPECT_THAT(error("Et*2*2|L"), HasSubstr("already"));
    EXPECT_THAT(error("E(t*999999999999999999999|)*999999999999,L"), HasSubstr("more than 4096 layers"));
    EXPECT_THAT(error(""), HasSubstr("has 0 layers"));
    EXPECT_THAT(error("E("), HasSubstr("at place 2"));
    EXPECT_THAT(error("E()*3tttt|L"), HasSubstr("at place 2"));
}

TEST(Layout, ComesBackFromItsTextForEveryPartition)
{
    std::mt19937 random(5);
    const auto among = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    for (int round = 0; round < 2000; ++round) {
        ModelSpec model = gpt(among(0, 20));
        if (among(0, 3) == 0) model.layers.pop_back();
        if (model.layers.size() > 1 && among(0, 3) == 0) model.layers.erase(model.layers.begin());
        Partition partition;
        const int usual = among(1, 4);
        for (int left = static_cast<int>(model.layers.size()); left > 0; left -= partition.back())
            partition.push_back(std::min(left, among(0, 2) == 0 ? among(1, 6) : usual));
        const std::string text = layoutOf(model, partition);
        const auto read = partitionOfLayout(model, text);
        ASSERT_TRUE(read.ok()) << text << ": " << read.error().message;
        EXPECT_EQ(read.value(), partition) << text;
        std::vector<int> sizes;
        for (const std::string& stage : unrolledByMegatron(text)) sizes.push_back(static_cast<int>(stage.size()));
        EXPECT_EQ(sizes, partition) << text;
    }
}

// Whatever the text, it is read or refused.
TEST(Layout, SurvivesAnyText)
{
    std::mt19937 random(9);
    constexpr std::string_view kLetters = "EtL|()*,0123m x";
    for (int round = 0; round < 20'000; ++round) {
        std::string text;
        for (auto length = random() % 16; length > 0; --length) text += kLetters[random() % kLetters.size()];
        const auto read = partitionOfLayout(gpt(static_cast<int>(random() % 4)), text);
        if (!read.ok()) continue;
        std::vector<int> sizes;
        for (const std::string& stage : unrolledByMegatron(text)) sizes.push_back(static_cast<int>(stage.size()));
        EXPECT_EQ(read.value(), sizes) << text;
    }
}

} // namespace
