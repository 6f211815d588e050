// SPDX-License-Identifier: GPL-3.0-or-later
//
// main() of the window's test programs: GoogleTest beside a QApplication that needs no display.
#include <QApplication>
#include <QStandardPaths>

#include <gtest/gtest.h>

int main(int argc, char** argv)
{
    if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
    ::testing::InitGoogleTest(&argc, argv);
    QStandardPaths::setTestModeEnabled(true);
    QApplication application(argc, argv);
    QApplication::setApplicationName("stagecraft-test");
    QApplication::setOrganizationName("stagecraft-test");
    return RUN_ALL_TESTS();
}
