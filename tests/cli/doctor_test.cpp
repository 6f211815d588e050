// SPDX-License-Identifier: Apache-2.0
//
// What the command line tells about the machine.
#include "tests/cli/expectations.h"

#include <filesystem>

namespace stagecraft::cli::test {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Doctor, TellsWhatIsThereOrWhyNot)
{
    const Json json = jsonOf({"doctor", "--json"});
    EXPECT_THAT(keysOf(json), ElementsAre("cpu", "cores", "memory", "libtorch", "cuda", "cupti", "nccl", "gpus", "mpi", "qt",
                                          "desktop", "fonts"));
    for (const auto& [name, finding] : json.items()) {
        std::vector<std::string> keys{"found", "version", "reason", "disables"};
        if (name == "gpus") keys.emplace_back("list");
        EXPECT_EQ(keysOf(finding), keys) << name;
        EXPECT_EQ(finding["found"].get<bool>(), finding["reason"].is_null()) << name;
        EXPECT_EQ(finding["found"].get<bool>(), !finding["version"].is_null()) << name;
        if (!finding["found"].get<bool>()) {
            EXPECT_FALSE(finding["disables"].is_null()) << name;
        }
    }
    EXPECT_EQ(json["cores"]["found"], true);
    EXPECT_EQ(json["libtorch"]["found"].get<bool>(), STAGECRAFT_TEST_WITH_TORCH == 1);

    const Output people = stagecraft({"doctor"});
    EXPECT_EQ(people.exitCode, 0);
    for (const char* title : {"CPU", "cores", "memory", "LibTorch", "CUDA", "CUPTI", "NCCL", "GPUs", "MPI", "Qt", "fonts"}) {
        EXPECT_THAT(people.out, HasSubstr(title));
    }
}

TEST(Doctor, SaysOnceWhatSeveralThingsLimit)
{
    const Json json = jsonOf({"doctor", "--json"});
    const std::string people = stagecraft({"doctor"}).out;
    for (const auto& [name, finding] : json.items()) {
        if (finding["disables"].is_null()) continue;
        const std::string limit = ": " + finding["disables"].get<std::string>() + "\n";
        const std::size_t first = people.find(limit);
        EXPECT_NE(first, std::string::npos) << name;
        EXPECT_EQ(people.find(limit, first + 1), std::string::npos) << name;
    }
}

TEST(Doctor, ListsTheGpusThatTheDriverHas)
{
    const Output output = shell("LD_LIBRARY_PATH='" STAGECRAFT_FAKE_CUDA "' \"$CLI\" doctor --json");
    ASSERT_EQ(output.exitCode, 0) << output.err;
    const Json json = Json::parse(output.out);
    EXPECT_EQ(json["cuda"]["version"], "for CUDA 13.0");
    EXPECT_EQ(json["gpus"]["version"], "2: Fake GPU A (8 GiB), Fake GPU B (16 GiB)");
    EXPECT_EQ(json["gpus"]["list"], Json::parse(R"([{"name": "Fake GPU A", "memory_bytes": 8589934592, "compute_capability": "9.0"},
                                                    {"name": "Fake GPU B", "memory_bytes": 17179869184, "compute_capability": null}])"));
    // A GPU alone makes no run on it: the program needs its CUDA module.
    const std::filesystem::path module = std::filesystem::path(program()).parent_path() / "stagecraft_cuda.so";
    if (std::filesystem::exists(module)) EXPECT_TRUE(json["gpus"]["disables"].is_null());
    else EXPECT_THAT(json["gpus"]["disables"].get<std::string>(), HasSubstr(module.filename().string() + " is not there"));
}

} // namespace

} // namespace stagecraft::cli::test
