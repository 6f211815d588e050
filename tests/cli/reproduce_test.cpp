// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/expectations.h"

namespace stagecraft::cli::test {

namespace {

using testing::HasSubstr;

TEST(Reproduce, PrintsThePapersTableBesideOurs)
{
    const Output output = stagecraft({"reproduce", "zero-bubble"});
    EXPECT_EQ(output.exitCode, 0) << output.err;
    EXPECT_THAT(output.out, HasSubstr("arXiv 2401.10241, Tables 9 and 5"));
    EXPECT_THAT(output.out, HasSubstr("0.2431  0.2431 ")); // 1F1B, 1.5B, m=24
    EXPECT_THAT(output.out, HasSubstr("0.1055  0.1090*")); // interleaved, executed strictly
    EXPECT_THAT(output.out, HasSubstr("36 of 42 agree"));
}

TEST(Reproduce, GivesPublishedAndOwnValuesToPrograms)
{
    const Json json = jsonOf({"reproduce", "dualpipe", "--json"});
    EXPECT_EQ(json["rows"][2]["row"], "p=8 m=20");
    EXPECT_EQ(json["rows"][2]["values"][0]["published"], 66);
    EXPECT_EQ(json["rows"][2]["values"][0]["ours"], 66);
    EXPECT_EQ(json["rows"][2]["values"][0]["agrees"], true);
}

TEST(Reproduce, NamesTheTablesThatThereAre)
{
    expectRefusal({"reproduce", "table-7"}, 2, "there are zero-bubble, dualpipe, latency");
    expectRefusal({"reproduce"}, 2, "NAME");
}

} // namespace

} // namespace stagecraft::cli::test
