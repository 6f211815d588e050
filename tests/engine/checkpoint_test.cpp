// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints on the disk: whole or not at all, whatever happens while one is written.
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/whole_folder.h"
#include "engine/plan/plan_json.h"
#include "tests/traces/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <numeric>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stagecraft::engine {
namespace {

using std::filesystem::path;
using testing::HasSubstr;
using traces::test::slurp;
using traces::test::spill;
using traces::test::TemporaryFolder;

Plan somePlan()
{
    Plan plan = presetPlan("hello").value();
    plan.run.seed = 77;
    return plan;
}

// Every weight is the number of the step.
Expected<path> write(const path& folder, int step, std::size_t weights = 1000)
{
    const std::vector<float> values(weights, static_cast<float>(step));
    const Plan plan = somePlan();
    const auto info = [&](const char* name) { return TensorInfo{name, TensorType::F32, {static_cast<std::int64_t>(weights)}}; };
    return writeCheckpoint(folder, {.step = step,
                                    .plan = plan,
                                    .weights = {{info("layers.0.weight"), values.data()}},
                                    .optimizer = {{info("layers.0.weight.momentum_buffer"), values.data()}}});
}

void expectWhole(const Checkpoint& checkpoint, int step)
{
    EXPECT_EQ(checkpoint.step, step);
    EXPECT_EQ(checkpoint.plan, somePlan());
    for (const auto& [file, name] : {std::pair(&checkpoint.weights, "layers.0.weight"), std::pair(&checkpoint.optimizer, "layers.0.weight.momentum_buffer")}) {
        const auto at = file->tensors().find(name);
        ASSERT_NE(at, file->tensors().end());
        std::vector<float> values(static_cast<std::size_t>(at->second.end) / sizeof(float));
        ASSERT_TRUE(file->read(name, std::as_writable_bytes(std::span(values))).ok());
        EXPECT_EQ(values, std::vector<float>(values.size(), static_cast<float>(step)));
    }
}

TEST(Checkpoint, IsReadAsItWasWritten)
{
    const TemporaryFolder folder;
    const Expected<path> written = write(folder.file("new/runs"), 12);
    ASSERT_TRUE(written.ok()) << written.error().message;
    EXPECT_EQ(written.value(), folder.file("new/runs/step-0000012"));
    const Expected<Checkpoint> read = openCheckpoint(written.value());
    ASSERT_TRUE(read.ok()) << read.error().message;
    expectWhole(read.value(), 12);
}

TEST(Checkpoint, OfAFolderOfSeveralTheLatestIsTaken)
{
    const TemporaryFolder folder;
    for (const int step : {9, 100, 20}) ASSERT_TRUE(write(folder.file("runs"), step).ok());
    std::filesystem::create_directory(folder.file("runs/step-0000999")); // nothing in it
    std::filesystem::create_directory(folder.file("runs/.step-0001000.1-0")); // from a process that was killed
    spill(folder.file("runs/.step-0001000.1-0/checkpoint.json"), "{");
    spill(folder.file("runs/step-0005000.txt"), "");
    const Expected<Checkpoint> read = openCheckpoint(folder.file("runs"));
    ASSERT_TRUE(read.ok()) << read.error().message;
    expectWhole(read.value(), 100);
}

TEST(Checkpoint, ReplacesTheOneOfTheSameStep)
{
    const TemporaryFolder folder;
    ASSERT_TRUE(write(folder.file("runs"), 3, 10).ok());
    ASSERT_TRUE(write(folder.file("runs"), 3, 2000).ok());
    const Expected<Checkpoint> read = openCheckpoint(folder.file("runs"));
    ASSERT_TRUE(read.ok()) << read.error().message;
    expectWhole(read.value(), 3);
    EXPECT_EQ(read.value().weights.tensors().at("layers.0.weight").info.shape.front(), 2000);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.file("runs")), {}), 1);
}

// As long as it lives no file of this process may grow beyond this.
class SmallFiles {
public:
    explicit SmallFiles(rlim_t most)
    {
        std::signal(SIGXFSZ, SIG_IGN); // then a write fails, as on a full disk
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit small{most, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &small);
    }
    ~SmallFiles()
    {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, SIG_DFL);
    }
    SmallFiles(const SmallFiles&) = delete;
    SmallFiles& operator=(const SmallFiles&) = delete;

private:
    rlimit before_{};
};

// Each folder that is made has to reach the disk with the one that it is in.
TEST(WholeFolder, KnowsWhichFoldersAreMadeAnew)
{
    const TemporaryFolder folder;
    EXPECT_EQ(missingFolders(folder.file("a/b/c")), (std::vector<path>{folder.file("a/b/c"), folder.file("a/b"), folder.file("a")}));
    ASSERT_TRUE(write(folder.file("a/b"), 3).ok());
    EXPECT_EQ(missingFolders(folder.file("a/b")), std::vector<path>{});
    EXPECT_EQ(missingFolders(folder.file("a/b/c")), std::vector<path>{folder.file("a/b/c")});
}

TEST(Checkpoint, AWriteThatFailsHarmsNoOlderOne)
{
    const TemporaryFolder folder;
    ASSERT_TRUE(write(folder.file("runs"), 3).ok());
    for (const int step : {3, 4}) {
        const SmallFiles limit(100'000);
        const Expected<path> written = write(folder.file("runs"), step, 1'000'000);
        ASSERT_FALSE(written.ok());
        EXPECT_THAT(written.error().message, HasSubstr("cannot write " + folder.file("runs").string()));
        EXPECT_THAT(written.error().message, HasSubstr("File too large"));
    }
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.file("runs")), {}), 1); // nothing half is left
    const Expected<Checkpoint> read = openCheckpoint(folder.file("runs"));
    ASSERT_TRUE(read.ok()) << read.error().message;
    expectWhole(read.value(), 3);
}

// A process that writes one after the other, and is killed in the midst of it.
TEST(Checkpoint, AKilledProcessLeavesAWholeOne)
{
    for (const int milliseconds : {3, 10, 25, 60}) {
        const TemporaryFolder folder;
        ASSERT_TRUE(write(folder.file("runs"), 0, 50'000).ok());
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            for (int step = 0;; step = (step + 1) % 3)
                if (!write(folder.file("runs"), step, 50'000).ok()) ::_exit(1);
        }
        ::usleep(static_cast<useconds_t>(milliseconds) * 1000);
        ::kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFSIGNALED(status));
        const Expected<Checkpoint> read = openCheckpoint(folder.file("runs"));
        ASSERT_TRUE(read.ok()) << read.error().message;
        expectWhole(read.value(), read.value().step);
    }
}

TEST(Checkpoint, SaysWhatIsMissingOrNotUnderstood)
{
    const TemporaryFolder folder;
    EXPECT_THAT(openCheckpoint(folder.file("nowhere")).error().message, HasSubstr("it does not exist"));
    std::filesystem::create_directory(folder.file("empty"));
    EXPECT_THAT(openCheckpoint(folder.file("empty")).error().message, HasSubstr("there is no checkpoint in"));

    const path step = write(folder.file("runs"), 5).value();
    const std::string good = slurp(step / "checkpoint.json");
    const auto withDescription = [&](const std::string& text) {
        spill(step / "checkpoint.json", text);
        return openCheckpoint(step).error().message;
    };
    EXPECT_THAT(withDescription("[]"), HasSubstr("must be an object"));
    EXPECT_THAT(withDescription(R"({"stagecraft_checkpoint":2})"), HasSubstr("stagecraft_checkpoint: 2 is not allowed"));
    EXPECT_THAT(withDescription(R"({"stagecraft_checkpoint":1,"step":-1})"), HasSubstr("step: -1 is not allowed"));
    EXPECT_THAT(withDescription(R"({"stagecraft_checkpoint":1,"step":1})"), HasSubstr("plan: is missing"));
    EXPECT_THAT(withDescription(R"({"stagecraft_checkpoint":1,"step":1,"plan":{"stagecraft_plan":1,"pipeline":{"ranks":0}}})"),
                HasSubstr("plan: pipeline.ranks: 0 is not allowed"));

    spill(step / "checkpoint.json", good);
    std::filesystem::remove(step / "optimizer.safetensors");
    EXPECT_THAT(openCheckpoint(step).error().message, HasSubstr("optimizer.safetensors: it does not exist"));
}

} // namespace
} // namespace stagecraft::engine
