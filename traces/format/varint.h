// SPDX-License-Identifier: Apache-2.0
//
// Numbers of variable length (LEB128; signed ones zigzag: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...), and a reader over
// bytes that nobody vouches for: past the end or over the range it gives zeros and remembers that it failed.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace stagecraft::traces {

inline void appendByte(std::string& out, unsigned value) { out.push_back(static_cast<char>(value)); }

inline void appendVarint(std::string& out, std::uint64_t value)
{
    for (; value >= 0x80; value >>= 7) appendByte(out, static_cast<unsigned>(value & 0x7f) | 0x80u);
    appendByte(out, static_cast<unsigned>(value));
}

inline void appendZigzag(std::string& out, std::int64_t value)
{
    appendVarint(out, (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

inline void appendText(std::string& out, std::string_view text)
{
    appendVarint(out, text.size());
    out.append(text);
}

inline void appendDouble(std::string& out, double value)
{
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) appendByte(out, static_cast<unsigned>(bits >> shift) & 0xffu);
}

// Differences that may wrap: damaged input must not overflow, and any two times have one.
constexpr std::int64_t wrappingSub(std::int64_t a, std::int64_t b)
{
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
constexpr std::int64_t wrappingAdd(std::int64_t a, std::int64_t b)
{
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

class ByteReader {
public:
    explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

    [[nodiscard]] bool failed() const { return failed_; }
    void require(bool holds) { failed_ = failed_ || !holds; }
    [[nodiscard]] std::size_t remaining() const { return rest_.size(); }

    unsigned byte()
    {
        if (rest_.empty()) return fail();
        const auto value = static_cast<unsigned char>(rest_.front());
        rest_.remove_prefix(1);
        return value;
    }

    std::uint64_t varint()
    {
        std::uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const unsigned part = byte();
            if (failed_ || (shift == 63 && part > 1)) return fail();
            value |= static_cast<std::uint64_t>(part & 0x7f) << shift;
            if ((part & 0x80u) == 0) return value;
        }
        return fail();
    }

    std::int64_t zigzag()
    {
        const std::uint64_t value = varint();
        return static_cast<std::int64_t>((value >> 1) ^ (0 - (value & 1)));
    }

    // A signed or unsigned number that must fit Int.
    template <class Int>
    Int fit(std::int64_t value)
    {
        if (value < static_cast<std::int64_t>(std::numeric_limits<Int>::min()) ||
            value > static_cast<std::int64_t>(std::numeric_limits<Int>::max()))
            return static_cast<Int>(fail());
        return static_cast<Int>(value);
    }

    std::string_view text()
    {
        const std::uint64_t size = varint();
        if (size > rest_.size()) {
            fail();
            return {};
        }
        const std::string_view value = rest_.substr(0, static_cast<std::size_t>(size));
        rest_.remove_prefix(value.size());
        return value;
    }

    double real()
    {
        std::uint64_t bits = 0;
        for (int shift = 0; shift < 64; shift += 8) bits |= static_cast<std::uint64_t>(byte()) << shift;
        return std::bit_cast<double>(bits);
    }

    // An enumerator up to `last`.
    template <class Enum>
    Enum oneOf(Enum last)
    {
        const unsigned value = byte();
        return static_cast<Enum>(value > static_cast<unsigned>(last) ? fail() : value);
    }

private:
    unsigned fail()
    {
        failed_ = true;
        return 0;
    }

    std::string_view rest_;
    bool failed_ = false;
};

} // namespace stagecraft::traces
