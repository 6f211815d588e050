// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/export/timeline_export.h"

#include "ui/export/timeline_sheet.h"

#include <QBuffer>
#include <QFileInfo>
#include <QImage>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>

#include <algorithm>

namespace stagecraft::ui {
namespace {

using traces::Error;
using traces::Expected;

constexpr int kLargestSide = 32'000; // of an image, in pixels: what image readers commonly take

Expected<double> scaleOf(const TimelineSheet& sheet, double wanted)
{
    const double side = std::max(sheet.size().width(), sheet.size().height());
    for (const double scale : {2.0, 1.5, 1.0})
        if (wanted == 0 && side * scale <= kLargestSide) return scale;
    if (wanted > 0 && side * wanted <= kLargestSide) return wanted;
    const QSize pixels = (sheet.size() * std::max(wanted, 1.0)).toSize();
    return Error{"an image of " + std::to_string(pixels.width()) + " x " + std::to_string(pixels.height()) +
                 " pixels is too large, " + std::to_string(kLargestSide) +
                 " a side at most; choose a smaller scale or width, fewer lanes, or an .svg or .pdf file"};
}

Expected<QByteArray> png(TimelineSheet& sheet, double wantedScale)
{
    const Expected<double> fitting = scaleOf(sheet, wantedScale);
    if (!fitting.ok()) return fitting.error();
    const double scale = fitting.value();
    QImage image((sheet.size() * scale).toSize(), QImage::Format_RGB32);
    if (image.isNull()) return Error{"no memory for an image of this size; choose a smaller width or scale"};
    image.setDevicePixelRatio(scale);
    {
        QPainter painter(&image);
        sheet.paint(painter, Surface::Pixels, scale);
    }
    QBuffer buffer;
    buffer.open(QIODevice::WriteOnly);
    if (!image.save(&buffer, "PNG")) return Error{"the image could not be encoded as PNG"};
    return buffer.data();
}

Expected<QByteArray> svg(TimelineSheet& sheet)
{
    QBuffer buffer;
    buffer.open(QIODevice::WriteOnly);
    QSvgGenerator generator;
    generator.setOutputDevice(&buffer);
    generator.setSize(sheet.size().toSize());
    generator.setViewBox(QRectF(QPointF(0, 0), sheet.size()));
    generator.setTitle(sheet.title().toHtmlEscaped()); // Qt writes it as it is
    generator.setDescription(QStringLiteral("Pipeline timeline, drawn by Stagecraft"));
    generator.setResolution(96);
    QPainter painter;
    if (!painter.begin(&generator)) return Error{"the picture could not be drawn as SVG"};
    sheet.paint(painter, Surface::Vector, 1);
    painter.end();
    return buffer.data();
}

Expected<QByteArray> pdf(TimelineSheet& sheet)
{
    constexpr int kDotsPerInch = 288;
    constexpr double kUnitsPerInch = 96;
    QBuffer buffer;
    buffer.open(QIODevice::WriteOnly);
    QPdfWriter writer(&buffer);
    writer.setTitle(sheet.title());
    writer.setCreator(QStringLiteral("Stagecraft"));
    writer.setResolution(kDotsPerInch);
    writer.setPageSize(QPageSize(sheet.size() * 72 / kUnitsPerInch, QPageSize::Point, QString(), QPageSize::ExactMatch));
    writer.setPageMargins(QMarginsF(0, 0, 0, 0));
    QPainter painter;
    if (!painter.begin(&writer)) return Error{"the picture could not be drawn as PDF"};
    painter.scale(kDotsPerInch / kUnitsPerInch, kDotsPerInch / kUnitsPerInch);
    sheet.paint(painter, Surface::Vector, 1);
    painter.end();
    return buffer.data();
}

} // namespace

Expected<traces::OutputFile> drawTimeline(const std::vector<TraceSource>& sources, const ExportOptions& options, const QString& file,
                                          const std::function<bool()>& cancelled)
{
    const auto givenUp = [&] { return cancelled && cancelled(); };
    const Error givingUp{"the export was cancelled"};
    const std::string name = file.toStdString();
    const QString ending = QFileInfo(file).suffix().toLower();
    if (ending != QLatin1String("png") && ending != QLatin1String("svg") && ending != QLatin1String("pdf"))
        return Error{"the ending chooses the form of the picture: use .png, .svg or .pdf"}.in(name);
    if (givenUp()) return givingUp;
    TimelineSheet sheet(sources, options);
    if (sheet.empty()) return Error{"there is nothing to draw: the trace has no slices"}.in(name);
    if (auto known = sheet.checkRange(); !known.ok()) return known.error().in(name);
    const Expected<QByteArray> bytes = ending == QLatin1String("png")   ? png(sheet, options.scale)
                                       : ending == QLatin1String("svg") ? svg(sheet)
                                                                        : pdf(sheet);
    if (!bytes.ok()) return bytes.error().in(name);
    if (givenUp()) return givingUp;
    Expected<traces::OutputFile> created = traces::OutputFile::create(name); // its errors name the file
    if (created.ok()) created.value().write({bytes.value().constData(), static_cast<std::size_t>(bytes.value().size())});
    return created;
}

Expected<void> exportTimeline(const std::vector<TraceSource>& sources, const ExportOptions& options, const QString& file)
{
    Expected<traces::OutputFile> drawn = drawTimeline(sources, options, file);
    if (!drawn.ok()) return drawn.error();
    return drawn.value().commit();
}

} // namespace stagecraft::ui
