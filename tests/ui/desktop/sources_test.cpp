// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/sources.h"

#include "engine/plan/plan_json.h"
#include "ui/bridge/text.h"

#include <QDir>
#include <QTemporaryDir>

#include <gmock/gmock.h>

namespace stagecraft::desktop {
namespace {

using testing::HasSubstr;

TEST(DesktopSources, FindAPresetByItsName) { EXPECT_EQ(planOf("mlp").value(), engine::presetPlan("mlp").value()); }

TEST(DesktopSources, ReadAPlanFile)
{
    const QTemporaryDir folder;
    const QString file = folder.filePath("mine.plan.json");
    ASSERT_TRUE(engine::savePlan(engine::presetPlan("hello").value(), ui::fromQt(file)).ok());
    EXPECT_EQ(planOf(file).value(), engine::presetPlan("hello").value());
}

TEST(DesktopSources, NameThePresetsWhereAPlanIsNone)
{
    const auto plan = planOf("nosuch");
    ASSERT_FALSE(plan.ok());
    EXPECT_THAT(plan.error().message, HasSubstr("'nosuch'"));
    for (const engine::PresetPlan& preset : engine::presetPlans()) EXPECT_THAT(plan.error().message, HasSubstr(preset.name));
}

} // namespace
} // namespace stagecraft::desktop
