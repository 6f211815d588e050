// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/clip.h"

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

const QRectF kBox(10, 10, 20, 20);

TEST(Clip, KeepsWhatIsInside) { EXPECT_EQ(clippedLine({12, 12, 20, 25}, kBox), QLineF(12, 12, 20, 25)); }

TEST(Clip, CutsAtTheEdges) { EXPECT_EQ(clippedLine({0, 20, 40, 20}, kBox), QLineF(10, 20, 30, 20)); }

TEST(Clip, CutsDiagonals) { EXPECT_EQ(clippedLine({0, 0, 40, 40}, kBox), QLineF(10, 10, 30, 30)); }

TEST(Clip, DropsWhatMissesTheBox)
{
    EXPECT_FALSE(clippedLine({0, 0, 40, 0}, kBox));
    EXPECT_FALSE(clippedLine({0, 25, 15, 40}, kBox));
    EXPECT_FALSE(clippedLine({31, 12, 40, 12}, kBox));
}

TEST(Clip, CutsCurvesIntoPiecesInside)
{
    QPainterPath path(QPointF(0, 20));
    path.cubicTo(15, 0, 25, 40, 40, 20);
    const auto pieces = clippedPath(path, kBox);
    ASSERT_FALSE(pieces.empty());
    for (const QLineF& piece : pieces) {
        EXPECT_TRUE(kBox.adjusted(-1e-9, -1e-9, 1e-9, 1e-9).contains(piece.p1()));
        EXPECT_TRUE(kBox.adjusted(-1e-9, -1e-9, 1e-9, 1e-9).contains(piece.p2()));
    }
}

} // namespace
} // namespace stagecraft::ui
