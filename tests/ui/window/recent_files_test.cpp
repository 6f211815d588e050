// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/recent_files.h"

#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

class RecentFilesTest : public testing::Test {
protected:
    QTemporaryDir folder;
    QSettings settings{folder.filePath("settings.ini"), QSettings::IniFormat};
    RecentFiles recent{settings};
};

TEST_F(RecentFilesTest, HoldTheNewestFirstAndEachOnce)
{
    QSignalSpy changed(&recent, &RecentFiles::changed);
    recent.add("/a");
    recent.add("/b");
    recent.add("/a");
    EXPECT_EQ(recent.files(), (QStringList{"/a", "/b"}));
    EXPECT_EQ(changed.size(), 3);
    EXPECT_EQ(RecentFiles(settings).files(), recent.files()) << "kept in the settings";
}

TEST_F(RecentFilesTest, ForgetTheOldest)
{
    for (int i = 0; i < RecentFiles::kMost + 3; ++i) recent.add(QString("/%1").arg(i));
    EXPECT_EQ(recent.files().size(), RecentFiles::kMost);
    EXPECT_EQ(recent.files().last(), "/3");
}

TEST_F(RecentFilesTest, ForgetAFileThatIsGone)
{
    recent.add("/a");
    recent.add("/b");
    recent.remove("/a");
    EXPECT_EQ(recent.files(), QStringList{"/b"});
    recent.clear();
    EXPECT_TRUE(recent.files().isEmpty());
}

} // namespace
} // namespace stagecraft::ui
