// SPDX-License-Identifier: Apache-2.0
#include "app/cli/journal_file.h"

#include "traces/format/output_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stagecraft::cli {

Expected<JournalFile> JournalFile::open(const std::filesystem::path& file)
{
    constexpr mode_t kUsualPermissions = 0666; // less the user's mask
    int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kUsualPermissions);
    const bool fresh = descriptor >= 0;
    if (!fresh && errno == EEXIST) descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kUsualPermissions);
    if (descriptor < 0) return traces::writeError(file, errno);
    // of pipes and devices, and on some file systems, there are no locks
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        ::close(descriptor);
        return Error{fmt::format("cannot write {}: another run writes its trace to it at this moment; give another file", file.string())};
    }
    return JournalFile(file, descriptor, fresh);
}

JournalFile::JournalFile(std::filesystem::path file, int descriptor, bool fresh)
    : file_(std::move(file)), descriptor_(descriptor), fresh_(fresh)
{
    struct stat status = {};
    begun_ = ::fstat(descriptor_, &status) == 0 && !S_ISREG(status.st_mode);
}

JournalFile::JournalFile(JournalFile&& other) noexcept
    : file_(std::move(other.file_)), descriptor_(std::exchange(other.descriptor_, -1)),
      fresh_(std::exchange(other.fresh_, false)), begun_(other.begun_), errno_(other.errno_), buffer_(std::move(other.buffer_))
{
}

JournalFile::~JournalFile()
{
    if (descriptor_ >= 0) ::close(descriptor_);
    if (fresh_) ::unlink(file_.c_str());
}

void JournalFile::begin()
{
    if (std::exchange(begun_, true)) return;
    fresh_ = false;
    if (::ftruncate(descriptor_, 0) != 0) errno_ = errno;
}

Expected<void> JournalFile::sync()
{
    if (!begun_) return {};
    std::string_view rest = buffer_;
    while (!rest.empty() && errno_ == 0) {
        const ssize_t count = ::write(descriptor_, rest.data(), rest.size());
        if (count >= 0) rest.remove_prefix(static_cast<std::size_t>(count));
        else if (errno != EINTR) errno_ = errno;
    }
    buffer_.clear();
    if (errno_ != 0) return traces::writeError(file_, errno_);
    return {};
}

Expected<void> JournalFile::close()
{
    const Expected<void> kept = sync();
    // some file systems tell only on close that the disk is full
    if (::close(std::exchange(descriptor_, -1)) != 0 && kept.ok()) return traces::writeError(file_, errno);
    return kept;
}

} // namespace stagecraft::cli
