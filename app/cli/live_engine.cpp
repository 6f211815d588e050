// SPDX-License-Identifier: Apache-2.0
#include "app/cli/live_engine.h"

#include "app/cli/findings.h"
#include "app/cli/shared_library.h"
#include "app/cli/sibling.h"
#include "engine/probe/cupti/profiler_conflicts.h"
#include "engine/runtime/capabilities.h"
#include "engine/runtime/local_session.h"
#include "engine/runtime/runnable.h"
#include "engine/transport/mpi/mpi_module.h"
#include "engine/transport/process_group.h"
#include "engine/transport/tcp/tcp_port.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include <unistd.h>

namespace stagecraft::cli {

namespace {

std::string environment(const char* name)
{
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

} // namespace

Expected<std::unique_ptr<engine::Session>> makeSession()
{
    return runtime::makeLocalSession({.profilers = runtime::profilerConflicts({.injection = environment("CUDA_INJECTION64_PATH"),
                                                                               .kinetoDaemon = environment("KINETO_USE_DAEMON")})});
}

namespace {

bool couldBeginWith(const engine::Plan& plan, const runtime::ProcessGroup* group)
{
    engine::Plan bare = plan;
    bare.data = {};
    bare.run.resume.clear();
    std::error_code ignored;
    if (!bare.run.checkpoint.empty()) bare.run.checkpoint = (std::filesystem::temp_directory_path(ignored) / "stagecraft-no-such-run").string();
    return runtime::makeRunnable(bare, {}, group).ok();
}

} // namespace

bool couldBegin(const engine::Plan& plan) { return couldBeginWith(plan, nullptr); }

Expected<void> enterLiveEngine() { return {}; }

namespace {

constexpr std::chrono::seconds kPatience{60}; // for others that torchrun, or somebody by hand, starts elsewhere

class ProcessTeam final : public Team {
public:
    explicit ProcessTeam(std::unique_ptr<runtime::ProcessGroup> group) : group_(std::move(group)) {}

    [[nodiscard]] int rank() const override { return group_->rank(); }
    [[nodiscard]] int speaker() const override { return group_->lost() == 0 ? 1 : 0; }
    Expected<std::string> fromFirst(std::string_view about, const Expected<std::string>& own) override { return group_->fromFirst(about, own); }
    Expected<void> agree(std::string_view about, const Expected<void>& own) override { return group_->agree(about, own); }
    void leave() override { group_->leave(); }
    std::unique_ptr<engine::Session> makeSession() override { return runtime::makeLocalSession({.group = group_.get()}); }
    [[nodiscard]] bool couldBegin(const engine::Plan& plan) const override { return couldBeginWith(plan, group_.get()); }

private:
    std::unique_ptr<runtime::ProcessGroup> group_;
};

std::string firstLine(const char* file)
{
    std::string line;
    std::getline(std::ifstream(file) >> std::ws, line);
    return line;
}

// Hosts count the time since they started; containers on one may count from elsewhere.
std::string clockName()
{
    std::error_code unknown;
    return firstLine("/proc/sys/kernel/random/boot_id") + " " + std::filesystem::read_symlink("/proc/self/ns/time", unknown).string();
}

std::string hostName()
{
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

Expected<std::unique_ptr<runtime::MessagePort>> openMpi()
{
    const std::filesystem::path file = programFolder() / runtime::kMpiModule;
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) return Error{noMpiModule()};
    const SharedLibrary module(file.string(), SharedLibrary::Symbols::Shared);
    const auto open = module.function<runtime::OpenMpiPort>(runtime::kOpenMpiPort);
    if (open == nullptr) return Error{"MPI cannot be used: " + module.reason()};
    std::array<char, 512> reason{};
    std::unique_ptr<runtime::MessagePort> port(open(reason.data(), reason.size()));
    if (port == nullptr) return Error{reason.data()};
    return port;
}

Expected<std::unique_ptr<runtime::MessagePort>> openTcp(const Launch& launch)
{
    const LaunchMeeting& meeting = *launch.meeting;
    Expected<std::unique_ptr<runtime::MeetingPoint>> point = runtime::openMeetingPoint(
        {.host = meeting.host, .port = meeting.port, .serves = meeting.rank == 0 && !meeting.served, .patience = kPatience, .round = meeting.round});
    if (!point.ok()) return point.error();
    return runtime::openTcpPort(std::move(point).value(), {.rank = meeting.rank, .size = launch.size, .patience = kPatience});
}

} // namespace

Expected<std::unique_ptr<Team>> joinTeam(const Launch& launch)
{
    Expected<std::unique_ptr<runtime::MessagePort>> port = launch.meeting ? openTcp(launch) : openMpi();
    if (!port.ok()) return port.error();
    Expected<std::unique_ptr<runtime::ProcessGroup>> group =
        runtime::ProcessGroup::join(std::move(port).value(), {.host = hostName(), .clock = clockName()}, launch.together,
                                    launch.meeting ? runtime::Launcher::Torchrun : runtime::Launcher::Mpirun);
    if (!group.ok()) return group.error();
    return std::unique_ptr<Team>(std::make_unique<ProcessTeam>(std::move(group).value()));
}

LibTorchBuild libTorchBuild()
{
    const runtime::RuntimeCapabilities found = runtime::runtimeCapabilities();
    std::string abilities = found.vectorUnits;
    for (const auto& [name, version] :
         {std::pair{"MKL", found.mkl}, std::pair{"oneDNN", found.oneDnn}, std::pair{"OpenMP", found.openMp}}) {
        if (!version.empty()) abilities += fmt::format(", {} {}", name, version);
    }
    return {.version = found.torchVersion, .library = STAGECRAFT_LIBTORCH_LIBRARY, .abilities = std::move(abilities)};
}

} // namespace stagecraft::cli
