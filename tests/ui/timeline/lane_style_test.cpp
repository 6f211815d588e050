// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/timeline/lane_style.h"

#include <gtest/gtest.h>

#include <set>

namespace stagecraft::ui {
namespace {

using namespace traces;

TEST(LaneStyle, ShadesByTheChunkOfTheRank)
{
    const Theme theme = Theme::of(ThemeKind::Light);
    TraceInfo info;
    info.stageToRank = {Rank{0}, Rank{1}, Rank{0}, Rank{1}}; // two chunks on each of two ranks
    const LaneStyle style(theme, info);
    const auto colour = [&](int stage) { return style.colour(style.colourIndex(forward(Stage{stage}, MicroBatch{0}))); };
    EXPECT_EQ(colour(0), theme.block(PaintClass::Forward, 0).rgb());
    EXPECT_EQ(colour(1), colour(0));
    EXPECT_EQ(colour(2), theme.block(PaintClass::Forward, 1).rgb());
    EXPECT_EQ(colour(3), colour(2));
    EXPECT_EQ(colour(17), colour(0)); // a stage that the trace does not tell of
}

TEST(LaneStyle, TellsRecomputationsCopiesAndCollectivesApart)
{
    const Theme theme = Theme::of(ThemeKind::Light);
    const LaneStyle style(theme, {});
    const auto index = [&](ActionKind kind) { return style.colourIndex(makeAction(kind, Stage{0}, MicroBatch{0})); };
    EXPECT_EQ(style.colour(index(ActionKind::Recompute)), theme.block(PaintClass::Recompute, 0).rgb());
    EXPECT_TRUE(LaneStyle::hatched(index(ActionKind::Recompute)));
    EXPECT_EQ(style.stroke(index(ActionKind::Recompute)), theme.stroke(theme.block(PaintClass::Recompute, 0)).rgb());
    for (const ActionKind kind : {ActionKind::Forward, ActionKind::Offload, ActionKind::AllReduce}) EXPECT_FALSE(LaneStyle::hatched(index(kind)));
    EXPECT_EQ(index(ActionKind::Offload), index(ActionKind::Reload));
    EXPECT_EQ(index(ActionKind::Unshard), index(ActionKind::ReduceGrad));
    EXPECT_EQ(index(ActionKind::Unshard), index(ActionKind::AllReduce));
    const std::set<int> kinds{index(ActionKind::Forward),  index(ActionKind::Recompute), index(ActionKind::SendForward),
                              index(ActionKind::Offload),  index(ActionKind::AllReduce), index(ActionKind::Optimizer)};
    EXPECT_EQ(kinds.size(), 6U);
}

TEST(LaneStyle, ShadesWhateverRanksAFileNames)
{
    TraceInfo info;
    info.stageToRank = {Rank{-7}, Rank{2'000'000'000}, Rank{-7}};
    const LaneStyle style(Theme::of(ThemeKind::Light), info);
    EXPECT_NE(style.colourIndex(forward(Stage{2}, MicroBatch{0})), style.colourIndex(forward(Stage{0}, MicroBatch{0})));
    EXPECT_EQ(style.colourIndex(forward(Stage{1}, MicroBatch{0})), style.colourIndex(forward(Stage{0}, MicroBatch{0})));
}

TEST(BlockLabel, SaysMoreWhereThereIsRoom)
{
    const Trace trace;
    const Slice slice{.begin = 0, .end = 1'200'000, .action = forward(Stage{1}, MicroBatch{3}), .step = {}, .text = {}};
    EXPECT_EQ(blockLabel(trace, slice, LabelDetail::Number), "3");
    EXPECT_EQ(blockLabel(trace, slice, LabelDetail::Short), "F3");
    EXPECT_EQ(blockLabel(trace, slice, LabelDetail::Full), QString::fromUtf8("F3 \u00b7 stage 1 \u00b7 1.2 ms"));
}

TEST(BlockLabel, TellsMicroBatchAndSliceApart)
{
    Trace trace;
    trace.info.slices = 4;
    const Slice slice{.begin = 0, .end = 1'200'000, .action = forward(Stage{1}, MicroBatch{9}), .step = {}, .text = {}};
    EXPECT_EQ(blockLabel(trace, slice, LabelDetail::Number), "2.1");
    EXPECT_EQ(blockLabel(trace, slice, LabelDetail::Short), "F2.1");
}

TEST(BlockLabel, NamesWhatHasNoMicroBatch)
{
    Trace trace;
    const Slice step{.begin = 0, .end = 10, .action = makeAction(ActionKind::Optimizer, Stage{0}), .step = {}, .text = {}};
    EXPECT_EQ(blockLabel(trace, step, LabelDetail::Number), "");
    EXPECT_FALSE(blockLabel(trace, step, LabelDetail::Short).isEmpty());
    const Slice kernel{.begin = 0, .end = 10, .action = {}, .step = {}, .text = trace.intern("sgemm")};
    EXPECT_EQ(blockLabel(trace, kernel, LabelDetail::Short), "sgemm");
}

TEST(BlockLabel, NamesAKernelInFewLettersWhereThereIsLittleRoom)
{
    Trace trace;
    const auto label = [&](const char* name, LabelDetail detail) {
        return blockLabel(trace, {.begin = 0, .end = 10, .action = {}, .step = {}, .text = trace.intern(name)}, detail).toStdString();
    };
    EXPECT_EQ(label("void at::native::vectorized_elementwise_kernel<4, at::native::Gelu>(int)", LabelDetail::Number), "vectorized_elementwise_kernel");
    EXPECT_EQ(label("at::native::(anonymous namespace)::softmax<float>", LabelDetail::Number), "softmax");
    EXPECT_EQ(label("aten::linear", LabelDetail::Short), "aten::linear");
    EXPECT_EQ(label("aten::linear", LabelDetail::Number), "linear");
    EXPECT_EQ(label("copy GPU 0 to GPU 1", LabelDetail::Number), "copy GPU 0 to GPU 1");
}

} // namespace
} // namespace stagecraft::ui
