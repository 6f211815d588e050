// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/file_controller.h"

#include "engine/plan/plan_json.h"
#include "tests/ui/support/traces.h"
#include "traces/format/trace_file.h"
#include "ui/bridge/text.h"
#include "ui/window/workbench.h"

#include <QDeadlineTimer>
#include <QDir>
#include <QFile>
#include <QImage>
#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <gmock/gmock.h>

#include <algorithm>
#include <thread>

namespace stagecraft::ui {
namespace {

class FileControllerTest : public testing::Test {
protected:
    FileControllerTest() { bench.document().startFrom(engine::presetPlan("hello").value()); }

    FileDialogs answers()
    {
        return {.openFile = [this](const QString&, const QString&) { return chosen; },
                .saveFile = [this](const QString&, const QString&, const QString& suggestion) {
                    suggested = suggestion;
                    return chosen;
                },
                .unsaved = [this](const QString&) {
                    ++asked;
                    return answer;
                },
                .tellProblem = [this](const QString&, const QString& text) { told << text; },
                .giveUp = [this](const QString&) { return givesUp; }};
    }
    // What the call has begun, to its end.
    bool done(bool begun)
    {
        return begun && QTest::qWaitFor([this] { return !files.busy(); }, 60'000);
    }
    void openLarge()
    {
        engine::Plan plan;
        plan.pipeline.ranks = 16;
        plan.pipeline.microbatches = 1000;
        bench.document().startFrom(plan);
        ASSERT_TRUE(QTest::qWaitFor([this] { return !bench.simulation().busy(); }, 60'000));
    }
    void edit()
    {
        engine::Plan plan = bench.document().plan();
        ++plan.pipeline.microbatches;
        bench.document().edit(plan, "micro-batches", "microbatches");
    }
    QByteArray contentOf(const QString& file)
    {
        QFile in(file);
        return in.open(QIODevice::ReadOnly) ? in.readAll() : QByteArray();
    }

    QTemporaryDir folder;
    QSettings settings{folder.filePath("settings.ini"), QSettings::IniFormat};
    Workbench bench;
    QString chosen;
    QString suggested;
    UnsavedAnswer answer = UnsavedAnswer::Cancel;
    int asked = 0;
    bool givesUp = false;
    QStringList told;
    FileController files{bench, settings, answers()};
};

TEST_F(FileControllerTest, SavesUnderAChosenNameAndThenUnderTheSame)
{
    edit();
    chosen = folder.filePath("mine.plan.json");
    EXPECT_TRUE(files.save());
    EXPECT_EQ(suggested, "hello.plan.json");
    EXPECT_EQ(files.recent().files(), QStringList{chosen});
    edit();
    chosen = "not asked for";
    EXPECT_TRUE(files.save());
    EXPECT_EQ(engine::loadPlan(fromQt(folder.filePath("mine.plan.json"))).value(), bench.document().plan());
}

TEST_F(FileControllerTest, AsksBeforeUnsavedChangesAreLost)
{
    EXPECT_TRUE(files.startFromPreset("mlp"));
    EXPECT_EQ(asked, 0) << "nothing was changed";
    edit();
    const engine::Plan mine = bench.document().plan();
    EXPECT_FALSE(files.startFromPreset("hello"));
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(bench.document().plan(), mine);
    answer = UnsavedAnswer::Discard;
    EXPECT_TRUE(files.startFromPreset("hello"));
    EXPECT_EQ(bench.document().plan().name, "hello");
    edit();
    answer = UnsavedAnswer::Save;
    chosen.clear(); // the save itself is given up
    EXPECT_FALSE(files.mayDiscard());
    chosen = folder.filePath("kept.plan.json");
    EXPECT_TRUE(files.mayDiscard());
    EXPECT_TRUE(QFile::exists(chosen));
}

TEST_F(FileControllerTest, TakesThePlanOfAnOpenedTraceOver)
{
    const engine::Plan hello = bench.document().plan();
    const QString trace = folder.filePath("hello.strace");
    ASSERT_TRUE(done(files.writeTrace(trace)));
    ASSERT_TRUE(files.startFromPreset("mlp"));
    QSignalSpy note(&files, &FileController::note);
    ASSERT_TRUE(done(files.open(trace)));
    EXPECT_EQ(bench.document().plan(), hello);
    EXPECT_FALSE(bench.document().modified());
    EXPECT_TRUE(note.back().front().toString().contains("hello"));
    EXPECT_FALSE(bench.tracePlan().ok()) << "it is the lab's already";
}

TEST_F(FileControllerTest, OffersThePlanOfATraceWhereTheLabHasUnsavedEdits)
{
    const engine::Plan hello = bench.document().plan();
    const QString trace = folder.filePath("hello.strace");
    ASSERT_TRUE(done(files.writeTrace(trace)));
    edit();
    const engine::Plan mine = bench.document().plan();
    QSignalSpy note(&files, &FileController::note);
    ASSERT_TRUE(done(files.open(trace)));
    EXPECT_EQ(bench.document().plan(), mine);
    EXPECT_TRUE(note.back().front().toString().contains("Use the trace's plan"));
    ASSERT_TRUE(bench.useTracePlan().ok());
    EXPECT_EQ(bench.document().plan(), hello);
    bench.document().undoStack().undo();
    EXPECT_EQ(bench.document().plan(), mine);

    ASSERT_TRUE(files.startFromPreset("mlp") || answer == UnsavedAnswer::Cancel);
    answer = UnsavedAnswer::Discard;
    ASSERT_TRUE(files.startFromPreset("mlp"));
    ASSERT_TRUE(done(files.open(trace, FileKind::Trace, TracePlan::Offer)));
    EXPECT_EQ(bench.document().plan().name, "mlp") << "a plan that was asked for stays";
}

TEST_F(FileControllerTest, TellsWhyThePlanInATraceCannotBeUsed)
{
    traces::Trace strange = *bench.simulation().simulation().trace;
    strange.info.planJson = R"({"stagecraft_plan": 99})";
    ASSERT_TRUE(traces::saveTrace(strange, fromQt(folder.filePath("strange.strace"))).ok());
    QSignalSpy note(&files, &FileController::note);
    ASSERT_TRUE(done(files.open(folder.filePath("strange.strace"))));
    EXPECT_EQ(bench.document().plan().name, "hello");
    EXPECT_TRUE(told.isEmpty()) << "only a note in the log";
    EXPECT_TRUE(note.back().front().toString().contains("99")) << note.back().front().toString().toStdString();
}

TEST_F(FileControllerTest, ReadsAScheduleThatIsWrittenOut)
{
    const auto write = [&](const char* text) {
        chosen = folder.filePath("mine.csv");
        QFile out(chosen);
        ASSERT_TRUE(out.open(QIODevice::WriteOnly));
        out.write(text);
    };
    const engine::Plan before = bench.document().plan();
    write("0F0,0B0\n1F0,oops\n");
    EXPECT_FALSE(files.openSchedule());
    ASSERT_EQ(told.size(), 1);
    EXPECT_TRUE(told.front().contains("mine.csv") && told.front().contains("line 2, cell 2")) << told.front().toStdString();
    write("0F0,0B0\n1B0,1F0\n");
    EXPECT_FALSE(files.openSchedule()) << "a backward before its forward";
    EXPECT_EQ(bench.document().plan(), before);
    write("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
    ASSERT_TRUE(files.openSchedule()) << told.back().toStdString();
    EXPECT_EQ(bench.document().plan().pipeline.schedule, "custom");
    EXPECT_EQ(bench.document().plan().pipeline.microbatches, 2);
    EXPECT_EQ(bench.document().plan().model, before.model);
    bench.document().undoStack().undo();
    EXPECT_EQ(bench.document().plan(), before);
}

TEST_F(FileControllerTest, TellsWhyAFileCannotBeOpenedAndForgetsItsName)
{
    const QString missing = folder.filePath("missing.plan.json");
    files.recent().add(missing);
    chosen = missing;
    QSignalSpy problem(&files, &FileController::problem);
    EXPECT_FALSE(files.openPlan());
    ASSERT_EQ(told.size(), 1);
    EXPECT_TRUE(told.front().contains("missing.plan.json"));
    EXPECT_EQ(problem.size(), 1);
    EXPECT_TRUE(files.recent().files().isEmpty());
}

TEST_F(FileControllerTest, OpensPlansAndTraces)
{
    chosen = folder.filePath("a.plan.json");
    ASSERT_TRUE(files.saveAs());
    const QString trace = folder.filePath("a.strace");
    ASSERT_TRUE(done(files.writeTrace(trace)));
    ASSERT_TRUE(done(files.open(trace)));
    EXPECT_EQ(bench.otherFile(), trace);
    ASSERT_TRUE(files.open(folder.filePath("a.plan.json")));
    EXPECT_EQ(bench.document().file(), folder.filePath("a.plan.json"));
    EXPECT_EQ(files.recent().files().size(), 2);
}

TEST_F(FileControllerTest, OpensWhatItWroteWhateverItsName)
{
    chosen = folder.filePath("mine.json");
    ASSERT_TRUE(files.saveAs());
    const engine::Plan mine = bench.document().plan();
    const QString trace = folder.filePath("trace.json");
    ASSERT_TRUE(done(files.writeTrace(trace)));
    ASSERT_TRUE(files.startFromPreset("mlp"));
    ASSERT_TRUE(files.openPlan()); // chosen
    EXPECT_EQ(bench.document().plan(), mine);
    ASSERT_TRUE(files.startFromPreset("mlp"));
    ASSERT_TRUE(files.open(chosen)) << "from the list of recent files";
    EXPECT_EQ(bench.document().plan(), mine);
    chosen = trace;
    ASSERT_TRUE(done(files.openPlan())) << "a trace, though a plan was asked for";
    EXPECT_EQ(bench.otherFile(), trace);
    EXPECT_TRUE(told.isEmpty()) << told.join('\n').toStdString();

    const QString table = folder.filePath("table.csv");
    ASSERT_TRUE(done(files.writeTrace(table)));
    ASSERT_TRUE(done(files.open(table)));
    ASSERT_EQ(told.size(), 1);
    EXPECT_TRUE(told.front().contains("CSV is written only")) << told.front().toStdString();
}

TEST_F(FileControllerTest, WritesATraceInEveryForm)
{
    for (const char* name : {"a.json", "a.json.gz", "a.csv", "a.strace"}) {
        chosen = folder.filePath(name);
        EXPECT_TRUE(done(files.exportTrace())) << name;
        EXPECT_GT(QFile(chosen).size(), 200) << name;
    }
    EXPECT_TRUE(contentOf(folder.filePath("a.json")).contains("traceEvents"));
    EXPECT_TRUE(contentOf(folder.filePath("a.csv")).contains("0F0"));
    EXPECT_EQ(traces::loadTrace(fromQt(folder.filePath("a.strace"))).value().sliceCount(),
              bench.simulation().simulation().trace->sliceCount());
    chosen = folder.filePath("a.wrong");
    EXPECT_TRUE(done(files.exportTrace()));
    ASSERT_EQ(told.size(), 1);
    EXPECT_TRUE(told.front().contains(".csv")) << told.front().toStdString();
}

TEST_F(FileControllerTest, DrawsTheTimelineInEveryForm)
{
    const Theme theme = Theme::of(ThemeKind::Light);
    for (const char* name : {"a.png", "a.svg", "a.pdf"}) {
        chosen = folder.filePath(name);
        EXPECT_TRUE(done(files.exportPicture(PictureExtent::Whole, theme, {}))) << name;
    }
    EXPECT_GT(QImage(folder.filePath("a.png")).width(), 1000);
    EXPECT_TRUE(contentOf(folder.filePath("a.svg")).contains("<svg"));
    EXPECT_TRUE(contentOf(folder.filePath("a.pdf")).startsWith("%PDF"));
    bench.scene().axis().setRange({0, 1000}); // a part of it is another picture
    chosen = folder.filePath("part.png");
    EXPECT_TRUE(done(files.exportPicture(PictureExtent::AsShown, theme, {})));
    EXPECT_NE(contentOf(chosen), contentOf(folder.filePath("a.png")));
    chosen = folder.filePath("a.bmp2");
    EXPECT_TRUE(done(files.exportPicture(PictureExtent::Whole, theme, {})));
    EXPECT_EQ(told.size(), 1);
}

TEST_F(FileControllerTest, ReadsAndWritesBesideTheWindowOneAtATime)
{
    openLarge();
    QSignalSpy note(&files, &FileController::note);
    double least = 2;
    double most = 0;
    QObject::connect(&files, &FileController::workChanged, &files, [&] {
        if (!files.busy()) return;
        least = std::min(least, files.progress());
        most = std::max(most, files.progress());
    });
    const QString file = folder.filePath("large.json");
    ASSERT_TRUE(files.writeTrace(file));
    EXPECT_TRUE(files.busy()) << "the call does not wait";
    EXPECT_TRUE(files.doing().contains("large.json"));
    EXPECT_FALSE(QFile::exists(file));
    EXPECT_FALSE(files.writeTrace(folder.filePath("other.json"))) << "one at a time";
    ASSERT_EQ(told.size(), 1);
    EXPECT_TRUE(told.front().contains("large.json")) << told.front().toStdString();
    ASSERT_TRUE(done(true));
    EXPECT_EQ(note.size(), 1);
    EXPECT_TRUE(QFile::exists(file));
    EXPECT_LT(least, 0.5) << "the progress is told on the way";
    EXPECT_GT(most, 0.5);
    EXPECT_LE(most, 1);

    least = 2;
    most = 0;
    ASSERT_TRUE(files.open(file));
    EXPECT_FALSE(bench.other());
    ASSERT_TRUE(done(true));
    EXPECT_EQ(bench.other()->sliceCount(), bench.simulation().simulation().trace->sliceCount());
    EXPECT_LT(least, 0.5);
    EXPECT_GT(most, 0.5);
}

TEST_F(FileControllerTest, CancelsWithoutAFileOrATrace)
{
    openLarge();
    const QString file = folder.filePath("kept.strace");
    ASSERT_TRUE(done(files.writeTrace(file)));
    ASSERT_TRUE(files.writeTrace(folder.filePath("cancelled.json")));
    files.cancel();
    EXPECT_FALSE(files.busy());
    ASSERT_TRUE(files.open(file));
    files.cancel();
    chosen = folder.filePath("after.csv"); // its turn comes when the others have ended
    ASSERT_TRUE(done(files.exportTrace()));
    EXPECT_FALSE(QFile::exists(folder.filePath("cancelled.json")));
    EXPECT_TRUE(QFile::exists(chosen));
    EXPECT_FALSE(bench.other());
    EXPECT_TRUE(told.isEmpty()) << told.join('\n').toStdString();
}

TEST_F(FileControllerTest, LeavesNoPictureWhereItsExportIsCancelled)
{
    const QDir dir(folder.path());
    const Theme theme = Theme::of(ThemeKind::Light);
    const auto named = [&](const QString& name) { return dir.entryList({name + "*"}, QDir::Files); };
    for (const char* ending : {"png", "svg", "pdf"}) {
        const QString name = QStringLiteral("picture.%1").arg(ending);
        const QString file = dir.filePath(name);
        const auto expectCancelled = [&](const QStringList& left, const char* when) {
            files.cancel();
            EXPECT_FALSE(files.busy());
            ASSERT_TRUE(done(files.writeTrace(dir.filePath("after.csv")))); // its turn comes when the other has ended
            EXPECT_EQ(named(name), left) << when;
        };
        ASSERT_TRUE(files.writePicture(file, PictureExtent::Whole, theme, {}));
        expectCancelled({}, "at once");
        // The file is drawn, and only its name is missing: no event was worked off since.
        ASSERT_TRUE(files.writePicture(file, PictureExtent::Whole, theme, {}));
        const QDeadlineTimer patience(60'000);
        while (named(name).isEmpty() && !patience.hasExpired()) std::this_thread::yield();
        ASSERT_EQ(named(name).size(), 1);
        EXPECT_NE(named(name).front(), name);
        expectCancelled({}, "at the end");
        QFile older(file);
        ASSERT_TRUE(older.open(QIODevice::WriteOnly));
        older.write("older");
        older.close();
        ASSERT_TRUE(files.writePicture(file, PictureExtent::Whole, theme, {}));
        expectCancelled({name}, "over an older one");
        EXPECT_EQ(contentOf(file), "older");
        ASSERT_TRUE(done(files.writePicture(file, PictureExtent::Whole, theme, {})));
        EXPECT_GT(contentOf(file).size(), 500);
    }
    EXPECT_TRUE(told.isEmpty()) << told.join('\n').toStdString();
}

TEST_F(FileControllerTest, AsksBeforeAFileThatIsBeingWrittenIsGivenUp)
{
    openLarge();
    EXPECT_TRUE(files.mayClose()) << "nothing is at work";
    ASSERT_TRUE(files.writeTrace(folder.filePath("large.json")));
    EXPECT_FALSE(files.mayClose());
    EXPECT_TRUE(files.busy());
    givesUp = true;
    EXPECT_TRUE(files.mayClose());
    EXPECT_FALSE(files.busy());
}

TEST_F(FileControllerTest, WarnsOfWhatAReaderOfTheTraceMustKnow)
{
    const auto trace = support::twoRanks();
    trace->addNote("the machine was busy");
    const QString file = folder.filePath("noted.strace");
    ASSERT_TRUE(traces::saveTrace(*trace, fromQt(file)).ok());
    QSignalSpy warned(&files, &FileController::warning);
    ASSERT_TRUE(done(files.open(file)));
    ASSERT_EQ(warned.size(), 1);
    EXPECT_EQ(warned.front().front().toString(), "noted.strace: the machine was busy");
}

TEST_F(FileControllerTest, TellsWhichWayARunWentWithoutAWarning)
{
    const auto trace = support::twoRanks();
    trace->addInformation("boundary tensors go by NCCL");
    const QString file = folder.filePath("told.strace");
    ASSERT_TRUE(traces::saveTrace(*trace, fromQt(file)).ok());
    QSignalSpy warned(&files, &FileController::warning);
    QSignalSpy told(&files, &FileController::note);
    ASSERT_TRUE(done(files.open(file)));
    EXPECT_EQ(warned.size(), 0);
    const auto said = [&] {
        QStringList all;
        for (const QList<QVariant>& each : told) all << each.front().toString();
        return all;
    };
    EXPECT_TRUE(said().contains("told.strace: boundary tensors go by NCCL")) << said().join(" | ").toStdString();
}

} // namespace
} // namespace stagecraft::ui
