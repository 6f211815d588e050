// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the window learns from the engine command before a run: the GPUs of its machine, by scripts in its place.
#include "tests/ui/bridge/fake_doctor.h"
#include "tests/ui/window/main_window_fixture.h"

#include "ui/bridge/engine_inquiry.h"

#include <QComboBox>
#include <QStandardItemModel>

namespace stagecraft::ui {
namespace {

class MainWindowEngineTest : public MainWindowTest {
protected:
    QStandardItem& cuda()
    {
        auto& device = the<QComboBox>("device");
        return *qobject_cast<QStandardItemModel*>(device.model())->item(device.findData(static_cast<int>(engine::DeviceKind::Cuda)));
    }
    void enterCommand(const QString& command)
    {
        auto& field = the<QLineEdit>("engineCommand");
        field.selectAll();
        QTest::keyClicks(&field, command);
        QTest::keyClick(&field, Qt::Key_Return);
    }
    bool waitForAnswer()
    {
        return QTest::qWaitFor([&] { return !window->engineInquiry().asking(); });
    }

    FakeDoctor doctor;
};

TEST_F(MainWindowEngineTest, OffersTheGpusOfAnEngineCommandThatWasEntered)
{
    EXPECT_FALSE(cuda().isEnabled()) << "nobody has told of a GPU yet";
    doctor.answer(kTwoGpus);
    enterCommand(doctor.command());
    ASSERT_TRUE(waitForAnswer());
    EXPECT_TRUE(cuda().isEnabled());
    EXPECT_TRUE(the<QComboBox>("device").toolTip().contains("1: NVIDIA T4, 14.56 GiB"));
    EXPECT_EQ(doctor.asked(), "doctor --json\n") << "once, and not at each key";
    QTest::keyClick(&the<QLineEdit>("engineCommand"), Qt::Key_X);
    EXPECT_FALSE(cuda().isEnabled()) << "it is another command by now";

    FakeDoctor other;
    other.answer(kNoDriver);
    enterCommand(other.command());
    ASSERT_TRUE(waitForAnswer());
    EXPECT_FALSE(cuda().isEnabled());
    EXPECT_TRUE(cuda().toolTip().contains("no NVIDIA driver")) << cuda().toolTip().toStdString();
}

TEST_F(MainWindowEngineTest, AsksAtTheStart)
{
    doctor.answer(kTwoGpus);
    the<QLineEdit>("engineCommand").setText(doctor.command()); // kept in the settings
    const MainWindow again(settings, WindowOptions{.programFolder = "/nowhere", .theme = {}, .dialogs = {}});
    auto* device = again.findChild<QComboBox*>("device");
    ASSERT_TRUE(QTest::qWaitFor([&] { return device->toolTip().contains("NVIDIA H200"); })) << device->toolTip().toStdString();
}

TEST_F(MainWindowEngineTest, ClosesWhileTheEngineIsAsked)
{
    doctor.run("exec sleep 60");
    enterCommand(doctor.command());
    EXPECT_TRUE(window->engineInquiry().asking());
    window.reset();
}

} // namespace
} // namespace stagecraft::ui
