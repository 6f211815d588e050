// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/whole_folder.h"

#include "traces/format/output_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace stagecraft::engine {
namespace {

using std::filesystem::path;
using traces::Error;
using traces::Expected;

// Goes away with all that is in it, unless it is kept.
class TemporaryFolder {
public:
    explicit TemporaryFolder(path folder) : folder_(std::move(folder)) {}
    ~TemporaryFolder()
    {
        std::error_code ignored; // what cannot be removed harms nobody
        std::filesystem::remove_all(folder_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    [[nodiscard]] const path& folder() const { return folder_; }

private:
    path folder_;
};

// With the permissions that any new folder gets, which mkdtemp() would not give. Returns errno.
int makeBeside(const path& folder, path& made)
{
    for (int attempt = 0;; ++attempt) {
        made = folder.parent_path() / fmt::format(".{}.{}-{}", folder.filename().string(), ::getpid(), attempt);
        if (::mkdir(made.c_str(), 0777) == 0) return 0;
        if (errno != EEXIST) return errno;
    }
}

// The names in a folder are bytes of their own, which have to reach the disk like those of a file.
Expected<void> syncFolder(const path& folder)
{
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int failed = descriptor < 0 || ::fsync(descriptor) != 0 ? errno : 0;
    if (descriptor >= 0) ::close(descriptor);
    if (failed != 0) return traces::writeError(folder, failed);
    return {};
}

} // namespace

std::vector<path> missingFolders(const path& folder)
{
    std::vector<path> missing;
    std::error_code ignored; // what cannot be looked at cannot be made either
    for (path each = folder; !each.empty() && !std::filesystem::exists(each, ignored); each = each.parent_path()) missing.push_back(each);
    return missing;
}

Expected<void> writeWholeFolder(const path& given, const std::function<Expected<void>(const path&)>& fill)
{
    const path folder = std::filesystem::absolute(given).lexically_normal();
    std::error_code failed;
    const std::vector<path> fresh = missingFolders(folder.parent_path());
    std::filesystem::create_directories(folder.parent_path(), failed);
    if (failed) return traces::writeError(folder, failed.value());
    path made;
    if (const int error = makeBeside(folder, made); error != 0) return traces::writeError(folder, error);
    const TemporaryFolder temporary(std::move(made));
    if (Expected<void> filled = fill(temporary.folder()); !filled.ok()) return filled;
    if (Expected<void> synced = syncFolder(temporary.folder()); !synced.ok()) return synced;

    // An older one changes places with the new one in a single step, and goes away as temporary.
    const bool older = std::filesystem::exists(folder, failed);
    if (::renameat2(AT_FDCWD, temporary.folder().c_str(), AT_FDCWD, folder.c_str(), older ? RENAME_EXCHANGE : 0) != 0)
        return errno == EINVAL && older ? Error{fmt::format("cannot write {}: a folder of that name is there, and its file system does not let two "
                                                            "folders change places; remove it, or give another",
                                                            folder.string())}
                                        : traces::writeError(folder, errno);
    if (Expected<void> synced = syncFolder(folder.parent_path()); !synced.ok()) return synced;
    for (const path& each : fresh)
        if (Expected<void> synced = syncFolder(each.parent_path()); !synced.ok()) return synced;
    return {};
}

} // namespace stagecraft::engine
