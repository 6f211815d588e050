// SPDX-License-Identifier: Apache-2.0
#include "engine/data/npy.h"

#include "engine/data/element_bytes.h"
#include "traces/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <string>

namespace stagecraft::engine {

using traces::counted;
using traces::Error;
using traces::Expected;

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Header {
    std::string type; // "<f4"
    bool fortran = false;
    std::vector<std::int64_t> shape;
};

// The one form of dictionary that NumPy writes: texts, True or False, and a tuple of whole numbers.
class HeaderText {
public:
    HeaderText(std::string_view text, std::size_t offset) : text_(text), offset_(offset) {}

    Expected<Header> read()
    {
        bool descr = false;
        bool order = false;
        bool shape = false;
        if (!take('{')) return wrong("a dictionary { ... } must begin here");
        while (!take('}')) {
            const std::optional<std::string> key = quoted();
            if (!key || !take(':')) return wrong("a key in quotes and a colon must follow here");
            if (*key == "descr" && !descr) {
                const std::optional<std::string> type = quoted();
                if (!type) return wrong("the type of the values must be a text; arrays of records cannot be read: save one field by itself");
                header_.type = *type;
                descr = true;
            } else if (*key == "fortran_order" && !order) {
                if (takeWord("True")) header_.fortran = true;
                else if (!takeWord("False")) return wrong("True or False must follow here");
                order = true;
            } else if (*key == "shape" && !shape) {
                if (!tuple()) return wrong("a tuple of at most 8 whole numbers must follow here");
                shape = true;
            } else {
                return wrong(fmt::format("the key '{}' is not known, or stands twice; descr, fortran_order and shape are",
                                         key->substr(0, 40)));
            }
            if (!take(',') && !sees('}')) return wrong("a comma or the end of the dictionary must follow here");
        }
        if (descr && order && shape) return std::move(header_);
        return wrong("the header lacks descr, fortran_order or shape");
    }

private:
    Error wrong(const std::string& what) const { return Error{fmt::format("byte {}: {}", offset_ + at_, what)}; }

    void skipBlanks()
    {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    }
    bool sees(char c)
    {
        skipBlanks();
        return at_ < text_.size() && text_[at_] == c;
    }
    bool take(char c)
    {
        if (!sees(c)) return false;
        ++at_;
        return true;
    }
    bool takeWord(std::string_view word)
    {
        skipBlanks();
        if (!text_.substr(at_).starts_with(word)) return false;
        at_ += word.size();
        return true;
    }
    std::optional<std::string> quoted()
    {
        const char quote = sees('"') ? '"' : '\'';
        if (!sees(quote)) return std::nullopt;
        const std::size_t end = text_.find(quote, at_ + 1);
        if (end == std::string_view::npos) return std::nullopt;
        std::string value(text_.substr(at_ + 1, end - at_ - 1));
        at_ = end + 1;
        return value;
    }
    bool tuple()
    {
        constexpr std::size_t kMostExtents = 8;
        if (!take('(')) return false;
        while (!take(')')) {
            skipBlanks();
            std::int64_t extent = 0;
            const auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
            if (code != std::errc{} || header_.shape.size() == kMostExtents) return false;
            at_ = static_cast<std::size_t>(end - text_.data());
            header_.shape.push_back(extent);
            if (!take(',') && !sees(')')) return false;
        }
        return true;
    }

    std::string_view text_;
    std::size_t offset_; // of the text in the file
    std::size_t at_ = 0;
    Header header_;
};

struct Type {
    std::string_view name;
    std::size_t size;
};
constexpr std::array kTypes{Type{"<f4", 4}, Type{"<f8", 8}, Type{"|u1", 1}, Type{"<i8", 8}};

} // namespace

Expected<Array> readNpy(std::string_view bytes)
{
    if (!bytes.starts_with(kMagic) || bytes.size() < 10)
        return Error{"byte 0: this is no .npy file, which begins with \\x93NUMPY; save the array with numpy.save"};
    const auto major = static_cast<unsigned char>(bytes[6]);
    if (major < 1 || major > 3) return Error{fmt::format("byte 6: version {} of the format is not known; 1, 2 and 3 are", major)};
    const std::size_t begin = major == 1 ? 10 : 12;
    if (bytes.size() < begin) return Error{fmt::format("byte {}: the file ends within its header; save it again", bytes.size())};
    const std::size_t length =
        major == 1 ? wholeAt<std::uint16_t>(bytes, 8, ByteOrder::Little) : wholeAt<std::uint32_t>(bytes, 8, ByteOrder::Little);
    if (length > bytes.size() - begin)
        return Error{fmt::format("byte {}: the file ends within its header of {}; save it again", bytes.size(), counted(length, "byte"))};
    const Expected<Header> read = HeaderText(bytes.substr(begin, length), begin).read();
    if (!read.ok()) return read.error();
    const Header& header = read.value();
    const auto* type = std::find_if(kTypes.begin(), kTypes.end(), [&](const Type& known) { return known.name == header.type; });
    if (type == kTypes.end())
        return Error{fmt::format("byte {}: values of type '{}' cannot be read; save array.astype('float32'), or 'float64', 'uint8' or 'int64'",
                                 begin, traces::harmless(header.type).substr(0, 40))};
    if (header.fortran) return Error{fmt::format("byte {}: its columns stand one after the other; save numpy.ascontiguousarray(array)", begin)};
    const std::string_view values = bytes.substr(begin + length);
    const std::optional<std::size_t> count = countOf(header.shape, values.size() / type->size);
    if (!count)
        return Error{fmt::format("byte {}: the header tells of {} values of {}, and the file ends before they do; save it again", bytes.size(),
                                 fmt::join(header.shape, " x "), counted(type->size, "byte"))};
    if (*count * type->size != values.size())
        return Error{fmt::format("byte {}: more follows than the {} values that the header tells of; save it again",
                                 begin + length + *count * type->size, fmt::join(header.shape, " x "))};
    Array array{.shape = header.shape, .values = {}};
    constexpr ByteOrder kOrder = ByteOrder::Little;
    if (type->name == "<f4") array.values = elements<float, float>(values, *count, kOrder);
    else if (type->name == "<f8") array.values = elements<double, float>(values, *count, kOrder);
    else if (type->name == "|u1") array.values = elements<std::uint8_t, std::uint8_t>(values, *count, kOrder);
    else array.values = elements<std::int64_t, std::int64_t>(values, *count, kOrder);
    return array;
}

} // namespace stagecraft::engine
