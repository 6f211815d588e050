// SPDX-License-Identifier: Apache-2.0
#include "engine/explain/published.h"

#include <gmock/gmock.h>

using namespace stagecraft;
using ::testing::HasSubstr;

namespace {

// Every published value is met in all its digits, but for the interleaved column of the Zero Bubble paper under the strict rule.
TEST(Reproduce, MeetsWhatWasPublished)
{
    int values = 0;
    for (const engine::PublishedTable& head : engine::publishedTables()) {
        EXPECT_TRUE(head.rows.empty());
        const engine::PublishedTable table = engine::reproduce(head.name).value();
        ASSERT_FALSE(table.rows.empty());
        for (const engine::PublishedRow& row : table.rows) {
            ASSERT_EQ(row.values.size(), table.columns.size());
            for (std::size_t c = 0; c < table.columns.size(); ++c, ++values) {
                const bool strict = table.columns[c] == "1F1B-I (strict)";
                EXPECT_NE(engine::agree(row.values[c], table.digits), strict)
                    << table.name << ", " << row.label << ", " << table.columns[c] << ": " << row.values[c].ours;
            }
        }
    }
    EXPECT_EQ(values, 6 * 7 + 4 + 3 * 3);
}

// An independent simulation of strict interleaving: .1090 .0847 .0461 .0827 .0644 .0328.
TEST(Reproduce, GivesTheStrictRatesOfInterleaving)
{
    const engine::PublishedTable table = engine::reproduce("zero-bubble").value();
    const double strict[] = {.1090, .0847, .0461, .0827, .0644, .0328};
    for (std::size_t r = 0; r < table.rows.size(); ++r) EXPECT_NEAR(table.rows[r].values[1].ours, strict[r], 5e-5);
}

TEST(Reproduce, TellsValuesApartInTheDigitsThatWerePublished)
{
    EXPECT_TRUE(engine::agree({.2431, .24314}, 4));
    EXPECT_FALSE(engine::agree({.2431, .24317}, 4));
    EXPECT_FALSE(engine::agree({41, 40}, 0));
}

TEST(Reproduce, NamesTheTablesThatThereAre)
{
    EXPECT_THAT(engine::reproduce("table-7").error().message, HasSubstr("there are zero-bubble, dualpipe, latency"));
}

} // namespace
