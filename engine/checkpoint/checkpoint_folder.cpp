// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/checkpoint_folder.h"

#include "engine/checkpoint/step_folders.h"
#include "engine/checkpoint/whole_folder.h"
#include "traces/format/output_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace stagecraft::engine {

using std::filesystem::path;
using traces::Error;
using traces::Expected;

Expected<void> checkCheckpointFolder(const path& folder, int goesOnFrom)
{
    std::error_code ignored;
    const path whole = std::filesystem::absolute(folder).lexically_normal();
    const std::vector<path> missing = missingFolders(whole);
    const path there = missing.empty() ? whole : missing.back().parent_path(); // or the innermost around it that is
    if (!std::filesystem::is_directory(there, ignored))
        return Error{fmt::format("run.checkpoint: {} is no folder, so {}; give another", there.string(),
                                 missing.empty() ? "no checkpoint can be written to it" : folder.string() + " cannot be made in it")};
    if (::access(there.c_str(), W_OK | X_OK) != 0) return traces::writeError(there, errno).in("run.checkpoint");
    const std::optional<StepFolder> latest = latestStepIn(folder);
    if (!latest || latest->step <= goesOnFrom) return {};
    return Error{fmt::format("run.checkpoint: {} holds a checkpoint after step {} already, and the run begins {}: give another folder, remove what "
                             "is in it, or go on from it with run.resume",
                             folder.string(), latest->step, goesOnFrom == 0 ? std::string("anew") : fmt::format("after step {}", goesOnFrom))};
}

Expected<CheckpointLock> CheckpointLock::take(const path& folder)
{
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) {
        const std::vector<path> missing = missingFolders(std::filesystem::absolute(folder).lexically_normal());
        return traces::writeError(missing.empty() ? folder : missing.back(), failed.value()); // the outermost is what could not be made
    }
    CheckpointLock lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (lock.descriptor_ < 0) return traces::writeError(folder, errno);
    // some file systems know no locks; there whoever starts two runs has to see to it
    if (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return Error{fmt::format("run.checkpoint: another run writes its checkpoints to {} at this moment; give another folder", folder.string())};
    return lock;
}

CheckpointLock::CheckpointLock(CheckpointLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

CheckpointLock::~CheckpointLock()
{
    if (descriptor_ >= 0) ::close(descriptor_); // and with it the lock goes
}

} // namespace stagecraft::engine
