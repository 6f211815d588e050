// SPDX-License-Identifier: Apache-2.0
//
// Arrays out of files, sound ones and hostile ones.
#include "tests/engine/array_files.h"

#include "engine/data/idx.h"
#include "engine/data/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace stagecraft;
using namespace stagecraft::engine;
using namespace stagecraft::test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

using Bytes8 = std::vector<std::uint8_t>;
using Whole = std::vector<std::int64_t>;
using Floats = std::vector<float>;

std::string errorOf(const traces::Expected<Array>& read) { return read.ok() ? "no error" : read.error().message; }

TEST(Idx, ReadsImagesAndLabels)
{
    const Array images = readIdx(idxOfBytes({2, 2, 3}, {0, 1, 2, 3, 4, 5, 250, 251, 252, 253, 254, 255})).value();
    EXPECT_THAT(images.shape, ElementsAre(2, 2, 3));
    EXPECT_EQ(images.rows(), 2);
    EXPECT_EQ(images.rowSize(), 6);
    EXPECT_EQ(std::get<Bytes8>(images.values).back(), 255);
    const Array labels = readIdx(idxOfBytes({3}, {7, 0, 9})).value();
    EXPECT_THAT(std::get<Bytes8>(labels.values), ElementsAre(7, 0, 9));
    EXPECT_EQ(labels.rowSize(), 1);
}

// Two values of each type, by hand: 1 and -2, or 1.5 and -2.
TEST(Idx, ReadsEveryTypeWithItsLargestByteFirst)
{
    const auto file = [](char type, const std::string& values) { return std::string{'\0', '\0', type, '\x01', '\0', '\0', '\0', '\x02'} + values; };
    EXPECT_THAT(std::get<Whole>(readIdx(file(0x09, {'\x01', '\xfe'})).value().values), ElementsAre(1, -2));
    EXPECT_THAT(std::get<Whole>(readIdx(file(0x0B, {'\0', '\x01', '\xff', '\xfe'})).value().values), ElementsAre(1, -2));
    EXPECT_THAT(std::get<Whole>(readIdx(file(0x0C, {'\0', '\0', '\0', '\x01', '\xff', '\xff', '\xff', '\xfe'})).value().values), ElementsAre(1, -2));
    EXPECT_THAT(std::get<Floats>(readIdx(file(0x0D, {'\x3f', '\xc0', '\0', '\0', '\xc0', '\0', '\0', '\0'})).value().values), ElementsAre(1.5F, -2.0F));
    const std::string wide{'\x3f', '\xf8', '\0', '\0', '\0', '\0', '\0', '\0', '\xc0', '\0', '\0', '\0', '\0', '\0', '\0', '\0'};
    EXPECT_THAT(std::get<Floats>(readIdx(file(0x0E, wide)).value().values), ElementsAre(1.5F, -2.0F));
}

TEST(Idx, SaysWhatIsWrongAtWhichByte)
{
    const std::string sound = idxOfBytes({2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_THAT(errorOf(readIdx("")), HasSubstr("byte 0"));
    EXPECT_THAT(errorOf(readIdx("P5 28 28 255")), HasSubstr("two zero bytes"));
    EXPECT_THAT(errorOf(readIdx("\x1f\x8b\x08rest")), HasSubstr("gunzip"));
    EXPECT_THAT(errorOf(readIdx(std::string("\0\0\x07\x01", 4))), HasSubstr("byte 2: type 0x07"));
    EXPECT_THAT(errorOf(readIdx(std::string("\0\0\x08\0", 4))), HasSubstr("byte 3: 0 extents"));
    EXPECT_THAT(errorOf(readIdx(sound.substr(0, 9))), HasSubstr("byte 9: the file ends within its header, which has 12 bytes"));
    EXPECT_THAT(errorOf(readIdx(sound.substr(0, sound.size() - 1))), HasSubstr("byte 17: the header tells of 2 x 3 values of 1 byte"));
    EXPECT_THAT(errorOf(readIdx(sound + "x")), HasSubstr("byte 18: more follows than the 2 x 3 values"));
    EXPECT_THAT(errorOf(readIdx(idxOfBytes({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {}))), HasSubstr("ends before they do")); // no overflow
}

TEST(Npy, ReadsTheTypesAndVersions)
{
    for (const int version : {1, 2, 3}) {
        const Array floats = readNpy(npyOf<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6.5F}, version)).value();
        EXPECT_THAT(floats.shape, ElementsAre(2, 3));
        EXPECT_EQ(std::get<Floats>(floats.values).back(), 6.5F);
        EXPECT_FALSE(floats.whole());
    }
    EXPECT_THAT(std::get<Floats>(readNpy(npyOf<double>("<f8", "(2,)", {-0.25, 1e300})).value().values), ElementsAre(-0.25F, HUGE_VALF));
    EXPECT_THAT(std::get<Bytes8>(readNpy(npyOf<std::uint8_t>("|u1", "(1, 2)", {3, 255})).value().values), ElementsAre(3, 255));
    EXPECT_THAT(std::get<Whole>(readNpy(npyOf<std::int64_t>("<i8", "(2,)", {-1, 1LL << 40})).value().values), ElementsAre(-1, 1LL << 40));
    EXPECT_TRUE(readNpy(npyOf<float>("<f4", "()", {1})).value().shape.empty()); // one number
    EXPECT_EQ(readNpy(npyOf<float>("<f4", "(0, 5)", {})).value().rows(), 0);
    const float one = 1;
    EXPECT_TRUE(readNpy(npyOf("{\"shape\":(1,),\"fortran_order\":False,\"descr\":\"<f4\"}", &one, 4)).ok()); // any order, either quote
}

TEST(Npy, SaysWhatIsWrongAndWhichLineOfPythonHelps)
{
    const auto header = [](const std::string& dictionary) {
        const double values[2] = {};
        return errorOf(readNpy(npyOf(dictionary, values, sizeof values)));
    };
    EXPECT_THAT(errorOf(readNpy("1,2,3\n4,5,6\n")), HasSubstr("numpy.save"));
    EXPECT_THAT(header("{'descr': '>f8', 'fortran_order': False, 'shape': (2,)}"), HasSubstr("'>f8' cannot be read; save array.astype('float32')"));
    EXPECT_THAT(header("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}"), HasSubstr("'|O'"));
    EXPECT_THAT(header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,)}"), HasSubstr("save one field"));
    EXPECT_THAT(header("{'descr': '<f8', 'fortran_order': True, 'shape': (2,)}"), HasSubstr("numpy.ascontiguousarray(array)"));
    EXPECT_THAT(header("{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}"), HasSubstr("tells of 3 values of 8 bytes, and the file ends"));
    EXPECT_THAT(header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}"), HasSubstr("more follows than the 1 values"));
    EXPECT_THAT(header("{'descr': '<f8', 'fortran_order': False, 'shape': (-2,)}"), HasSubstr("the file ends"));
    EXPECT_THAT(header("{'descr': '<f8', 'fortran_order': False}"), HasSubstr("lacks"));
    EXPECT_THAT(header("{'descr': '<f8', 'fortran_order': 0, 'shape': (2,)}"), HasSubstr("True or False"));
    EXPECT_THAT(header("{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (2,)}"), HasSubstr("stands twice"));
    EXPECT_THAT(header("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 2)}"), HasSubstr("at most 8"));
    EXPECT_THAT(header("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}"), HasSubstr("whole numbers"));
    std::string version = npyOf<float>("<f4", "(1,)", {1});
    version[6] = 4;
    EXPECT_THAT(errorOf(readNpy(version)), HasSubstr("byte 6: version 4"));
    EXPECT_THAT(errorOf(readNpy(npyOf<float>("<f4", "(1,)", {1}).substr(0, 40))), HasSubstr("ends within its header of 118 bytes"));
}

// Whatever stands in a file, it is read or refused; the sanitizer presets watch the bounds.
TEST(ArrayFiles, SurviveAnyBytes)
{
    std::mt19937 random(3);
    const std::vector<std::string> sound{idxOfBytes({2, 2, 2}, Bytes8(8, 9)), npyOf<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6}),
                                         npyOf<std::int64_t>("<i8", "(4,)", {1, 2, 3, 4}, 2)};
    int read = 0;
    for (int round = 0; round < 30'000; ++round) {
        std::string file = sound[random() % sound.size()];
        if (random() % 3 == 0) file.resize(random() % (file.size() + 1));
        for (auto changes = random() % 4; changes > 0 && !file.empty(); --changes) file[random() % std::min<std::size_t>(file.size(), 80)] = static_cast<char>(random());
        for (const auto& array : {readIdx(file), readNpy(file)}) {
            if (!array.ok()) {
                EXPECT_THAT(array.error().message, HasSubstr("byte "));
                continue;
            }
            ++read;
            std::int64_t count = 1;
            for (const std::int64_t extent : array.value().shape) count *= extent;
            std::visit([&](const auto& values) { EXPECT_EQ(static_cast<std::int64_t>(values.size()), count); }, array.value().values);
        }
    }
    EXPECT_GT(read, 1000); // the sound ones among them
}

} // namespace
