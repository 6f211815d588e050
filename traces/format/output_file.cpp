// SPDX-License-Identifier: Apache-2.0
#include "traces/format/output_file.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace stagecraft::traces {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;

std::string reason(int error) { return std::generic_category().message(error); }

// What stands where a folder was asked for: the first part of the way that is there and is none; empty where only folders are missing.
std::filesystem::path inTheWay(const std::filesystem::path& file)
{
    std::error_code ignored;
    std::filesystem::path sofar;
    for (const std::filesystem::path& part : file.parent_path()) {
        sofar /= part;
        if (std::filesystem::exists(sofar, ignored) && !std::filesystem::is_directory(sofar, ignored)) return sofar;
    }
    return {};
}

// Why the system knows no such place: ENOENT and ENOTDIR do not tell which part of the way it is about.
std::string whyNoPlace(const std::filesystem::path& file, int error)
{
    std::error_code ignored;
    if (std::filesystem::is_symlink(file, ignored)) {
        const std::filesystem::path target = file.parent_path() / std::filesystem::read_symlink(file, ignored);
        return "it is a link to " + target.string() + ", and " + whyNoPlace(target, error);
    }
    if (const std::filesystem::path blocking = inTheWay(file); !blocking.empty()) return blocking.string() + " is a file, not a folder; choose another place";
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
    if (!std::filesystem::exists(folder, ignored)) return "the folder " + folder.string() + " does not exist; create it or choose another";
    return "the folder " + folder.string() + " is one in which nothing can be made (" + reason(error) + "); choose another"; // as /proc
}

// mkstemp alone would keep everybody else out. A file that is replaced hands its permissions on; a new one gets the usual
// ones, read where that touches nothing that other threads use.
void givePermissions(int descriptor, const std::filesystem::path& replaced)
{
    struct stat old = {};
    if (::stat(replaced.c_str(), &old) == 0) {
        ::fchmod(descriptor, old.st_mode & 07777);
        return;
    }
    unsigned mask = 022;
    if (const std::unique_ptr<std::FILE, int (*)(std::FILE*)> status(std::fopen("/proc/self/status", "re"), &std::fclose); status) {
        std::array<char, 256> line{};
        while (std::fgets(line.data(), line.size(), status.get()) != nullptr)
            if (std::sscanf(line.data(), "Umask: %o", &mask) == 1) break;
    }
    ::fchmod(descriptor, 0666 & ~static_cast<mode_t>(mask));
}

} // namespace

Error writeError(const std::filesystem::path& file, int error)
{
    std::string message = "cannot write " + file.string() + ": ";
    switch (error) {
    case ENOENT:
    case ENOTDIR: message += whyNoPlace(file, error); break;
    case EACCES:
    case EPERM:
    case EROFS: message += "no permission (" + reason(error) + "); choose another folder"; break;
    case ENOSPC:
    case EDQUOT: message += "the disk is full; free some space or choose another disk"; break;
    case EISDIR: message += "it is a folder; give a file name"; break;
    default: message += reason(error);
    }
    return Error{message};
}

Error readError(const std::filesystem::path& file, int error)
{
    std::string message = "cannot read " + file.string() + ": ";
    switch (error) {
    case ENOENT:
    case ENOTDIR: message += "it does not exist; check the name"; break;
    case EACCES:
    case EPERM: message += "no permission (" + reason(error) + ")"; break;
    case EISDIR: message += "it is a folder; give a file name"; break;
    default: message += reason(error);
    }
    return Error{message};
}

Expected<OutputFile> OutputFile::create(const std::filesystem::path& file)
{
    std::error_code ignored; // what cannot be looked at fails below, with its reason
    const std::filesystem::file_status status = std::filesystem::status(file, ignored);
    if (std::filesystem::is_directory(status)) return writeError(file, EISDIR);
    if (std::filesystem::exists(status) && ::access(file.c_str(), W_OK) != 0) return writeError(file, errno);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
        const int descriptor = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
        if (descriptor < 0) return writeError(file, errno);
        return OutputFile(file, {}, descriptor);
    }

    // A link stays a link: what it leads to is replaced.
    std::filesystem::path target = std::filesystem::exists(status) ? std::filesystem::canonical(file, ignored) : file;
    if (target.empty()) target = file;
    std::string temporary = target.string() + ".XXXXXX";
    const int descriptor = ::mkostemp(temporary.data(), O_CLOEXEC);
    if (descriptor < 0) return writeError(file, errno);
    givePermissions(descriptor, target);
    return OutputFile(std::move(target), std::move(temporary), descriptor);
}

OutputFile::OutputFile(std::filesystem::path file, std::filesystem::path temporary, int descriptor)
    : file_(std::move(file)), temporary_(std::move(temporary)), descriptor_(descriptor)
{
    buffer_.reserve(kBufferBytes);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : file_(std::move(other.file_)), temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)), errno_(other.errno_), buffer_(std::move(other.buffer_))
{
    other.temporary_.clear();
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::write(std::string_view bytes)
{
    if (failed()) return;
    buffer_.append(bytes);
    if (buffer_.size() >= kBufferBytes) flush();
}

void OutputFile::flush()
{
    std::string_view rest = buffer_;
    while (!rest.empty() && !failed()) {
        const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
        if (written >= 0) rest.remove_prefix(static_cast<std::size_t>(written));
        else if (errno != EINTR) errno_ = errno;
    }
    buffer_.clear();
}

Expected<void> OutputFile::commit(Durability durability)
{
    flush();
    // before the new name: it must never lead to bytes that a loss of power took
    if (durability == Durability::OnDisk && !failed() && ::fsync(descriptor_) != 0) errno_ = errno;
    // some file systems tell only on close that the disk is full
    if (::close(std::exchange(descriptor_, -1)) != 0 && !failed()) errno_ = errno;
    if (!failed() && !temporary_.empty()) {
        if (::rename(temporary_.c_str(), file_.c_str()) == 0) temporary_.clear();
        else errno_ = errno;
    }
    const int error = errno_;
    discard();
    if (error != 0) return writeError(file_, error);
    return {};
}

void OutputFile::discard() noexcept
{
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    temporary_.clear();
}

Expected<void> writeWholeFile(const std::filesystem::path& file, std::string_view bytes, Durability durability)
{
    Expected<OutputFile> created = OutputFile::create(file);
    if (!created.ok()) return created.error();
    created.value().write(bytes);
    return created.value().commit(durability);
}

} // namespace stagecraft::traces
