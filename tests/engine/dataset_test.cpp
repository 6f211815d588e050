// SPDX-License-Identifier: Apache-2.0
//
// Texts and samples as a run takes them.
#include "tests/engine/array_files.h"
#include "tests/traces/temporary_folder.h"

#include "engine/data/data_fit.h"
#include "engine/data/shuffle.h"
#include "engine/plan/plan_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <set>

using namespace stagecraft;
using namespace stagecraft::engine;
using namespace stagecraft::test;
using ::testing::ElementsAre;
using ::testing::Each;
using ::testing::HasSubstr;
using traces::test::TemporaryFolder;

namespace {

void write(const std::string& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

ModelSpec gpt(int vocabulary, int sequence)
{
    ModelSpec model;
    model.layers = {Embedding{vocabulary, sequence, 8}, Head{8, vocabulary}};
    model.loss = Loss::CrossEntropy;
    return model;
}

TEST(TextTokens, AreCharactersInTheOrderOfTheirNumbers)
{
    const TextTokens text = textTokens("zaß€a", TokenUnit::Character).value();
    EXPECT_THAT(text.vocabulary, ElementsAre("a", "z", "ß", "€"));
    EXPECT_THAT(text.tokens, ElementsAre(1, 0, 2, 3, 0));
    EXPECT_EQ(text.text({1, 0, 2, 3, 0}), "zaß€a");
    EXPECT_EQ(text.text({0, 4}), "a\ufffd");
}

TEST(TextTokens, AreBytesWhereAskedFor)
{
    const TextTokens text = textTokens("a\xff", TokenUnit::Byte).value();
    EXPECT_EQ(text.vocabulary.size(), 256U);
    EXPECT_THAT(text.tokens, ElementsAre('a', 255));
    EXPECT_EQ(text.text({97, 255}), "a\xff");
}

TEST(TextTokens, RefuseWhatIsNoUtf8)
{
    for (const std::string_view wrong : {"ab\xff", "ab\xc3", "ab\xc0\x80", "ab\xed\xa0\x80", "ab\xf4\x90\x80\x80", "ab\xe0\x80\x80", "ab\x80"}) {
        const auto read = textTokens(wrong, TokenUnit::Character);
        ASSERT_FALSE(read.ok());
        EXPECT_THAT(read.error().message, HasSubstr("byte 2 is no UTF-8"));
    }
}

// Half a, a quarter b, an eighth each c and d: 1.75 bits.
TEST(TextTokens, TellTheEntropyOfSingleTokens)
{
    EXPECT_DOUBLE_EQ(textTokens("aaaabbcd", TokenUnit::Character).value().entropy(), 1.75 * std::log(2.0));
    EXPECT_DOUBLE_EQ(textTokens("aaaa", TokenUnit::Byte).value().entropy(), 0);
}

TEST(ShippedText, IsTheFileOfTheResourcesAndPlain)
{
    std::ifstream file(std::string(STAGECRAFT_SOURCE_DIR) + "/resources/texts/line.txt", std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(shippedText(), text);
    EXPECT_GT(text.size(), 20'000U);
    for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
}

TEST(Shuffled, IsAPermutationForEveryCount)
{
    for (std::uint64_t count = 1; count < 70; ++count)
        for (const std::uint64_t seed : {1ULL, 99ULL}) {
            std::set<std::uint64_t> places;
            for (std::uint64_t i = 0; i < count; ++i) places.insert(shuffled(i, count, seed));
            EXPECT_EQ(places.size(), count);
            EXPECT_LT(*places.rbegin(), count);
        }
    int same = 0;
    for (std::uint64_t i = 0; i < 1000; ++i) same += shuffled(i, 1000, 1) == shuffled(i, 1000, 2) ? 1 : 0;
    EXPECT_LT(same, 10); // of a thousand, one falls together by chance
}

TEST(TextData, GivesPiecesWithTheirNextTokensBySeedAndStepAlone)
{
    const Dataset data(textTokens(shippedText(), TokenUnit::Character).value());
    const auto rows = data.rowsOf({.seed = 5, .step = 3, .rows = 8}, 16);
    EXPECT_EQ(rows, data.rowsOf({.seed = 5, .step = 3, .rows = 8}, 16));
    EXPECT_NE(rows, data.rowsOf({.seed = 5, .step = 4, .rows = 8}, 16));
    EXPECT_NE(rows, data.rowsOf({.seed = 6, .step = 3, .rows = 8}, 16));
    EXPECT_EQ(std::set(rows.begin(), rows.end()).size(), 8U);
    for (const std::int64_t row : rows) {
        std::vector<std::int64_t> in(16);
        std::vector<std::int64_t> out(16);
        data.writeInputs(row, std::span<std::int64_t>(in));
        data.writeTargets(row, std::span<std::int64_t>(out));
        EXPECT_EQ(data.text()->text(in), shippedText().substr(static_cast<std::size_t>(row), 16));
        EXPECT_EQ(data.text()->text(out), shippedText().substr(static_cast<std::size_t>(row) + 1, 16));
    }
    // to the last place from which a sequence and its next token can be taken
    const Dataset shortOne(textTokens("abcde", TokenUnit::Character).value());
    std::set<std::int64_t> starts;
    for (const std::int64_t row : shortOne.rowsOf({.seed = 1, .step = 0, .rows = 100}, 3)) starts.insert(row);
    EXPECT_THAT(starts, ElementsAre(0, 1));
}

TEST(TextData, HasToFitTheModel)
{
    const Dataset data(textTokens("hello, world", TokenUnit::Character).value()); // 9 different ones
    EXPECT_TRUE(checkFit({}, data, gpt(9, 11)).ok());
    EXPECT_THAT(checkFit({}, data, gpt(8, 4)).error().message, HasSubstr("the text has 9 different tokens, and the model an embedding for 8; set vocabulary to 9"));
    EXPECT_THAT(checkFit({}, data, gpt(9, 12)).error().message, HasSubstr("the text has 12 tokens, and a sequence takes 12 and the one behind"));
    const DataSpec from{.source = DataSource::Text, .path = "my.txt", .targets = {}};
    EXPECT_THAT(checkFit(from, data, gpt(2, 4)).error().message, testing::StartsWith("data: my.txt: the text has 9 different tokens"));
}

TEST(TextData, ComesFromAFile)
{
    const TemporaryFolder folder;
    write(folder.file("a.txt"), "ab\xff");
    EXPECT_THAT(openDataset({.source = DataSource::Text, .path = folder.file("a.txt"), .targets = {}}).error().message, HasSubstr("a.txt: byte 2"));
    EXPECT_TRUE(openDataset({.source = DataSource::Text, .path = folder.file("a.txt"), .targets = {}, .tokens = TokenUnit::Byte}).ok());
    EXPECT_THAT(openDataset({.source = DataSource::Text, .path = folder.file("none.txt"), .targets = {}}).error().message, HasSubstr("none.txt"));
}

// Four images of 2x2 with their numbers as labels.
DataSpec writeImages(const TemporaryFolder& folder)
{
    write(folder.file("images"), idxOfBytes({4, 2, 2}, {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}));
    write(folder.file("labels"), idxOfBytes({4}, {0, 1, 2, 3}));
    return {.source = DataSource::Idx, .path = folder.file("images"), .targets = folder.file("labels")};
}

TEST(ImageData, IsNormalisedAndKeepsItsLabels)
{
    const TemporaryFolder folder;
    const Dataset data = openDataset(writeImages(folder)).value();
    double sum = 0;
    double squares = 0;
    for (std::int64_t row = 0; row < 4; ++row) {
        std::vector<float> image(4);
        data.writeInputs(row, std::span(image));
        EXPECT_THAT(image, Each(image.front()));
        sum += image.front();
        squares += static_cast<double>(image.front()) * image.front();
        std::vector<std::int64_t> label(1);
        data.writeTargets(row, std::span(label));
        EXPECT_EQ(label.front(), row);
        std::vector<float> target(1);
        data.writeTargets(row, std::span(target));
        EXPECT_EQ(target.front(), static_cast<float>(row));
    }
    EXPECT_NEAR(sum, 0, 1e-6);
    EXPECT_NEAR(squares / 4, 1, 1e-6);
}

// Twelve rows in steps of five: three passes are fifteen steps' worth, and each row comes once in each.
TEST(ImageData, ComesOnceInEachPassInAnotherOrder)
{
    std::vector<std::uint8_t> bytes(12);
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
    const TemporaryFolder folder;
    write(folder.file("x"), idxOfBytes({12}, bytes));
    const Dataset data = openDataset({.source = DataSource::Idx, .path = folder.file("x"), .targets = folder.file("x")}).value();
    std::vector<std::int64_t> taken;
    for (int step = 0; step < 8; ++step)
        for (const std::int64_t row : data.rowsOf({.seed = 2, .step = step, .rows = 5}, 1)) taken.push_back(row);
    std::vector<std::vector<std::int64_t>> passes;
    for (int pass = 0; pass < 3; ++pass) {
        passes.emplace_back(taken.begin() + 12 * pass, taken.begin() + 12 * (pass + 1));
        std::vector<std::int64_t> sorted = passes.back();
        std::sort(sorted.begin(), sorted.end());
        for (int i = 0; i < 12; ++i) EXPECT_EQ(sorted[static_cast<std::size_t>(i)], i);
    }
    EXPECT_NE(passes[0], passes[1]);
    EXPECT_NE(passes[1], passes[2]);
}

TEST(ArrayData, HasToFitTheModel)
{
    const TemporaryFolder folder;
    write(folder.file("in.npy"), npyOf<float>("<f4", "(3, 2)", {1, 2, 3, 4, 5, 6}));
    write(folder.file("out.npy"), npyOf<double>("<f8", "(3, 1)", {1, 2, 3}));
    write(folder.file("two.npy"), npyOf<double>("<f8", "(2, 1)", {1, 2}));
    write(folder.file("none.npy"), npyOf<double>("<f8", "(0, 1)", {}));
    const auto spec = [&](const char* in, const char* out) { return DataSpec{.source = DataSource::Npy, .path = folder.file(in), .targets = folder.file(out)}; };
    const DataSpec from = spec("in.npy", "out.npy");
    const Dataset data = openDataset(from).value();
    ModelSpec model;
    model.layers = {Linear{2, 1}};
    EXPECT_TRUE(checkFit(from, data, model).ok());
    std::vector<float> row(2);
    data.writeInputs(1, std::span(row));
    EXPECT_THAT(row, ElementsAre(3, 4)); // floats stay as they are
    model.layers = {Linear{3, 1}};
    EXPECT_THAT(checkFit(from, data, model).error().message, testing::AllOf(HasSubstr("in.npy: a row has 2 values (2), and the model takes 3 (3); give rows of that shape"), HasSubstr("first layer")));
    model.layers = {Linear{2, 4}};
    EXPECT_THAT(checkFit(from, data, model).error().message, testing::AllOf(HasSubstr("out.npy: a target has 1 value (1), and the loss compares 4 (4); give targets of that shape"), HasSubstr("last layer")));
    EXPECT_THAT(openDataset(spec("in.npy", "two.npy")).error().message, HasSubstr("has 3 rows"));
    EXPECT_THAT(openDataset(spec("none.npy", "two.npy")).error().message, HasSubstr("no values"));
    EXPECT_THAT(openDataset(spec("in.npy", "no.npy")).error().message, HasSubstr("no.npy"));
}

// Tokens out of an array: (samples, sequence), and their targets likewise.
TEST(ArrayData, MayBeTokens)
{
    const TemporaryFolder folder;
    write(folder.file("in.npy"), npyOf<std::int64_t>("<i8", "(2, 3)", {0, 1, 2, 2, 1, 0}));
    write(folder.file("out.npy"), npyOf<std::int64_t>("<i8", "(2, 3)", {1, 2, 0, 1, 0, 3}));
    const DataSpec from{.source = DataSource::Npy, .path = folder.file("in.npy"), .targets = folder.file("out.npy")};
    const Dataset data = openDataset(from).value();
    EXPECT_TRUE(checkFit(from, data, gpt(4, 3)).ok());
    EXPECT_THAT(checkFit(from, data, gpt(3, 3)).error().message, HasSubstr("out.npy: row 1 (the first is 0) has the class 3, and the model knows 0 to 2; correct the file, or give the last layer as many outputs as "
                          "there are classes, at least 4"));
    EXPECT_THAT(checkFit(from, data, gpt(2, 3)).error().message, HasSubstr("in.npy: row 0 (the first is 0) has the token 2, and the model knows 0 to 1; correct the file, or set vocabulary, in the embedding and in the "
                          "head, to at least 3"));
    EXPECT_THAT(checkFit(from, data, gpt(4, 2)).error().message, HasSubstr("in.npy: a row has 3 values"));
}

// A classifier's targets: numbers of classes, and neither one-hot rows nor floats nor numbers below 0.
TEST(ArrayData, HasClassesForAClassifier)
{
    const TemporaryFolder folder;
    write(folder.file("in.npy"), npyOf<float>("<f4", "(2, 2)", {1, 2, 3, 4}));
    ModelSpec model;
    model.layers = {Linear{2, 3}};
    model.loss = Loss::CrossEntropy;
    const auto error = [&](const std::string& name, const std::string& bytes) {
        write(folder.file(name), bytes);
        const DataSpec from{.source = DataSource::Npy, .path = folder.file("in.npy"), .targets = folder.file(name)};
        const Expected<void> fit = checkFit(from, openDataset(from).value(), model);
        return fit.ok() ? std::string("no error") : fit.error().message;
    };
    EXPECT_EQ(error("classes.npy", npyOf<std::int64_t>("<i8", "(2,)", {2, 0})), "no error");
    EXPECT_THAT(error("onehot.npy", npyOf<std::int64_t>("<i8", "(2, 3)", {0, 0, 1, 1, 0, 0})),
                HasSubstr("onehot.npy: a target has 3 values (3), and the loss compares 1 (one number); it seems to hold a value for every class: save the "
                          "number of the one, array.argmax(-1)"));
    EXPECT_THAT(error("wide.npy", npyOf<std::int64_t>("<i8", "(2, 2)", {0, 0, 1, 1})), HasSubstr("wide.npy: a target has 2 values (2)"));
    EXPECT_THAT(error("floats.npy", npyOf<float>("<f4", "(2,)", {0, 1})), HasSubstr("floats.npy: it holds numbers with a point, and a class is a whole one"));
    EXPECT_THAT(error("below.npy", npyOf<std::int64_t>("<i8", "(2,)", {0, -1})),
                HasSubstr("below.npy: row 1 (the first is 0) has the class -1, and the model knows 0 to 2; correct the file"));
}

TEST(DataJson, SurvivesWritingAndReadingAndNamesWhatDoesNotGo)
{
    const std::string model = R"("model":{"loss":"cross_entropy","layers":[{"type":"embedding","vocabulary":64,"sequence":8,"dim":8},{"type":"head","dim":8,"vocabulary":64}]},"pipeline":{"ranks":1})";
    const auto read = [&](const std::string& data, const std::string& with) { return readPlan(R"({"stagecraft_plan":1,)" + with + R"(,"data":)" + data + "}"); };
    const Plan plan = read(R"({"source":"text","path":"my.txt","tokens":"bytes"})", model).value();
    EXPECT_EQ(plan.data, (DataSpec{.source = DataSource::Text, .path = "my.txt", .targets = {}, .tokens = TokenUnit::Byte}));
    EXPECT_EQ(readPlan(writePlan(plan)).value(), plan);
    EXPECT_THAT(writePlan(presetPlan("hello").value()), testing::Not(HasSubstr("\"data\"")));
    const auto error = [&](const std::string& data, const std::string& with) {
        const auto refused = read(data, with);
        return refused.ok() ? "no error" : refused.error().message;
    };
    const std::string linear = R"("model":{"layers":[{"type":"linear","in":4,"out":4}]},"pipeline":{"ranks":1})";
    EXPECT_THAT(error(R"({"source":"text"})", linear), HasSubstr("data.source: a text needs a model that begins with an embedding"));
    EXPECT_THAT(error(R"({"source":"idx","path":"a"})", linear), HasSubstr("data.targets: it is missing"));
    EXPECT_THAT(error(R"({"source":"npy","targets":"a"})", linear), HasSubstr("data.path: it is missing"));
    EXPECT_THAT(error(R"({"path":"a"})", linear), HasSubstr("data.path: synthetic data"));
    EXPECT_THAT(error(R"({"source":"text","targets":"a"})", model), HasSubstr("data.targets"));
    EXPECT_THAT(error(R"({"source":"idx","path":"a","targets":"b"})", model), HasSubstr("images are no tokens"));
    EXPECT_THAT(error(R"({"source":"web"})", model), HasSubstr("\"synthetic\", \"text\", \"idx\", \"npy\""));
    EXPECT_THAT(error(R"({"source":"npy","path":"a","targets":"b","tokens":"bytes"})", model), HasSubstr("data.tokens"));
}

} // namespace
