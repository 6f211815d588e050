// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/expectations.h"
#include "tests/traces/temporary_folder.h"

namespace stagecraft::cli::test {

namespace {

using testing::HasSubstr;

TEST(Catalogue, WritesAPageAndAPictureOfEachSchedule)
{
    const traces::test::TemporaryFolder folder;
    const Output output = stagecraft({"catalogue", folder.file("schedules.md").string()});
    EXPECT_EQ(output.exitCode, 0) << output.err;
    const std::string page = traces::test::slurp(folder.file("schedules.md"));
    EXPECT_THAT(page, HasSubstr("![1F1B](pictures/schedules/1f1b.svg)"));
    EXPECT_THAT(traces::test::slurp(folder.file("pictures/schedules/1f1b.svg")), testing::StartsWith("<svg "));
}

TEST(Catalogue, SaysWhereItCannotWrite)
{
    const traces::test::TemporaryFolder folder;
    expectRefusal({"catalogue", folder.file("no/such/schedules.md").string()}, 2, "does not exist; make it first");
    EXPECT_FALSE(std::filesystem::exists(folder.file("no")));
    expectRefusal({"catalogue", "/proc/schedules.md"}, 1, "cannot make the folder");
    expectRefusal({"catalogue"}, 2, "OUT");
}

} // namespace

} // namespace stagecraft::cli::test
