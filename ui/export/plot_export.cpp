// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/export/plot_export.h"

#include "traces/format/output_file.h"
#include "ui/bridge/text.h"
#include "ui/plots/sweep_plot.h"

#include <QBuffer>
#include <QFileInfo>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <qcustomplot.h>

namespace stagecraft::ui {
namespace {

using traces::Error;
using traces::Expected;

Expected<QByteArray> png(QCustomPlot& plot, const PlotExportOptions& options)
{
    QBuffer buffer;
    buffer.open(QIODevice::WriteOnly);
    const QPixmap pixels = plot.toPixmap(options.size.width(), options.size.height(), options.scale);
    if (pixels.isNull() || !pixels.save(&buffer, "PNG")) return Error{"the image could not be drawn; choose a smaller width"};
    return buffer.data();
}

void paintVectors(QCustomPlot& plot, QCPPainter& painter, const QSize& size)
{
    painter.setMode(QCPPainter::pmVectorized);
    painter.setMode(QCPPainter::pmNoCaching);
    plot.toPainter(&painter, size.width(), size.height());
}

Expected<QByteArray> svg(QCustomPlot& plot, const PlotExportOptions& options)
{
    QBuffer buffer;
    buffer.open(QIODevice::WriteOnly);
    QSvgGenerator generator;
    generator.setOutputDevice(&buffer);
    generator.setSize(options.size);
    generator.setViewBox(QRect(QPoint(0, 0), options.size));
    generator.setTitle(options.title.toHtmlEscaped()); // Qt writes it as it is
    generator.setDescription(QStringLiteral("Drawn by Stagecraft"));
    generator.setResolution(96);
    QCPPainter painter;
    if (!painter.begin(&generator)) return Error{"the picture could not be drawn as SVG"};
    paintVectors(plot, painter, options.size);
    painter.end();
    return buffer.data();
}

Expected<QByteArray> pdf(QCustomPlot& plot, const PlotExportOptions& options)
{
    constexpr int kDotsPerInch = 288;
    constexpr double kUnitsPerInch = 96;
    QBuffer buffer;
    buffer.open(QIODevice::WriteOnly);
    QPdfWriter writer(&buffer);
    writer.setTitle(options.title);
    writer.setCreator(QStringLiteral("Stagecraft"));
    writer.setResolution(kDotsPerInch);
    writer.setPageSize(QPageSize(QSizeF(options.size) * 72 / kUnitsPerInch, QPageSize::Point, QString(), QPageSize::ExactMatch));
    writer.setPageMargins(QMarginsF(0, 0, 0, 0));
    QCPPainter painter;
    if (!painter.begin(&writer)) return Error{"the picture could not be drawn as PDF"};
    painter.scale(kDotsPerInch / kUnitsPerInch, kDotsPerInch / kUnitsPerInch);
    paintVectors(plot, painter, options.size);
    painter.end();
    return buffer.data();
}

} // namespace

Expected<void> exportPlot(QCustomPlot& plot, const PlotExportOptions& options, const QString& file)
{
    const std::string name = fromQt(file);
    const QString ending = QFileInfo(file).suffix().toLower();
    if (ending != QLatin1String("png") && ending != QLatin1String("svg") && ending != QLatin1String("pdf"))
        return Error{"the ending chooses the form of the picture: use .png, .svg or .pdf"}.in(name);
    const Expected<QByteArray> bytes = ending == QLatin1String("png")   ? png(plot, options)
                                       : ending == QLatin1String("svg") ? svg(plot, options)
                                                                        : pdf(plot, options);
    if (!bytes.ok()) return bytes.error().in(name);
    return traces::writeWholeFile(name, {bytes.value().constData(), static_cast<std::size_t>(bytes.value().size())});
}

QString sweepTitle(const engine::Sweep& sweep, const std::vector<engine::SweepFigure>& figures)
{
    QString title = figures.size() == 1 ? toQt(engine::infoOf(figures.front()).title) : QStringLiteral("figures of the step");
    title[0] = title[0].toUpper();
    title += QStringLiteral(" against %1").arg(toQt(infoOf(sweep.axis.quantity).title));
    return sweep.fixed.empty() ? title : title + QStringLiteral(", ") + toQt(sweep.fixed);
}

Expected<void> exportSweep(const engine::Sweep& sweep, const SweepPicture& picture, const QString& file)
{
    const std::vector<engine::SweepFigure> figures = picture.figures.empty() ? mainFigures(sweep) : picture.figures;
    for (const engine::SweepFigure figure : figures)
        if (engine::infoOf(figure).scalingOnly && sweep.scaling == engine::Scaling::None)
            return Error{std::string(engine::infoOf(figure).key) + " is of a sweep with scaling, and this one has none"};
    SweepPlot plot;
    plot.setTheme(picture.theme);
    plot.setFigures(figures);
    const QString title = sweepTitle(sweep, figures);
    plot.setTitle(title);
    plot.setSweep(sweep);
    const int height = picture.width * (figures.size() > 1 ? 68 : 56) / 100;
    return exportPlot(plot.plot(), {.size = {picture.width, height}, .scale = 2, .title = title}, file);
}

} // namespace stagecraft::ui
