// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/plan/plan_json.h"
#include "tests/ui/support/traces.h"
#include "ui/export/timeline_export.h"

#include <QDir>
#include <QFile>
#include <QImage>
#include <QPainter>
#include <QProcess>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QSvgRenderer>
#include <QTemporaryDir>
#include <QXmlStreamReader>

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

using support::kMs;
using support::twoRanks;
using traces::PaintClass;

class Export : public ::testing::Test {
protected:
    QString path(const char* name) const { return dir_.filePath(name); }
    QString write(const char* name, const ExportOptions& options = {}, std::vector<TraceSource> sources = {{twoRanks()}})
    {
        const auto done = exportTimeline(sources, options, path(name));
        EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
        return path(name);
    }
    static QByteArray read(const QString& file)
    {
        QFile in(file);
        EXPECT_TRUE(in.open(QIODevice::ReadOnly)) << file.toStdString();
        return in.readAll();
    }
    static QImage rendered(const QString& svg)
    {
        QSvgRenderer renderer(svg);
        EXPECT_TRUE(renderer.isValid());
        // Qt's reader takes 90 units for an inch, its writer the usual 96; the view box has the true size.
        QImage image(renderer.viewBox().size(), QImage::Format_RGB32);
        image.fill(Qt::white);
        QPainter painter(&image);
        renderer.render(&painter);
        return image;
    }
    static double share(const QImage& image, const QColor& colour)
    {
        int count = 0;
        for (int y = 0; y < image.height(); ++y)
            for (int x = 0; x < image.width(); ++x) count += image.pixelColor(x, y) == colour;
        return static_cast<double>(count) / image.width() / image.height();
    }
    QTemporaryDir dir_;
    Theme light_ = Theme::of(ThemeKind::Light);
};

TEST_F(Export, WritesAPngOfTheAskedSize)
{
    const QImage image(write("a.png", {.width = 900, .height = 400, .scale = 2}));
    EXPECT_EQ(image.size(), QSize(1800, 800));
    EXPECT_GT(share(image, light_.block(PaintClass::Backward, 0)), 0.05);
    EXPECT_GT(share(image, light_.block(PaintClass::Forward, 0)), 0.02);
}

TEST_F(Export, TakesTheTheme)
{
    const Theme dark = Theme::of(ThemeKind::Dark);
    const QImage image(write("a.png", {.width = 900, .scale = 1, .theme = dark}));
    EXPECT_EQ(image.pixelColor(2, 2), dark.base);
    EXPECT_GT(share(image, dark.block(PaintClass::Backward, 0)), 0.05);
}

TEST_F(Export, DrawsTheSamePictureAsSvg)
{
    const QImage png(write("a.png", {.width = 900, .scale = 1}));
    const QImage svg = rendered(write("a.svg", {.width = 900}));
    ASSERT_EQ(svg.size(), png.size());
    for (const PaintClass paint : {PaintClass::Forward, PaintClass::Backward})
        EXPECT_NEAR(share(svg, light_.block(paint, 0)), share(png, light_.block(paint, 0)), 0.006) << paintClassName(paint);
}

TEST_F(Export, WritesTextAsTextInSvg)
{
    const QByteArray svg = read(write("a.svg", {.width = 900, .title = "Step <1> & more"}));
    QXmlStreamReader xml(svg);
    QString text;
    while (!xml.atEnd())
        if (xml.readNext() == QXmlStreamReader::Characters) text += xml.text();
    EXPECT_FALSE(xml.hasError()) << xml.errorString().toStdString();
    for (const char* part : {"Step <1> & more", "Rank 0", "Rank 1", "stage 1", "forward", "backward", "idle", "bubble", "steady"})
        EXPECT_TRUE(text.contains(part)) << part;
}

TEST_F(Export, CutsTheGeometryOfAPart)
{
    const QByteArray svg = read(write("part.svg", {.width = 900, .range = traces::Interval{2'300'000, 6'700'000}}));
    // Every rectangle and line end lies on the sheet, although blocks reach far beyond the part.
    QXmlStreamReader xml(svg);
    double width = 0;
    int shapes = 0;
    while (!xml.atEnd()) {
        if (xml.readNext() != QXmlStreamReader::StartElement) continue;
        const auto value = [&](const char* name) { return xml.attributes().value(QLatin1String(name)).toDouble(); };
        if (xml.name() == QLatin1String("svg")) width = xml.attributes().value(QLatin1String("viewBox")).toString().split(' ')[2].toDouble();
        if (xml.name() == QLatin1String("rect")) {
            EXPECT_GE(value("x"), -0.01);
            EXPECT_LE(value("x") + value("width"), width + 0.01);
            ++shapes;
        }
        if (xml.name() == QLatin1String("path")) {
            static const QRegularExpression point(QStringLiteral("[ML](-?[0-9.]+),(-?[0-9.]+)"));
            auto matches = point.globalMatch(xml.attributes().value(QLatin1String("d")).toString());
            while (matches.hasNext()) {
                const double x = matches.next().captured(1).toDouble();
                EXPECT_GE(x, -1);
                EXPECT_LE(x, width + 1);
            }
            ++shapes;
        }
    }
    EXPECT_FALSE(xml.hasError());
    EXPECT_GT(width, 0);
    EXPECT_GT(shapes, 20);
    const QImage image = rendered(path("part.svg"));
    for (int y = 0; y < image.height(); ++y) {
        ASSERT_EQ(image.pixelColor(5, y), light_.base) << "left margin, line " << y;
        ASSERT_EQ(image.pixelColor(image.width() - 5, y), light_.base) << "right margin, line " << y;
    }
}

TEST_F(Export, WritesAPdf)
{
    const QString file = write("a.pdf", {.width = 900});
    EXPECT_TRUE(read(file).startsWith("%PDF-1."));
    EXPECT_TRUE(read(file).trimmed().endsWith("%%EOF"));
}

TEST_F(Export, WritesAPdfThatOthersCanDraw)
{
    const QString tool = QStandardPaths::findExecutable("pdftoppm");
    if (tool.isEmpty()) GTEST_SKIP() << "pdftoppm (package poppler-utils) is not installed";
    const QString file = write("a.pdf", {.width = 900});
    QProcess process;
    process.start(tool, {"-png", "-r", "96", "-singlefile", file, path("page")});
    ASSERT_TRUE(process.waitForFinished());
    const QImage page(path("page.png"));
    EXPECT_NEAR(page.width(), 900, 2);
    EXPECT_GT(share(page, light_.block(PaintClass::Backward, 0)), 0.05);
}

TEST_F(Export, ShowsBothTraces)
{
    const std::vector<TraceSource> both{{twoRanks()}, {twoRanks({.label = traces::TraceLabel::Measured})}};
    const QImage stacked(write("s.png", {.width = 900, .scale = 1}, both));
    const QImage laid(write("o.png", {.width = 900, .scale = 1, .arrangement = Arrangement::Overlaid}, both));
    EXPECT_GT(stacked.height(), laid.height() + 50);
}

TEST_F(Export, LeavesFoldedLanesOut)
{
    const QImage open(write("open.png", {.width = 900, .scale = 1}));
    const QImage folded(write("folded.png", {.width = 900, .scale = 1, .folded = {{SourceRole::Simulation, traces::Rank{0}}}}));
    EXPECT_LT(folded.height(), open.height());
}

TEST_F(Export, NamesTheFileThatCannotBeWritten)
{
    const QString file = path("no/such/folder/a.png");
    const auto done = exportTimeline({{twoRanks()}}, {}, file);
    ASSERT_FALSE(done.ok());
    EXPECT_TRUE(QString::fromStdString(done.error().message).contains(file)) << done.error().message;
    EXPECT_NE(done.error().message.find("does not exist"), std::string::npos);
}

TEST_F(Export, RefusesAnEndingItDoesNotKnow)
{
    const auto done = exportTimeline({{twoRanks()}}, {}, path("a.gif"));
    ASSERT_FALSE(done.ok());
    EXPECT_NE(done.error().message.find(".svg"), std::string::npos);
    EXPECT_FALSE(QFile::exists(path("a.gif")));
}

TEST_F(Export, RefusesAnEmptyTrace)
{
    const auto done = exportTimeline({{std::make_shared<traces::Trace>()}}, {}, path("a.png"));
    ASSERT_FALSE(done.ok());
    EXPECT_NE(done.error().message.find("no slices"), std::string::npos);
    EXPECT_FALSE(exportTimeline({}, {}, path("b.png")).ok());
}

TEST_F(Export, RefusesAnImageThatNobodyCouldOpen)
{
    const auto done = exportTimeline({{twoRanks()}}, {.width = 100'000}, path("a.png"));
    ASSERT_FALSE(done.ok());
    EXPECT_NE(done.error().message.find("too large"), std::string::npos);
}

QString textOf(const QByteArray& svg)
{
    QXmlStreamReader xml(svg);
    QString text;
    while (!xml.atEnd())
        if (xml.readNext() == QXmlStreamReader::Characters) text += xml.text();
    return text;
}

TEST_F(Export, TellsTheMedianStepOrTheOneAskedFor)
{
    // 27, 9 and 18 ms
    const std::vector<TraceSource> steps{{twoRanks({.label = traces::TraceLabel::Measured, .unit = {3 * kMs, kMs, 2 * kMs}})}};
    EXPECT_TRUE(textOf(read(write("all.svg", {}, steps))).contains("median step 2 of 3: 18 ms"));
    const QString one = textOf(read(write("one.svg", {.step = traces::Step{1}}, steps)));
    EXPECT_TRUE(one.contains("step 1 of 3: 9 ms"));
    EXPECT_FALSE(one.contains("step 0 ")); // the others are not in sight
    const auto none = exportTimeline(steps, {.step = traces::Step{7}}, path("none.svg"));
    ASSERT_FALSE(none.ok());
    EXPECT_NE(none.error().message.find("there is no step 7; the trace has the steps 0 to 2"), std::string::npos) << none.error().message;
}

TEST_F(Export, DrawsTheTimesAskedFor)
{
    const QImage cut(write("cut.png", {.width = 900, .scale = 1, .from = kMs, .to = 2 * kMs}));
    EXPECT_GT(share(cut, light_.block(PaintClass::Forward, 0)), 0.1); // both ranks work forward from 1 to 2 ms
    EXPECT_LT(share(cut, light_.block(PaintClass::Backward, 0)), 0.01);
    EXPECT_FALSE(exportTimeline({{twoRanks()}}, {.from = 2 * kMs, .to = kMs}, path("b.png")).ok());
    EXPECT_FALSE(exportTimeline({{twoRanks()}}, {.from = 200 * kMs}, path("b.png")).ok());
}

TEST_F(Export, ShowsTheSelectionAndNothingToPress)
{
    const TimelineItem block{.kind = TimelineItem::Kind::Slice, .slice = {traces::LaneId{1}, 1}};
    const QImage plain(write("plain.png", {.width = 900, .scale = 1}));
    const QImage chosen(write("chosen.png", {.width = 900, .scale = 1, .selection = block}));
    EXPECT_EQ(share(plain, light_.accent), 0);
    EXPECT_GT(share(chosen, light_.accent), 0);
    EXPECT_GT(share(chosen, light_.arrow), 0);
}

TEST_F(Export, TakesTheLanesAsTheyAreScrolled)
{
    const QImage all(write("all.png", {.width = 900, .scale = 1}));
    const QImage part(write("part.png", {.width = 900, .scale = 1, .lanes = ShownLanes{40, 60}}));
    EXPECT_LT(part.height(), all.height());
}

TEST_F(Export, LowersTheScaleOfAVeryHighPicture)
{
    const QImage image(write("high.png", {.width = 400, .height = 20'000}));
    EXPECT_EQ(image.size(), QSize(600, 30'000)); // 1.5 instead of 2
    EXPECT_FALSE(exportTimeline({{twoRanks()}}, {.height = 20'000, .scale = 2}, path("asked.png")).ok());
}

TEST_F(Export, TellsThatTheDiskIsFull)
{
    for (const char* name : {"full.png", "full.svg", "full.pdf"}) {
        ASSERT_TRUE(QFile::link(QStringLiteral("/dev/full"), path(name)));
        const auto done = exportTimeline({{twoRanks()}}, {}, path(name));
        ASSERT_FALSE(done.ok());
        EXPECT_NE(done.error().message.find("disk is full"), std::string::npos) << done.error().message;
    }
}

TEST_F(Export, SaysHowMuchThereIsInSoundWords)
{
    const auto trace = twoRanks();
    trace->info.chunks = 2;
    EXPECT_TRUE(textOf(read(write("a.svg", {}, {{trace}}))).contains("2 ranks \u00b7 2 chunks \u00b7 2 micro-batches"));
    trace->info.ranks = trace->info.microbatches = 1;
    EXPECT_TRUE(textOf(read(write("b.svg", {}, {{trace}}))).contains("1 rank \u00b7 2 chunks \u00b7 1 micro-batch"));
}

TEST_F(Export, NamesThePlanThatATraceCameFrom)
{
    const auto trace = twoRanks();
    engine::Plan plan;
    plan.name = "my pipeline";
    trace->info.planJson = engine::writePlan(plan);
    EXPECT_TRUE(textOf(read(write("a.svg", {}, {{trace}}))).contains("my pipeline, two ranks"));
}

} // namespace
} // namespace stagecraft::ui
