// SPDX-License-Identifier: GPL-3.0-or-later
//
// The real dialog, answered by a timer as a user would.
#include "ui/window/file_dialogs.h"

#include <QApplication>
#include <QComboBox>
#include <QFile>
#include <QFileDialog>
#include <QLineEdit>
#include <QMessageBox>
#include <QTemporaryDir>
#include <QTimer>

#include <gtest/gtest.h>

#include <functional>

namespace stagecraft::ui {
namespace {

class FileDialogsTest : public testing::Test {
protected:
    FileDialogsTest()
    {
        QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
        QObject::connect(&timer, &QTimer::timeout, &timer, [this] {
            QWidget* modal = QApplication::activeModalWidget();
            if (auto* box = qobject_cast<QMessageBox*>(modal)) {
                questions << box->text();
                box->reject();
            } else if (auto* dialog = qobject_cast<QFileDialog*>(modal)) {
                if (answered++ == 0) answer(*dialog);
                else if (!questions.isEmpty()) dialog->reject(); // the question was answered with no
            }
        });
        timer.start(0);
    }
    void write(const QString& file)
    {
        QFile out(file);
        ASSERT_TRUE(out.open(QIODevice::WriteOnly));
        out.write("precious");
    }
    // Queued: the timer does not tick again within its own tick, and the dialog may ask a question.
    static void accept(QFileDialog& dialog) { QMetaObject::invokeMethod(&dialog, "accept", Qt::QueuedConnection); }

    QTemporaryDir folder;
    std::function<void(QFileDialog&)> answer;
    int answered = 0;
    QStringList questions;
    QTimer timer;
    QWidget window;
    FileDialogs dialogs = FileDialogs::ofWindow(&window);
};

TEST_F(FileDialogsTest, AsksBeforeAFileIsOverwrittenWhoseEndingItAdds)
{
    write(folder.filePath("foo.plan.json"));
    answer = [&](QFileDialog& dialog) {
        dialog.setDirectory(folder.path());
        dialog.findChild<QLineEdit*>("fileNameEdit")->setText("foo");
        accept(dialog);
    };
    const QString file = dialogs.saveFile("Save plan", "Plans (*.plan.json)", "hello.plan.json");
    EXPECT_EQ(questions.size(), 1);
    EXPECT_TRUE(questions.join(' ').contains("foo.plan.json")) << questions.join(' ').toStdString();
    EXPECT_TRUE(file.isEmpty()) << "the answer was no";
}

TEST_F(FileDialogsTest, AddsTheEndingOfTheFirstForm)
{
    answer = [&](QFileDialog& dialog) {
        dialog.setDirectory(folder.path());
        dialog.findChild<QLineEdit*>("fileNameEdit")->setText("new");
        accept(dialog);
    };
    EXPECT_EQ(dialogs.saveFile("Save plan", "Plans (*.plan.json)", "hello.plan.json"), folder.filePath("new.plan.json"));
    EXPECT_TRUE(questions.isEmpty());
}

TEST_F(FileDialogsTest, GivesTheNameTheEndingOfTheChosenForm)
{
    answer = [&](QFileDialog& dialog) {
        dialog.setDirectory(folder.path());
        auto* forms = dialog.findChild<QComboBox*>("fileTypeCombo");
        forms->setCurrentIndex(1);
        emit forms->textActivated(forms->currentText());
        accept(dialog);
    };
    EXPECT_EQ(dialogs.saveFile("Export", "PNG picture (*.png);;SVG drawing (*.svg)", "hello.png"), folder.filePath("hello.svg"));
}

} // namespace
} // namespace stagecraft::ui
