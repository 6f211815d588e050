// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/explore/gallery_dialog.h"

#include "ui/explore/gallery_card.h"
#include "ui/lab/plan_document.h"

#include <QCheckBox>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QPainter>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>

#include <gmock/gmock.h>

namespace stagecraft::ui {
namespace {

class GalleryTest : public testing::Test {
protected:
    GalleryTest() { setMicrobatches(6); }
    void setMicrobatches(int count)
    {
        engine::Plan plan = document.plan();
        plan.pipeline.microbatches = count;
        document.edit(plan, "micro-batches");
    }
    bool showAll()
    {
        QSignalSpy finished(&gallery.model(), &GalleryModel::finished);
        gallery.show();
        return finished.wait(20'000);
    }
    template <class Widget>
    Widget& the(const char* name)
    {
        auto* widget = gallery.findChild<Widget*>(name);
        if (!widget) throw std::runtime_error(name);
        return *widget;
    }
    void goTo(const char* schedule)
    {
        auto& view = the<QListView>("galleryCards");
        for (int row = 0; row < view.model()->rowCount(); ++row)
            if (view.model()->index(row, 0).data().toString() == engine::findFamily(schedule)->title.c_str())
                view.setCurrentIndex(view.model()->index(row, 0));
    }
    const GalleryCard& card(const char* schedule) { return gallery.model().card(gallery.model().rowOf(schedule)); }

    PlanDocument document; // 1f1b on 4 ranks
    GalleryDialog gallery{document};
};

// (p-1)/(m+p-1) with p = 4, m = 6, and one step of every schedule
TEST_F(GalleryTest, SimulatesEveryScheduleWithThePlansShape)
{
    ASSERT_TRUE(showAll());
    EXPECT_NEAR(card("1f1b").entry.figures.bubbleMakespan, 3.0 / 9, 1e-12);
    EXPECT_EQ(card("1f1b").picture.blocks.size(), 4U * 6 * 2);
    EXPECT_EQ(card("zb-v").entry.plan.pipeline.chunks, 2);
    EXPECT_TRUE(the<QLabel>("galleryDetails").text().contains("1F1B")); // the plan's own is looked at first
    EXPECT_TRUE(the<QLabel>("galleryDetails").text().contains("33.33 %"));
    EXPECT_TRUE(the<QLabel>("galleryDetails").text().contains("Schedule1F1B")); // PyTorch's name
}

TEST_F(GalleryTest, GivesTheReasonAndTheNearestShapeOfWhatIsRefused)
{
    ASSERT_TRUE(showAll());
    goTo("dualpipe");
    EXPECT_TRUE(the<QLabel>("galleryDetails").text().contains("use at least 2p = 8"));
    EXPECT_EQ(the<QPushButton>("galleryUse").text(), "&Use it with 8 micro-batches");
    QTest::mouseClick(&the<QPushButton>("galleryUse"), Qt::LeftButton);
    EXPECT_EQ(document.plan().pipeline.schedule, "dualpipe");
    EXPECT_EQ(document.plan().pipeline.microbatches, 8);
}

TEST_F(GalleryTest, ChoosesAScheduleByAnEditThatCanBeUndone)
{
    ASSERT_TRUE(showAll());
    goTo("zb-v");
    QTest::keyClick(&gallery, Qt::Key_Return);
    EXPECT_EQ(document.plan().pipeline.schedule, "zb-v");
    EXPECT_EQ(document.plan().pipeline.chunks, 2);
    document.undoStack().undo();
    EXPECT_EQ(document.plan().pipeline.schedule, "1f1b");
    EXPECT_EQ(document.plan().pipeline.chunks, 1);
}

TEST_F(GalleryTest, FiltersByNamesElsewhereAndByWhatIsPossible)
{
    ASSERT_TRUE(showAll());
    const QAbstractItemModel& shown = *the<QListView>("galleryCards").model();
    const int all = shown.rowCount();
    QTest::keyClicks(&the<QLineEdit>("galleryFilter"), "ScheduleZBVZeroBubble");
    ASSERT_EQ(shown.rowCount(), 1);
    EXPECT_EQ(shown.index(0, 0).data().toString(), "ZB-V");
    the<QLineEdit>("galleryFilter").clear();
    EXPECT_EQ(shown.rowCount(), all);
    the<QCheckBox>("galleryPossible").setChecked(true);
    EXPECT_LT(shown.rowCount(), all); // dualpipe needs more micro-batches
}

TEST_F(GalleryTest, BeginsAnewWithAnotherPlanAndShowsWhatIsOld)
{
    ASSERT_TRUE(showAll());
    QSignalSpy finished(&gallery.model(), &GalleryModel::finished);
    setMicrobatches(8);
    EXPECT_FALSE(card("forward-only").current);
    EXPECT_TRUE(card("forward-only").known);
    ASSERT_TRUE(finished.wait(20'000));
    EXPECT_TRUE(card("dualpipe").entry.refusal.empty());
}

TEST_F(GalleryTest, GoesOnWithWhatIsLeftWhenItIsShownAgain)
{
    gallery.show();
    gallery.hide(); // before the first card is there
    EXPECT_FALSE(gallery.model().busy());
    EXPECT_FALSE(card("forward-only").known);
    ASSERT_TRUE(showAll());
    EXPECT_TRUE(card("forward-only").current);
}

TEST_F(GalleryTest, HandsTheSelectedOnesToTheComparison)
{
    ASSERT_TRUE(showAll());
    EXPECT_FALSE(the<QPushButton>("galleryCompare").isEnabled()); // one is selected
    auto& view = the<QListView>("galleryCards");
    view.selectionModel()->select(view.model()->index(0, 0), QItemSelectionModel::Select);
    view.selectionModel()->select(view.model()->index(1, 0), QItemSelectionModel::Select);
    std::vector<std::string> names;
    QObject::connect(&gallery, &GalleryDialog::compareWanted, [&](const std::vector<engine::Plan>& plans) {
        for (const engine::Plan& plan : plans) names.push_back(plan.pipeline.schedule);
    });
    QTest::mouseClick(&the<QPushButton>("galleryCompare"), Qt::LeftButton);
    EXPECT_THAT(names, testing::ElementsAre("naive", "gpipe", "1f1b"));
}

TEST(GalleryPicture, ShowsForwardsAndBackwardsWhereTheyAre)
{
    engine::SchedulePicture picture{.ranks = 2, .length = 100, .blocks = {}};
    picture.blocks.push_back({.rank = 0, .begin = 0, .end = 50, .paint = traces::PaintClass::Forward});
    picture.blocks.push_back({.rank = 1, .begin = 50, .end = 100, .paint = traces::PaintClass::Backward});
    const Theme theme = Theme::of(ThemeKind::Light);
    QImage image(100, 40, QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    paintPicture(painter, QRectF(0, 0, 100, 40), picture, theme);
    painter.end();
    EXPECT_EQ(image.pixelColor(25, 9), theme.block(traces::PaintClass::Forward, 0));
    EXPECT_EQ(image.pixelColor(75, 9), theme.lane);
    EXPECT_EQ(image.pixelColor(75, 29), theme.block(traces::PaintClass::Backward, 0));
}

} // namespace
} // namespace stagecraft::ui
