// SPDX-License-Identifier: GPL-3.0-or-later
//
// The lab with a plan in it, and its controls by their names.
//
//   TEST_F(LabPanelTest, EditsTheLatency) { type("latency", "10us"); EXPECT_EQ(document.plan().costs.latency, 10'000); }
#pragma once

#include "engine/plan/plan_json.h"
#include "ui/lab/lab_panel.h"

#include <QClipboard>
#include <QComboBox>
#include <QGuiApplication>
#include <QLineEdit>
#include <QTest>

#include <gtest/gtest.h>

#include <stdexcept>

namespace stagecraft::ui {

class LabPanelTest : public testing::Test {
protected:
    LabPanelTest()
    {
        open("hello");
        panel.resize(320, 900);
        panel.show();
    }
    void open(const char* preset) { document.startFrom(engine::presetPlan(preset).value()); }
    template <class Widget>
    Widget& the(const char* name)
    {
        auto* widget = panel.findChild<Widget*>(name);
        if (!widget) throw std::runtime_error(name);
        return *widget;
    }
    void type(const char* field, const char* text)
    {
        auto& edit = the<QLineEdit>(field);
        edit.selectAll();
        QTest::keyClicks(&edit, text);
    }
    // All at once: key by key, a part of the text may be a value of its own.
    void paste(const char* field, const char* text)
    {
        auto& edit = the<QLineEdit>(field);
        edit.selectAll();
        QGuiApplication::clipboard()->setText(QString(text));
        edit.paste();
    }
    void choose(const char* box, const char* data)
    {
        auto& combo = the<QComboBox>(box);
        const int row = combo.findData(QString(data));
        ASSERT_GE(row, 0) << data;
        combo.setCurrentIndex(row);
    }

    PlanDocument document;
    LabPanel panel{document};
};

} // namespace stagecraft::ui
