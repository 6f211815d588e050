// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/result_notes.h"

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

TEST(ResultNotes, SayNothingOfAPlainRun) { EXPECT_TRUE(resultNotes({}).isEmpty()); }

TEST(ResultNotes, TellWhatATextModelWritesOnOneLine)
{
    engine::RunResult result;
    result.text = {.entropy = 3.14159, .before = "Stage\n%%", .after = "Stage one"};
    const QStringList notes = resultNotes(result);
    ASSERT_EQ(notes.size(), 3);
    EXPECT_EQ(notes[0].toStdString(), "Before the run the model wrote: Stage⏎%%");
    EXPECT_EQ(notes[1].toStdString(), "After it: Stage one");
    EXPECT_TRUE(notes[2].contains("A loss of 3.142"));
}

TEST(ResultNotes, TellWhatMicroBatchesKeep)
{
    engine::RunResult result;
    result.stageActivations = {{.saved = 2048, .forWeights = 1024, .booked = 4096}, {.saved = 1024, .forWeights = 0, .booked = 1024}};
    result.rankActivations = {{.peak = 4096, .predicted = 4096}, {.peak = 1024, .predicted = {}}};
    const QStringList notes = resultNotes(result);
    ASSERT_EQ(notes.size(), 2);
    EXPECT_EQ(notes[0].toStdString(), "Saved by autograd of a micro-batch: stage 0 2 KiB (1 KiB of it until its weight gradient, 4 KiB by the allocator), "
                                      "stage 1 1 KiB (0 B of it until its weight gradient, 1 KiB by the allocator).");
    EXPECT_EQ(notes[1].toStdString(), "Most of it in flight: rank 0 4 KiB (by the schedule 4 KiB), rank 1 1 KiB.");
    result.stageActivations.resize(40);
    EXPECT_TRUE(resultNotes(result)[0].endsWith("and 24 more."));
}

} // namespace
} // namespace stagecraft::ui
