// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/expectations.h"
#include "tests/traces/temporary_folder.h"

namespace stagecraft::cli::test {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using traces::test::spill;
using traces::test::TemporaryFolder;

TEST(Schedule, PrintsALinePerRank)
{
    const Output output = stagecraft({"schedule", "--schedule", "1f1b", "--ranks", "2", "--microbatches", "3"});
    EXPECT_EQ(output.exitCode, 0);
    EXPECT_EQ(output.out, "0F0,0F1,0B0,0F2,0B1,0B2\n"
                          "1F0,1B0,1F1,1B1,1F2,1B2\n");
}

// lowered_gpipe_p2_m2 of PyTorch's own lowering
TEST(Schedule, AddsCommunicationOnRequest)
{
    const Output output = stagecraft({"schedule", "--schedule", "gpipe", "--ranks", "2", "--microbatches", "2", "--comms"});
    EXPECT_EQ(output.out, "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                          "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n");
}

TEST(Schedule, PutsTransfersInTheOrderAskedFor)
{
    const TemporaryFolder folder;
    const auto ordered = [&](const std::string& order, const std::string& file) {
        const Output output = stagecraft({"schedule", "--schedule", "1f1b", "--ranks", "2", "--microbatches", "2", "--order", order});
        EXPECT_EQ(output.exitCode, 0) << output.err;
        spill(folder.file(file), output.out);
        return output.out;
    };
    EXPECT_EQ(ordered("megatron", "fused"), "0F0,0SEND_F0,0F1,(0SEND_F1;0RECV_B0)P2P,0B0,0RECV_B1,0B1\n"
                                            "1RECV_F0,1F0,1B0,(1SEND_B0;1RECV_F1)P2P,1F1,1B1,1SEND_B1\n");
    EXPECT_EQ(ordered("deferred", "deferred"), "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                                               "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
    EXPECT_EQ(stagecraft({"validate", folder.file("fused"), "--send", "rendezvous"}).exitCode, 0);
    EXPECT_EQ(stagecraft({"validate", folder.file("deferred"), "--send", "rendezvous"}).exitCode, 1);
    EXPECT_EQ(stagecraft({"simulate", "--schedule", folder.file("fused")}).exitCode, 0);
}

TEST(Schedule, GathersWeightsThatReplicasDivide)
{
    EXPECT_EQ(stagecraft({"schedule", "--schedule", "1f1b", "--ranks", "2", "--microbatches", "1", "--sharding", "zero3"}).out,
              "0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD\n1UNSHARD,1F0,1B0,1REDUCE_GRAD,1RESHARD\n");
    EXPECT_EQ(stagecraft({"schedule", "--schedule", "1f1b", "--ranks", "2", "--microbatches", "1", "--sharding", "zero2", "--comms"}).out,
              "0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD\n");
}

TEST(Schedule, PrintsAndReadsDeepSpeedsLists)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("deepspeed.txt");
    EXPECT_EQ(stagecraft({"schedule", "--schedule", "1f1b", "--ranks", "2", "--microbatches", "2", "--form", "deepspeed", "--out", file}).exitCode, 0);
    EXPECT_EQ(stagecraft({"validate", file}).exitCode, 0);
    EXPECT_EQ(stagecraft({"schedule", "--schedule", file}).out, "0F0,0SEND_F0,0F1,0RECV_B0,0SEND_F1,0B0,0RECV_B1,0B1\n"
                                                                "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
    EXPECT_EQ(jsonOf({"simulate", "--schedule", file, "--json"})["makespan_ns"],
              jsonOf({"simulate", "--schedule", "1f1b", "--ranks", "2", "--microbatches", "2", "--json"})["makespan_ns"]);
}

TEST(Schedule, WritesAFileThatValidates)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("a.schedule");
    EXPECT_EQ(stagecraft({"schedule", "hello", "--comms", "--out", file}).out, "");
    const Json json = jsonOf({"validate", file, "--json"});
    EXPECT_THAT(keysOf(json), ElementsAre("legal", "errors", "deadlock"));
    EXPECT_EQ(json["legal"], true);
    EXPECT_TRUE(json["errors"].empty());
    EXPECT_TRUE(json["deadlock"].is_null());
}

TEST(Schedule, NamesAFileThatCannotBeWritten)
{
    expectRefusal({"schedule", "--out", "/nowhere/a.schedule"}, 1, "/nowhere/a.schedule");
}

TEST(Validate, GivesJsonAlsoForATextThatIsNoSchedule)
{
    const TemporaryFolder folder;
    spill(folder.file("typo.schedule"), "0F0,0X0\n");
    const Output output = stagecraft({"validate", folder.file("typo.schedule"), "--json"});
    EXPECT_EQ(output.exitCode, 1);
    const Json json = Json::parse(output.out);
    EXPECT_EQ(json["legal"], false);
    EXPECT_THAT(json["errors"][0]["message"].get<std::string>(), HasSubstr("line 1, cell 2"));
    EXPECT_TRUE(json["deadlock"].is_null());
}

TEST(Validate, NamesRankPositionAndActionOfAFault)
{
    const TemporaryFolder folder;
    spill(folder.file("bad.schedule"), "0F0,0B0\n1B0,1F0\n");
    const Output output = stagecraft({"validate", folder.file("bad.schedule"), "--json"});
    EXPECT_EQ(output.exitCode, 1);
    const Json json = Json::parse(output.out);
    EXPECT_EQ(json["legal"], false);
    ASSERT_FALSE(json["errors"].empty());
    EXPECT_THAT(keysOf(json["errors"][0]), ElementsAre("rank", "position", "action", "message"));
    EXPECT_EQ(json["errors"][0]["rank"], 1);
    EXPECT_THAT(output.err, HasSubstr("bad.schedule"));
}

// Both ranks begin with a send that waits for the other's receive: fine when buffered, a circle when not.
TEST(Validate, FindsTheDeadlockOfRendezvousSends)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("cross.schedule");
    spill(file, "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
    EXPECT_EQ(stagecraft({"validate", file}).exitCode, 0);
    const Output output = stagecraft({"validate", file, "--send", "rendezvous", "--json"});
    EXPECT_EQ(output.exitCode, 1);
    const Json json = Json::parse(output.out);
    EXPECT_EQ(json["legal"], false);
    ASSERT_EQ(json["deadlock"].size(), 2U);
    EXPECT_THAT(keysOf(json["deadlock"][0]), ElementsAre("rank", "position", "action", "waits_for"));
    const Output people = stagecraft({"validate", file, "--send", "rendezvous"});
    EXPECT_THAT(people.out, HasSubstr("deadlock"));
    EXPECT_THAT(people.err, HasSubstr("deadlocks"));
}

// Stages 0 and 2 on rank 0, stage 1 on rank 1: an order that can be executed, but no plan describes it.
TEST(Validate, SaysWhenPlansCannotTakeALegalSchedule)
{
    const TemporaryFolder folder;
    const std::string file = folder.file("uneven.schedule");
    spill(file, "0F0,2F0,2B0,0B0\n1F0,1B0\n");
    const std::string why = "rank 0 holds 2 stages and rank 1 holds 1; a plan needs the same number on every rank";
    const Output output = stagecraft({"validate", file});
    EXPECT_EQ(output.exitCode, 0);
    EXPECT_THAT(output.out, HasSubstr("legal; plans cannot take it: " + why));
    const Json json = jsonOf({"validate", file, "--json"});
    EXPECT_EQ(json["legal"], true);
    EXPECT_EQ(json["no_plan"], why);
    expectRefusal({"simulate", "--schedule", file}, 1, why);
}

TEST(Validate, QuotesTheCellThatIsNoAction)
{
    const TemporaryFolder folder;
    spill(folder.file("typo.schedule"), "0F0,0X1\n");
    expectRefusal({"validate", folder.file("typo.schedule")}, 1, "line 1, cell 2");
}

TEST(Validate, NamesFilesThatItCannotRead)
{
    expectRefusal({"validate", "nowhere.schedule"}, 1, "nowhere.schedule");
    expectRefusal({"validate", "/tmp"}, 1, "folder");
}

} // namespace

} // namespace stagecraft::cli::test
