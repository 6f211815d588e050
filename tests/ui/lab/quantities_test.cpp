// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/quantities.h"

#include <gmock/gmock.h>

namespace stagecraft::ui {
namespace {

using testing::HasSubstr;

TEST(Quantities, ShowADurationShortWhereThatIsExact)
{
    EXPECT_EQ(showDuration(1'500'000), "1.5 ms");
    EXPECT_EQ(traces::parseDuration(showDuration(1'234'567)).value(), 1'234'567);
    EXPECT_EQ(traces::parseSize(showSize(1'000'001)).value(), 1'000'001);
}

TEST(Quantities, ReadAnEmptyOptionalAsNone)
{
    EXPECT_EQ(parseMaybeDuration("").value(), std::nullopt);
    EXPECT_EQ(parseMaybeDuration(" auto ").value(), std::nullopt);
    EXPECT_EQ(parseMaybeDuration("2ms").value(), 2'000'000);
    EXPECT_FALSE(parseMaybeDuration("2").ok());
    EXPECT_EQ(showMaybeDuration(std::nullopt), "auto");
    EXPECT_EQ(parseAutoSize("auto").value(), 0);
    EXPECT_EQ(showAutoSize(0), "auto");
    EXPECT_EQ(parseMaybeBandwidth("unlimited").value(), 0);
    EXPECT_EQ(showMaybeBandwidth(25e9), "25 GB/s");
}

TEST(Quantities, ReadAndShowComputingRates)
{
    EXPECT_EQ(parseFlopRate("50 GFLOP/s").value(), 50e9);
    EXPECT_EQ(parseFlopRate("2.5TFLOP/s").value(), 2.5e12);
    EXPECT_EQ(showFlopRate(50e9), "50 GFLOP/s");
    for (const char* bad : {"", "50", "-1 GFLOP/s", "0 GFLOP/s", "5 GB/s", "1e7 PFLOP/s", "1e-7 MFLOP/s"}) {
        const auto rate = parseFlopRate(bad);
        ASSERT_FALSE(rate.ok()) << bad;
        EXPECT_THAT(rate.error().message, HasSubstr("GFLOP/s"));
    }
}

TEST(Quantities, ReadPartitionsAndSayWhichPartIsWrong)
{
    EXPECT_THAT(parsePartition("3, 3,4").value(), testing::ElementsAre(3, 3, 4));
    EXPECT_THAT(parsePartition("").value(), testing::IsEmpty());
    EXPECT_EQ(showPartition({3, 3, 4}), "3, 3, 4");
    EXPECT_THAT(parsePartition("3, x").error().message, HasSubstr("\"x\""));
    EXPECT_FALSE(parsePartition("3,,4").ok());
    EXPECT_FALSE(parsePartition("0, 4").ok());
    EXPECT_FALSE(parsePartition("3,").ok());
}

TEST(Quantities, ReadListsWithAnEntryPerRank)
{
    EXPECT_THAT(parseFactors("1, 1.5,0").value(), testing::ElementsAre(1, 1.5, 0));
    EXPECT_THAT(parseFactors(" ").value(), testing::IsEmpty());
    EXPECT_EQ(showFactors({1, 1.5}), "1, 1.5");
    EXPECT_THAT(parseFactors("1, -1").error().message, HasSubstr("\"-1\" is no factor"));
    EXPECT_FALSE(parseFactors("1,").ok());
    EXPECT_THAT(parseDurations("0, 5ms").value(), testing::ElementsAre(0, 5'000'000));
    EXPECT_EQ(parseDurations(showDurations({0, 5'000'000})).value(), (std::vector<traces::TimeNs>{0, 5'000'000}));
    EXPECT_FALSE(parseDurations("5").ok());
    EXPECT_EQ(parseMaybeSize("not known").value(), 0);
    EXPECT_EQ(parseMaybeSize(showMaybeSize(traces::Bytes{80} << 30)).value(), traces::Bytes{80} << 30);
}

TEST(Quantities, BoundJitterAndNumbers)
{
    EXPECT_DOUBLE_EQ(parseJitter("5%").value(), 0.05);
    EXPECT_FALSE(parseJitter("101%").ok());
    EXPECT_EQ(showJitter(0.05), "5%");
    EXPECT_DOUBLE_EQ(parsePositive("1e-3").value(), 0.001);
    EXPECT_FALSE(parsePositive("0").ok());
    EXPECT_FALSE(parsePositive("1 x").ok());
    EXPECT_FALSE(parsePositive("inf").ok());
    EXPECT_TRUE(parsePositive("1e6").ok());
    EXPECT_THAT(parsePositive("1e7").error().message, HasSubstr("at most 1e+06"));
}

TEST(Quantities, ReadWhatATrainingTakes)
{
    EXPECT_EQ(parseClipNorm("none").value(), 0);
    EXPECT_EQ(parseClipNorm(showClipNorm(0)).value(), 0);
    EXPECT_EQ(parseClipNorm(" 1.5 ").value(), 1.5);
    EXPECT_FALSE(parseClipNorm("-1").ok());
    EXPECT_FALSE(parseClipNorm("1 x").ok());
    EXPECT_EQ(parseMomentum("0.9").value(), 0.9);
    EXPECT_FALSE(parseMomentum("1.1").ok());
    EXPECT_FALSE(parseWeightDecay("auto").value().has_value());
    EXPECT_EQ(parseWeightDecay("0").value(), 0);
    EXPECT_EQ(showMaybeNumber(std::nullopt), "auto");
    EXPECT_FALSE(parseWeightDecay("much").ok());
    EXPECT_THAT(parseSlowdown("1, 2.5").value(), testing::ElementsAre(1, 2.5));
    EXPECT_THAT(parseSlowdown("0.5").error().message, HasSubstr("from 1 to 1000 for each stage"));
}

TEST(Quantities, ReadALossScaleAsAPowerOfTwo)
{
    for (const auto& [text, value] : {std::pair{"1", 1.0}, std::pair{"65536", 65536.0}, std::pair{"2^24", 16777216.0}, std::pair{"2^0", 1.0}}) {
        EXPECT_EQ(parseLossScale(text).value(), value) << text;
        EXPECT_EQ(parseLossScale(showLossScale(value)).value(), value) << showLossScale(value);
    }
    EXPECT_EQ(showLossScale(65536), "65536");
    EXPECT_EQ(showLossScale(16777216.0 * 16), "2^28");
    EXPECT_EQ(parseLossScale("2^60").value(), std::exp2(60));
    for (const char* text : {"3", "0", "0.5", "-2", "2^0.5", "2^-3", "2^61", "2^", "", "2^9999"}) EXPECT_FALSE(parseLossScale(text).ok()) << text;
}

TEST(Quantities, ShowCountsWithPrefixes)
{
    EXPECT_EQ(showCount(2'099'200), "2.099 M");
    EXPECT_EQ(showFlops(33.5e6), "33.5 MFLOP");
}

} // namespace
} // namespace stagecraft::ui
