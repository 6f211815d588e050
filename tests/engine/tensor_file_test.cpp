// SPDX-License-Identifier: Apache-2.0
//
// Files of tensors: to the letter of the format, and strict with what others may have written.
#include "engine/checkpoint/tensor_file.h"
#include "tests/traces/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

namespace stagecraft::engine {
namespace {

using testing::HasSubstr;
using traces::test::slurp;
using traces::test::spill;
using traces::test::TemporaryFolder;

template <class Value>
std::string bytesOf(const std::vector<Value>& values)
{
    std::string bytes(values.size() * sizeof(Value), '\0');
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

std::string withLength(const std::string& header, std::uint64_t length)
{
    std::string file(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(length >> (8 * i) & 0xff);
    return file + header;
}
std::string fileOf(const std::string& header, const std::string& data) { return withLength(header, header.size()) + data; }

template <class Value>
std::vector<Value> read(const TensorFile& file, std::string_view name)
{
    const TensorFile::Entry& entry = file.tensors().find(name)->second;
    std::vector<Value> values(static_cast<std::size_t>(entry.end - entry.begin) / sizeof(Value));
    const auto done = file.read(name, std::as_writable_bytes(std::span(values)));
    EXPECT_TRUE(done.ok()) << done.error().message;
    return values;
}

const std::vector<float> kSix{1, 2, 3, 4, 5, 6};
const std::vector<std::int64_t> kSeven{7};
const std::vector<std::uint16_t> kHalves{0x3c00, 0x4000}; // 1 and 2

// What safetensors 0.5.3 writes in Python for these three tensors.
std::string byPython()
{
    return fileOf(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                  R"("b":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},"half":{"dtype":"F16","shape":[2],"data_offsets":[32,36]}})"
                  "  ",
                  bytesOf(kSeven) + bytesOf(kSix) + bytesOf(kHalves));
}

TEST(TensorFile, IsWrittenToTheLetterOfTheFormat)
{
    const TemporaryFolder folder;
    const auto file = folder.file("some.safetensors");
    const auto written = writeTensorFile(file, {{{"half", TensorType::F16, {2}}, kHalves.data()},
                                                {{"b", TensorType::F32, {2, 3}}, kSix.data()},
                                                {{"a", TensorType::I64, {}}, kSeven.data()}});
    ASSERT_TRUE(written.ok()) << written.error().message;
    EXPECT_EQ(slurp(file), byPython());
    EXPECT_EQ((byPython().size() - 36) % 8, 0U); // so that all data is aligned
}

TEST(TensorFile, ReadsWhatPythonWrote)
{
    const TemporaryFolder folder;
    const auto path = folder.file("python.safetensors");
    spill(path, byPython());
    const auto file = TensorFile::open(path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    ASSERT_EQ(file.value().tensors().size(), 3U);
    EXPECT_EQ(file.value().tensors().at("b").info, (TensorInfo{"b", TensorType::F32, {2, 3}}));
    EXPECT_EQ(read<float>(file.value(), "b"), kSix);
    EXPECT_EQ(read<std::int64_t>(file.value(), "a"), kSeven);
    EXPECT_EQ(read<std::uint16_t>(file.value(), "half"), kHalves);
}

TEST(TensorFile, KeepsEveryTypeScalarsEmptyTensorsAndNamesOfAnyKind)
{
    const TemporaryFolder folder;
    const auto path = folder.file("all.safetensors");
    std::vector<TensorData> tensors;
    const std::string bytes(8 * 6, 'x');
    for (const TensorType type : {TensorType::F64, TensorType::I64, TensorType::U64, TensorType::F32, TensorType::I32, TensorType::U32, TensorType::F16,
                                  TensorType::BF16, TensorType::I16, TensorType::U16, TensorType::I8, TensorType::U8, TensorType::Bool})
        tensors.push_back({{"of " + std::string(typeText(type)), type, {3, 1, 2}}, bytes.data()});
    tensors.push_back({{"scalar", TensorType::F64, {}}, bytes.data()});
    tensors.push_back({{"empty", TensorType::I8, {4, 0}}, nullptr});
    tensors.push_back({{"Gewichte \"ä\" \\ \n", TensorType::U8, {1}}, bytes.data()});
    ASSERT_TRUE(writeTensorFile(path, tensors).ok());
    const auto file = TensorFile::open(path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    ASSERT_EQ(file.value().tensors().size(), tensors.size());
    for (const TensorData& tensor : tensors) {
        const TensorFile::Entry& entry = file.value().tensors().at(tensor.info.name);
        EXPECT_EQ(entry.info, tensor.info);
        const auto size = static_cast<std::size_t>(entry.end - entry.begin);
        EXPECT_EQ(bytesOf(read<char>(file.value(), tensor.info.name)), bytes.substr(0, size)) << tensor.info.name;
        EXPECT_EQ(entry.begin % elementBytes(tensor.info.type), 0);
    }
}

TEST(TensorFile, WithoutTensorsIsOneAsWell)
{
    const TemporaryFolder folder;
    ASSERT_TRUE(writeTensorFile(folder.file("none"), {}).ok());
    const auto file = TensorFile::open(folder.file("none"));
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_TRUE(file.value().tensors().empty());
}

struct Hostile {
    std::string_view what;
    std::string bytes;
    std::string_view expected;
};

std::vector<Hostile> hostileFiles()
{
    const std::string four(4, 'x');
    const auto one = [](std::string_view dtype, std::string_view shape, std::string_view offsets) {
        return R"({"w":{"dtype":")" + std::string(dtype) + R"(","shape":)" + std::string(shape) + R"(,"data_offsets":)" + std::string(offsets) + "}}";
    };
    return {
        {"nothing", "", "it has no header"},
        {"less than a length", "1234567", "it has no header"},
        {"a header longer than the file", withLength("{}", 3), "its header is said to have 3 bytes; there are 2"},
        {"a header that overflows", withLength("{}", ~std::uint64_t{0}), "its header is said to have 18446744073709551615 bytes"},
        {"a header of more than is allowed", withLength("{}", 100'000'001), "at most 100000000"},
        {"a blank before the header", fileOf(" {}", ""), "does not begin with {"},
        {"no JSON", fileOf("{nothing}", ""), "this is not JSON"},
        {"something behind the JSON", fileOf("{}{}", ""), "this is not JSON"},
        {"no UTF-8", fileOf("{\"\xff\":1}", ""), "it is not UTF-8 (byte 2, line 1, column 3)"},
        {"deep nesting", fileOf("{\"w\":" + std::string(100'000, '['), ""), "nested deeper"},
        {"a name twice", fileOf(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", four),
         "stands twice"},
        {"no object", fileOf(R"({"w":3})", ""), "w: must be an object"},
        {"an unknown key", fileOf(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})", four), "w.more: this key is not known"},
        {"a missing key", fileOf(R"({"w":{"dtype":"F32","shape":[1]}})", four), "w.data_offsets: is missing"},
        {"an unknown type", fileOf(one("F31", "[1]", "[0,4]"), four), "of type \"F31\", which is not known"},
        {"a negative length", fileOf(one("F32", "[-1]", "[0,4]"), four), "w.shape[0]: -1 is not allowed"},
        {"a length that is no whole number", fileOf(one("F32", "[1.0]", "[0,4]"), four), "w.shape[0]: 1.0 is not allowed"},
        {"a length beyond int64", fileOf(one("F32", "[9223372036854775808]", "[0,4]"), four), "w.shape[0]"},
        {"a shape that overflows", fileOf(one("F32", "[4294967296,4294967296,4294967296]", "[0,4]"), four), "does not take the 4 bytes"},
        {"a shape that wraps to its size", fileOf(one("U8", "[4611686018427387905,4]", "[0,4]"), four), "does not take the 4 bytes"},
        {"a shape of another size", fileOf(one("F32", "[2]", "[0,4]"), four), "F32 [2] does not take the 4 bytes"},
        {"offsets beyond the data", fileOf(one("F32", "[2]", "[0,8]"), four), "data_offsets are [0, 8], and there are 4 bytes"},
        {"offsets that go back", fileOf(one("F32", "[1]", "[4,0]"), four), "data_offsets are [4, 0]"},
        {"three offsets", fileOf(one("F32", "[1]", "[0,4,4]"), four), "data_offsets are [0, 4, 4]"},
        {"bytes before the first tensor", fileOf(one("F32", "[1]", "[4,8]"), four + four), "begins at byte 4 of the data, and what is before it ends at 0"},
        {"bytes behind the last tensor", fileOf(one("F32", "[1]", "[0,4]"), four + "x"), "there are 5 bytes of data, and the tensors take 4"},
        {"tensors that overlap",
         fileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", four),
         "begins at byte 0 of the data, and what is before it ends at 4"},
        {"metadata that is no text", fileOf(R"({"__metadata__":{"a":1}})", ""), "__metadata__: it must hold texts alone"},
        {"metadata that is no object", fileOf(R"({"__metadata__":["a"]})", ""), "__metadata__: it must hold texts alone"},
    };
}

TEST(TensorFile, RefusesWhatTheFormatForbidsAndSaysWhatItIs)
{
    const TemporaryFolder folder;
    const auto path = folder.file("hostile");
    for (const Hostile& hostile : hostileFiles()) {
        spill(path, hostile.bytes);
        const auto file = TensorFile::open(path);
        ASSERT_FALSE(file.ok()) << hostile.what;
        EXPECT_THAT(file.error().message, HasSubstr(hostile.expected)) << hostile.what;
        EXPECT_THAT(file.error().message, HasSubstr(path.string())) << hostile.what;
    }
}

TEST(TensorFile, SaysWhatIsNoFile)
{
    const TemporaryFolder folder;
    EXPECT_THAT(TensorFile::open(folder.file("missing")).error().message, HasSubstr("it does not exist"));
    EXPECT_THAT(TensorFile::open(folder.file("")).error().message, HasSubstr("it is a folder"));
    EXPECT_THAT(TensorFile::open("/dev/null").error().message, HasSubstr("it has no header"));
}

// Whatever a few wrong bytes do to a file: it is refused, or what is read lies inside of it.
TEST(TensorFile, SurvivesAnyChangeOfItsBytes)
{
    const TemporaryFolder folder;
    const auto path = folder.file("changed");
    std::mt19937 random(7);
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    int accepted = 0;
    for (int round = 0; round < 1000; ++round) {
        std::string bytes = byPython();
        for (std::size_t changes = below(3) + 1; changes > 0; --changes) {
            const bool number = below(2) == 0; // another digit is the change that does the most harm
            bytes[below(bytes.size())] = static_cast<char>(number ? '0' + static_cast<int>(below(10)) : static_cast<int>(below(256)));
        }
        if (below(10) == 0) bytes.resize(below(bytes.size() + 1));
        spill(path, bytes);
        const auto file = TensorFile::open(path);
        if (!file.ok()) continue;
        ++accepted;
        for (const auto& [name, entry] : file.value().tensors()) {
            ASSERT_LE(entry.end, 36);
            read<char>(file.value(), name);
        }
    }
    EXPECT_GT(accepted, 0); // changes in names and data
    EXPECT_LT(accepted, 700);
}

} // namespace
} // namespace stagecraft::engine
