// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/activity_file.h"

#include "engine/probe/cupti/cupti_api_cupti.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <unordered_map>

namespace stagecraft::gpu {

using runtime::CuptiLibrary;
using traces::Error;

namespace {

constexpr std::string_view kMark = "SCACTIV1";

// Steps over the records that are whole. False where it cannot go on.
template <class Take>
bool walk(ActivityWords& buffer, const CuptiLibrary& library, Take&& take)
{
    const std::span<std::uint8_t> bytes = bytesOf(buffer);
    CUpti_Activity* record = nullptr;
    const std::uint8_t* before = nullptr;
    while (!bytes.empty()) {
        const CUptiResult result = library.api().activityGetNextRecord(bytes.data(), bytes.size(), &record);
        if (result == CUPTI_ERROR_MAX_LIMIT_REACHED) return true;
        const auto* at = reinterpret_cast<const std::uint8_t*>(record);
        if (result != CUPTI_SUCCESS || at < bytes.data() || at >= bytes.data() + bytes.size() || (before != nullptr && at <= before)) return false;
        if (!take(*record, static_cast<std::size_t>(bytes.data() + bytes.size() - at))) return false;
        before = at;
    }
    return true;
}

// The record as what its kind says; null where it is another, or not all there.
template <class Record>
Record* as(CUpti_Activity& record, std::size_t left, std::initializer_list<CUpti_ActivityKind> kinds)
{
    const bool is = std::find(kinds.begin(), kinds.end(), record.kind) != kinds.end();
    return is && left >= sizeof(Record) ? reinterpret_cast<Record*>(&record) : nullptr;
}

class Writer {
public:
    explicit Writer(const std::filesystem::path& to) : out_(to, std::ios::binary) {}

    void raw(const void* data, std::size_t size) { out_.write(static_cast<const char*>(data), static_cast<std::streamsize>(size)); }
    template <class Number>
    void number(Number value)
    {
        raw(&value, sizeof value);
    }
    [[nodiscard]] bool done() { return static_cast<bool>(out_.flush()); }

private:
    std::ofstream out_;
};

// Reads nothing beyond the end, and says so.
class Reader {
public:
    explicit Reader(std::string_view all) : left_(all) {}

    std::string_view raw(std::size_t size)
    {
        if (size > left_.size()) {
            cut_ = true;
            size = left_.size();
        }
        const std::string_view part = left_.substr(0, size);
        left_.remove_prefix(size);
        return part;
    }
    template <class Number>
    Number number()
    {
        Number value{};
        const std::string_view part = raw(sizeof value);
        if (part.size() == sizeof value) std::memcpy(&value, part.data(), sizeof value);
        return value;
    }
    [[nodiscard]] bool cut() const { return cut_; }
    [[nodiscard]] bool atEnd() const { return left_.empty(); }

private:
    std::string_view left_;
    bool cut_ = false;
};

} // namespace

ActivityWords wordsOf(std::span<const std::uint8_t> bytes)
{
    ActivityWords words((bytes.size() + 7) / 8);
    if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
}

std::span<std::uint8_t> bytesOf(ActivityWords& words) { return {reinterpret_cast<std::uint8_t*>(words.data()), words.size() * 8}; }

Expected<void> saveActivities(const std::filesystem::path& to, ActivityFile file, const CuptiLibrary& library)
{
    std::vector<std::string> names;
    std::unordered_map<std::string, std::uintptr_t> numbers;
    const auto numberOf = [&](const char* name) -> const char* {
        if (name == nullptr) return nullptr;
        const auto [known, isNew] = numbers.try_emplace(name, names.size() + 1);
        if (isNew) names.emplace_back(name);
        return reinterpret_cast<const char*>(known->second); // not to be followed before it is loaded
    };
    for (ActivityWords& buffer : file.buffers) {
        const bool whole = walk(buffer, library, [&](CUpti_Activity& record, std::size_t left) {
            if (auto* kernel = as<CUpti_ActivityKernel10>(record, left, {CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL})) {
                kernel->name = numberOf(kernel->name);
                kernel->reserved0 = nullptr;
            }
            if (auto* copy = as<CUpti_ActivityMemcpy6>(record, left, {CUPTI_ACTIVITY_KIND_MEMCPY})) copy->reserved0 = nullptr;
            if (auto* copy = as<CUpti_ActivityMemcpyPtoP4>(record, left, {CUPTI_ACTIVITY_KIND_MEMCPY2})) copy->reserved0 = nullptr;
            if (auto* set = as<CUpti_ActivityMemset4>(record, left, {CUPTI_ACTIVITY_KIND_MEMSET})) set->reserved0 = nullptr;
            if (auto* memory = as<CUpti_ActivityMemory4>(record, left, {CUPTI_ACTIVITY_KIND_MEMORY2})) memory->source = nullptr;
            if (auto* overhead = as<CUpti_ActivityOverhead3>(record, left, {CUPTI_ACTIVITY_KIND_OVERHEAD})) overhead->overheadData = nullptr;
            return true;
        });
        if (!whole) return Error{to.string() + ": not written: CUPTI does not step over all records of a buffer that it filled"};
    }
    Writer out(to);
    out.raw(kMark.data(), kMark.size());
    out.number(file.cupti);
    out.number(static_cast<std::uint32_t>(names.size()));
    out.number(static_cast<std::uint32_t>(file.buffers.size()));
    for (const std::string& name : names) {
        out.number(static_cast<std::uint32_t>(name.size()));
        out.raw(name.data(), name.size());
    }
    for (ActivityWords& buffer : file.buffers) {
        const std::span<std::uint8_t> bytes = bytesOf(buffer);
        out.number(static_cast<std::uint64_t>(bytes.size()));
        out.raw(bytes.data(), bytes.size());
    }
    if (!out.done()) return Error{to.string() + ": cannot be written"};
    return {};
}

Expected<ActivityFile> loadActivities(const std::filesystem::path& from, const CuptiLibrary& library)
{
    std::ifstream in(from, std::ios::binary);
    if (!in) return Error{from.string() + ": cannot be read"};
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    Reader reader(all);
    if (reader.raw(kMark.size()) != kMark) return Error{from.string() + ": holds no records of CUPTI in this form"};
    ActivityFile file{.cupti = reader.number<std::uint32_t>()};
    const auto names = reader.number<std::uint32_t>();
    const auto buffers = reader.number<std::uint32_t>();
    std::vector<const char*> byNumber;
    for (std::uint32_t i = 0; i < names && !reader.cut(); ++i)
        byNumber.push_back(file.names.emplace_back(reader.raw(reader.number<std::uint32_t>())).c_str());
    for (std::uint32_t i = 0; i < buffers && !reader.cut(); ++i) {
        const std::string_view bytes = reader.raw(reader.number<std::uint64_t>());
        file.buffers.push_back(wordsOf({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}));
    }
    if (reader.cut()) return Error{from.string() + ": ends too early"};
    if (!reader.atEnd()) return Error{from.string() + ": goes on behind its last buffer"};
    for (ActivityWords& buffer : file.buffers) {
        const bool whole = walk(buffer, library, [&](CUpti_Activity& record, std::size_t left) {
            auto* kernel = as<CUpti_ActivityKernel10>(record, left, {CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
            if (kernel == nullptr || kernel->name == nullptr) return true;
            const auto number = reinterpret_cast<std::uintptr_t>(kernel->name);
            if (number > byNumber.size()) return false;
            kernel->name = byNumber[number - 1];
            return true;
        });
        if (!whole) return Error{from.string() + ": has a record that cannot be read, or a name that is not there"};
    }
    return file;
}

} // namespace stagecraft::gpu
