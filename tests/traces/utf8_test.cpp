// SPDX-License-Identifier: Apache-2.0
#include "traces/base/utf8.h"

#include <gtest/gtest.h>

namespace stagecraft::traces {
namespace {

TEST(Utf8, MeasuresTheFirstCharacter)
{
    EXPECT_EQ(utf8Length(""), 0U);
    EXPECT_EQ(utf8Length("ab"), 1U);
    EXPECT_EQ(utf8Length("\xc3\xa9t"), 2U);         // é
    EXPECT_EQ(utf8Length("\xe2\x82\xac"), 3U);      // €
    EXPECT_EQ(utf8Length("\xf0\x9f\x9a\x80"), 4U);  // a rocket
}

// RFC 3629 sec. 3 and 4: no second half alone, no longer form, no surrogates, nothing beyond U+10FFFF.
TEST(Utf8, FindsTheFirstByteThatIsNone)
{
    for (const std::string_view wrong : {"ab\xff", "ab\xc3", "ab\xc0\x80", "ab\xed\xa0\x80", "ab\xf4\x90\x80\x80", "ab\xe0\x80\x80", "ab\x80"})
        EXPECT_EQ(firstBrokenByte(wrong), 2U);
    EXPECT_EQ(firstBrokenByte("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"), std::string_view::npos); // the borders beside them
    EXPECT_EQ(firstBrokenByte(""), std::string_view::npos);
}

TEST(Utf8, ShowsWhatIsNoneByItsNumber)
{
    EXPECT_EQ(withoutBrokenBytes("caf\xe9 \xe2\x82\xac \xff"), "caf\\xe9 \xe2\x82\xac \\xff");
    EXPECT_EQ(withoutBrokenBytes("plain"), "plain");
}

} // namespace
} // namespace stagecraft::traces
