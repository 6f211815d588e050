// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/lab/quantities.h"
#include "ui/lab/value_edit.h"

#include <QSignalSpy>
#include <QTest>
#include <QVBoxLayout>

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

class ValueEditTest : public testing::Test {
protected:
    ValueEditTest()
    {
        auto* layout = new QVBoxLayout(&window);
        layout->addWidget(edit);
        layout->addWidget(other);
        edit->edited = [this](traces::TimeNs ns) { told.push_back(ns); };
        edit->setValue(1'000'000);
        window.show();
        window.activateWindow();
        edit->setFocus();
        EXPECT_TRUE(QTest::qWaitFor([&] { return edit->hasFocus(); }));
    }
    void type(const char* text)
    {
        edit->selectAll();
        QTest::keyClicks(edit, text);
    }

    QWidget window;
    ValueEdit<traces::TimeNs>* edit = new ValueEdit<traces::TimeNs>(traces::parseDuration, showDuration);
    QLineEdit* other = new QLineEdit;
    std::vector<traces::TimeNs> told;
};

TEST_F(ValueEditTest, TellsAValueAsSoonAsItCanBeRead)
{
    type("1.5ms");
    EXPECT_EQ(told, std::vector<traces::TimeNs>{1'500'000});
    EXPECT_TRUE(edit->complaint().isEmpty());
    other->setFocus();
    EXPECT_EQ(edit->text(), "1.5 ms") << "takes its usual form once it is left";
}

TEST_F(ValueEditTest, SaysWhyATextCannotBeReadAndChangesNothing)
{
    QSignalSpy complained(edit, &ValueEditBase::complained);
    type("12");
    EXPECT_TRUE(told.empty());
    EXPECT_TRUE(edit->complaint().contains("12"));
    EXPECT_GE(complained.size(), 1);
    other->setFocus();
    EXPECT_EQ(edit->text(), "12") << "what was typed stays, with its reason";
    EXPECT_FALSE(edit->complaint().isEmpty());
}

TEST_F(ValueEditTest, GoesBackToTheLastValueOnEscape)
{
    type("12");
    QTest::keyClick(edit, Qt::Key_Escape);
    EXPECT_EQ(edit->text(), "1 ms");
    EXPECT_TRUE(edit->complaint().isEmpty());
}

TEST_F(ValueEditTest, LeavesAloneWhatCannotBeReadUntilTheValueIsAnother)
{
    type("12");
    other->setFocus();
    edit->setValue(1'000'000); // something else changed in the plan
    EXPECT_EQ(edit->text(), "12");
    EXPECT_FALSE(edit->complaint().isEmpty());
    edit->setValue(3'000'000);
    EXPECT_EQ(edit->text(), "3 ms");
    EXPECT_TRUE(edit->complaint().isEmpty());
}

TEST_F(ValueEditTest, LeavesAloneWhatIsTypedAndMeansTheSame)
{
    type("1500us");
    edit->setValue(1'500'000); // the plan comes back from the document
    EXPECT_EQ(edit->text(), "1500us");
    edit->setValue(2'000'000); // undo
    EXPECT_EQ(edit->text(), "2 ms");
}

} // namespace
} // namespace stagecraft::ui
