// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/tensor_file.h"

#include "engine/plan/json_object.h"
#include "traces/format/output_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace stagecraft::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and data is written as it lies in memory");

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::int64_t kPrefix = 8;               // bytes of the header's length
constexpr std::uint64_t kMostHeader = 100'000'000; // the format's own limit

struct TypeRow {
    std::string_view text;
    TensorType type;
    std::int64_t bytes;
};
constexpr std::array<TypeRow, 13> kTypes{{{"F64", TensorType::F64, 8},
                                          {"I64", TensorType::I64, 8},
                                          {"U64", TensorType::U64, 8},
                                          {"F32", TensorType::F32, 4},
                                          {"I32", TensorType::I32, 4},
                                          {"U32", TensorType::U32, 4},
                                          {"F16", TensorType::F16, 2},
                                          {"BF16", TensorType::BF16, 2},
                                          {"I16", TensorType::I16, 2},
                                          {"U16", TensorType::U16, 2},
                                          {"I8", TensorType::I8, 1},
                                          {"U8", TensorType::U8, 1},
                                          {"BOOL", TensorType::Bool, 1}}};
const TypeRow& rowOf(TensorType type) { return kTypes[static_cast<std::size_t>(type)]; }

// Nothing where it is more than an int64 holds.
std::optional<std::int64_t> bytesOf(const TensorInfo& info)
{
    std::int64_t bytes = elementBytes(info.type);
    for (const std::int64_t length : info.shape)
        if (__builtin_mul_overflow(bytes, length, &bytes)) return std::nullopt;
    return bytes;
}

std::string headerOf(const std::vector<TensorData>& tensors)
{
    nlohmann::ordered_json json{{std::string(kMetadata), {{"format", "pt"}}}}; // row by row, as PyTorch has them
    std::int64_t end = 0;
    for (const auto& [info, data] : tensors) {
        const std::int64_t begin = std::exchange(end, end + *bytesOf(info));
        json[info.name] = {{"dtype", typeText(info.type)}, {"shape", info.shape}, {"data_offsets", {begin, end}}};
    }
    std::string header = json.dump();
    while (header.size() % static_cast<std::size_t>(kPrefix) != 0) header += ' '; // so that the data is aligned
    return header;
}

// A number of an array of the header, which has no other.
Expected<std::int64_t> wholeNumber(const Json& json, const std::string& path)
{
    const bool fits = json.is_number_unsigned() && std::in_range<std::int64_t>(json.get<std::uint64_t>());
    if (!fits) return Error{fmt::format("{}: {} is not allowed; a whole number from 0 on", path, JsonObject::shown(json))};
    return json.get<std::int64_t>();
}

std::vector<std::int64_t> numbersOf(JsonObject& object, std::string_view key)
{
    std::vector<std::int64_t> numbers;
    object.require(key);
    object.array(key, [&](const Json& each, const std::string& path) -> Expected<void> {
        const Expected<std::int64_t> number = wholeNumber(each, path);
        if (!number.ok()) return number.error();
        numbers.push_back(number.value());
        return {};
    });
    return numbers;
}

Expected<TensorFile::Entry> readEntry(const std::string& name, const Json& json, std::int64_t dataBytes)
{
    JsonObject object(json, name);
    TensorFile::Entry entry;
    entry.info.name = name;
    std::string type;
    object.require("dtype");
    object.text("dtype", type);
    entry.info.shape = numbersOf(object, "shape");
    const std::vector<std::int64_t> offsets = numbersOf(object, "data_offsets");
    if (Expected<void> read = object.finish(); !read.ok()) return read.error();

    const auto known = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& row) { return row.text == type; });
    if (known == kTypes.end()) return Error{fmt::format("{}: its elements are of type \"{}\", which is not known here", name, type)};
    entry.info.type = known->type;
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > dataBytes)
        return Error{fmt::format("{}: its data_offsets are [{}], and there are {} bytes of data", name, fmt::join(offsets, ", "), dataBytes)};
    entry.begin = offsets[0];
    entry.end = offsets[1];
    const std::optional<std::int64_t> bytes = bytesOf(entry.info);
    if (!bytes || *bytes != entry.end - entry.begin)
        return Error{fmt::format("{}: {} does not take the {} bytes that its data_offsets give it", name, describe(entry.info),
                                 entry.end - entry.begin)};
    return entry;
}

// Every byte of the data belongs to one tensor.
Expected<void> checkCover(const std::map<std::string, TensorFile::Entry, std::less<>>& tensors, std::int64_t dataBytes)
{
    std::vector<const TensorFile::Entry*> inOrder;
    for (const auto& [name, entry] : tensors) inOrder.push_back(&entry);
    std::sort(inOrder.begin(), inOrder.end(), [](const auto* a, const auto* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
    std::int64_t covered = 0;
    for (const TensorFile::Entry* entry : inOrder) {
        if (entry->begin != covered)
            return Error{fmt::format("{}: its data begins at byte {} of the data, and what is before it ends at {}", entry->info.name, entry->begin,
                                     covered)};
        covered = entry->end;
    }
    if (covered != dataBytes) return Error{fmt::format("there are {} bytes of data, and the tensors take {}", dataBytes, covered)};
    return {};
}

Expected<void> readAt(const std::filesystem::path& path, int descriptor, std::int64_t offset, std::span<std::byte> to)
{
    while (!to.empty()) {
        const ssize_t got = ::pread(descriptor, to.data(), to.size(), offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return traces::readError(path, errno);
        if (got == 0) return Error{"it ends too early"}.in(path.string());
        to = to.subspan(static_cast<std::size_t>(got));
        offset += got;
    }
    return {};
}

} // namespace

std::string_view typeText(TensorType type) { return rowOf(type).text; }
std::int64_t elementBytes(TensorType type) { return rowOf(type).bytes; }
std::string describe(const TensorInfo& info) { return fmt::format("{} [{}]", typeText(info.type), fmt::join(info.shape, ", ")); }

Expected<void> writeTensorFile(const std::filesystem::path& file, std::vector<TensorData> tensors)
{
    std::sort(tensors.begin(), tensors.end(), [](const TensorData& a, const TensorData& b) {
        return std::pair(-elementBytes(a.info.type), std::string_view(a.info.name)) < std::pair(-elementBytes(b.info.type), std::string_view(b.info.name));
    });
    Expected<traces::OutputFile> created = traces::OutputFile::create(file);
    if (!created.ok()) return created.error();
    traces::OutputFile& output = created.value();
    const std::string header = headerOf(tensors);
    const std::uint64_t length = header.size();
    output.write({reinterpret_cast<const char*>(&length), sizeof length});
    output.write(header);
    constexpr std::int64_t kPiece = std::int64_t{1} << 20; // of a tensor, which is copied on its way
    for (const auto& [info, data] : tensors) {
        const std::int64_t bytes = *bytesOf(info);
        for (std::int64_t done = 0; done < bytes && !output.failed(); done += kPiece)
            output.write({static_cast<const char*>(data) + done, static_cast<std::size_t>(std::min(kPiece, bytes - done))});
    }
    return output.commit(traces::Durability::OnDisk);
}

TensorFile::TensorFile(TensorFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), dataBegin_(other.dataBegin_), tensors_(std::move(other.tensors_))
{
}

TensorFile& TensorFile::operator=(TensorFile&& other) noexcept
{
    std::swap(path_, other.path_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(dataBegin_, other.dataBegin_);
    std::swap(tensors_, other.tensors_);
    return *this;
}

TensorFile::~TensorFile()
{
    if (descriptor_ >= 0) ::close(descriptor_);
}

Expected<TensorFile> TensorFile::open(const std::filesystem::path& file)
{
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe of that name must not hold us up
    if (descriptor < 0) return traces::readError(file, errno);
    TensorFile opened(file, descriptor);
    if (Expected<void> read = opened.readHeader(); !read.ok()) return read.error();
    return opened;
}

Expected<void> TensorFile::readHeader()
{
    const auto wrong = [&](const Error& error) { return error.in(fmt::format("{} is no safetensors file that can be read", path_.string())); };
    struct stat status = {};
    if (::fstat(descriptor_, &status) != 0) return traces::readError(path_, errno);
    if (S_ISDIR(status.st_mode)) return traces::readError(path_, EISDIR);
    if (!S_ISREG(status.st_mode) || status.st_size < kPrefix) return wrong(Error{"it has no header"});
    std::uint64_t length = 0;
    if (Expected<void> read = readAt(path_, descriptor_, 0, std::as_writable_bytes(std::span(&length, 1))); !read.ok()) return read;
    const auto behind = static_cast<std::uint64_t>(status.st_size - kPrefix);
    if (length > kMostHeader || length > behind)
        return wrong(Error{fmt::format("its header is said to have {} bytes; there are {}, and at most {} are allowed", length, behind, kMostHeader)});
    std::string header(length, '\0');
    if (Expected<void> read = readAt(path_, descriptor_, kPrefix, std::as_writable_bytes(std::span(header))); !read.ok()) return read;
    if (!header.starts_with('{')) return wrong(Error{"its header does not begin with {"});
    Expected<Json> json = parseJson(header);
    if (!json.ok()) return wrong(json.error().in("header"));

    dataBegin_ = kPrefix + static_cast<std::int64_t>(length);
    const std::int64_t dataBytes = status.st_size - dataBegin_;
    for (const auto& [name, value] : json.value().items()) {
        if (name == kMetadata) {
            const bool texts = value.is_object() && std::all_of(value.begin(), value.end(), [](const Json& each) { return each.is_string(); });
            if (!texts) return wrong(Error{fmt::format("{}: it must hold texts alone", kMetadata)});
            continue;
        }
        Expected<Entry> entry = readEntry(name, value, dataBytes);
        if (!entry.ok()) return wrong(entry.error());
        tensors_.emplace(name, std::move(entry).value());
    }
    if (Expected<void> cover = checkCover(tensors_, dataBytes); !cover.ok()) return wrong(cover.error());
    return {};
}

Expected<void> TensorFile::read(std::string_view name, std::span<std::byte> to) const
{
    return readAt(path_, descriptor_, dataBegin_ + tensors_.find(name)->second.begin, to);
}

} // namespace stagecraft::engine
