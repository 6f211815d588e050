// SPDX-License-Identifier: Apache-2.0
#include "tests/layering/tree_rules.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>

namespace stagecraft::tests {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

constexpr const char* kApache = "// SPDX-License-Identifier: Apache-2.0\n";
constexpr const char* kGpl = "// SPDX-License-Identifier: GPL-3.0-or-later\n";

std::vector<std::string> faultsWith(const char* path, const char* licence, const char* include)
{
    return faultsOf(path, std::string(licence) + include + "\n");
}

// --- the check itself can fail -----------------------------------------------------------------------------------------

struct Forbidden {
    const char* path;
    const char* include;
};
void PrintTo(const Forbidden& forbidden, std::ostream* out)
{
    *out << forbidden.path << " " << forbidden.include;
}

class ForbiddenInclude : public testing::TestWithParam<Forbidden> {};

TEST_P(ForbiddenInclude, IsFoundWithFileAndLine)
{
    const auto [path, include] = GetParam();
    const bool window = std::string_view(path).starts_with("ui/") || std::string_view(path).starts_with("app/desktop/");
    EXPECT_THAT(faultsWith(path, window ? kGpl : kApache, include),
                ElementsAre(HasSubstr(std::string(path) + ":2: includes")));
}

INSTANTIATE_TEST_SUITE_P(Layering, ForbiddenInclude,
                         testing::Values(Forbidden{"traces/store/trace.h", "#include <QString>"},
                                         Forbidden{"traces/store/trace.h", "#include \"engine/plan/plan.h\""},
                                         Forbidden{"traces/store/trace.cpp", "#include <torch/torch.h>"},
                                         Forbidden{"engine/plan/plan.h", "#include \"ui/lab/lab.h\""},
                                         Forbidden{"engine/plan/plan.cpp", "#include \"engine/runtime/local_session.h\""},
                                         Forbidden{"engine/runtime/stage.h", "#include <torch/nn.h>"},
                                         Forbidden{"engine/runtime/stage.cpp", "#  include <QObject>"},
                                         Forbidden{"engine/probe/clock.h", "#include <cuda_runtime.h>"},
                                         Forbidden{"engine/probe/cupti/activity_join.h", "#include <cupti.h>"},
                                         Forbidden{"engine/simulate/simulate.cpp", "#include <c10/core/Allocator.h>"},
                                         Forbidden{"ui/lab/lab.cpp", "#include <torch/torch.h>"},
                                         Forbidden{"ui/lab/lab.cpp", "#include \"engine/runtime/local_session.h\""},
                                         Forbidden{"ui/lab/lab.cpp", "#include \"app/desktop/options.h\""},
                                         Forbidden{"app/desktop/main.cpp", "#include \"engine/probe/clock.h\""},
                                         Forbidden{"app/cli/main.cpp", "#include <QtCore/QCoreApplication>"},
                                         Forbidden{"app/cli/main.cpp", "#include <qcustomplot.h>"},
                                         Forbidden{"app/cli/main.cpp", "#include \"ui/window/main_window.h\""},
                                         Forbidden{"app/cli/doctor.cpp", "#include <nccl.h>"},
                                         Forbidden{"engine/plan/plan.cpp", "#include <CLI/CLI.hpp>"}));

TEST(Layering, AllowsWhatTheLayersAreFor)
{
    EXPECT_THAT(faultsWith("ui/lab/lab.cpp", kGpl, "#include <QWidget>\n#include \"engine/plan/plan.h\""), IsEmpty());
    EXPECT_THAT(faultsWith("engine/runtime/stage.cpp", kApache, "#include <torch/nn.h>"), IsEmpty());
    EXPECT_THAT(faultsWith("engine/runtime/stage_torch.h", kApache, "#include <torch/nn.h>"), IsEmpty());
    EXPECT_THAT(faultsWith("engine/probe/cupti/cupti_api_cupti.h", kApache, "#include <cupti.h>"), IsEmpty());
    EXPECT_THAT(faultsWith("app/cli/live_engine.cpp", kApache, "#include \"engine/runtime/local_session.h\""), IsEmpty());
    EXPECT_THAT(faultsWith("traces/store/trace.cpp", kApache, "// #include <QString> would be wrong"), IsEmpty());
}

TEST(Licences, AreMissedWhereTheyAreMissing)
{
    EXPECT_THAT(faultsOf("traces/a.h", "#pragma once\n"), ElementsAre(HasSubstr("traces/a.h:1: has no SPDX")));
    EXPECT_THAT(faultsOf("scripts/a.sh", "#!/bin/sh\necho\n"), ElementsAre(HasSubstr("no SPDX")));
    EXPECT_THAT(faultsOf("traces/a.h", ""), ElementsAre(HasSubstr("no SPDX")));
    EXPECT_THAT(faultsOf("scripts/a.sh", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"), IsEmpty());
}

TEST(Licences, FollowTheFolder)
{
    EXPECT_THAT(faultsOf("ui/a.h", kApache), ElementsAre(HasSubstr("files here are GPL-3.0-or-later")));
    EXPECT_THAT(faultsOf("app/desktop/main.cpp", kApache), ElementsAre(HasSubstr("files here are GPL-3.0-or-later")));
    EXPECT_THAT(faultsOf("engine/a.cpp", kGpl), ElementsAre(HasSubstr("files here are Apache-2.0")));
}

// --- the tree as it is -------------------------------------------------------------------------------------------------

std::string contentOf(const fs::path& file)
{
    std::ifstream stream(file, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::string> sourcesBelow(const fs::path& root)
{
    std::vector<std::string> sources;
    const auto take = [&](const fs::path& file) {
        std::string path = fs::relative(file, root).generic_string();
        if (fs::is_regular_file(file) && isSource(path)) sources.push_back(std::move(path));
    };
    for (const char* folder : {"app", "bench", "cmake", "engine", "resources", "scripts", "tests", "traces", "ui"}) {
        if (!fs::exists(root / folder)) continue;
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) take(entry.path());
    }
    for (const char* file : {"CMakeLists.txt", "run", "test", ".ci/run"}) take(root / file);
    return sources;
}

TEST(TheTree, KeepsTheLayersApartAndNamesItsLicences)
{
    const fs::path root = STAGECRAFT_SOURCE_DIR;
    const std::vector<std::string> sources = sourcesBelow(root);
    EXPECT_GT(sources.size(), 50U) << "the walk must really see the tree";
    for (const std::string& source : sources) EXPECT_THAT(faultsOf(source, contentOf(root / source)), IsEmpty());
}

TEST(TheTree, HoldsTheTextsOfItsLicences)
{
    const fs::path licences = fs::path(STAGECRAFT_SOURCE_DIR) / "LICENSES";
    EXPECT_THAT(contentOf(licences / "Apache-2.0.txt"), HasSubstr("Version 2.0, January 2004"));
    EXPECT_THAT(contentOf(licences / "GPL-3.0-or-later.txt"), HasSubstr("Version 3, 29 June 2007"));
}

} // namespace

} // namespace stagecraft::tests
