// SPDX-License-Identifier: GPL-3.0-or-later
//
// The memory of GPUs in the memory plot, which belongs to none of the ranks that may share one: of one its parts, stacked up to what is used;
// of all what is used of each.
#include "ui/plots/memory_plot.h"

#include "traces/analysis/gpu_memory.h"
#include "ui/bridge/text.h"
#include "ui/plots/gpu_curve.h"
#include "ui/theme/contrast.h"

#include <QComboBox>
#include <QSignalBlocker>
#include <qcustomplot.h>

#include <algorithm>
#include <cmath>

namespace stagecraft::ui {

using traces::Bytes;
using traces::GpuId;
using traces::MemoryClass;

namespace {

constexpr int kRoomForNumbers = 62; // of the axis, right of the chooser
constexpr int kAllGpus = 1;         // entries of the chooser: ranks, all GPUs, each of them
constexpr int kFirstGpu = 2;

} // namespace

void MemoryPlot::makeChooser()
{
    chooser_ = new QComboBox(this);
    chooser_->setObjectName("memoryChooser");
    chooser_->setAccessibleName(tr("Whose memory is shown"));
    chooser_->setFocusPolicy(Qt::StrongFocus);
    chooser_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    chooser_->setMinimumContentsLength(4);
    chooser_->hide();
    connect(chooser_, &QComboBox::activated, this, [this](int entry) {
        if (entry >= kFirstGpu) showGpu(GpuId{entry - kFirstGpu});
        else if (entry == kAllGpus) showGpu(std::nullopt);
        else showRanks();
    });
}

void MemoryPlot::showRanks()
{
    if (!wantsGpus_) return;
    wantsGpus_ = false;
    rebuild();
}

void MemoryPlot::showGpu(std::optional<GpuId> gpu)
{
    if (wantsGpus_ && gpu == gpu_) return;
    wantsGpus_ = true;
    gpu_ = gpu;
    rebuild();
}

// Seen where the trace has GPUs. Of one GPU there is nothing to set side by side.
void MemoryPlot::fillChooser()
{
    const traces::Trace* source = composition_.reference;
    chooser_->setVisible(composition_.gpus > 0);
    if (composition_.gpus == 0) return;
    const QSignalBlocker quiet(chooser_);
    chooser_->clear();
    chooser_->addItem(tr("Ranks"));
    chooser_->setItemData(0, tr("What each rank holds, by what its allocator was asked for"), Qt::ToolTipRole);
    chooser_->addItem(tr("GPUs"));
    chooser_->setItemData(kAllGpus, tr("What is used of each GPU, by anyone"), Qt::ToolTipRole);
    const std::vector<std::string> names = gpuNames(*source);
    for (std::size_t g = 0; g < names.size(); ++g) {
        chooser_->addItem(toQt(names[g]));
        const traces::Gpu& gpu = source->gpus()[g].gpu;
        QStringList ranks;
        for (const traces::Rank rank : gpu.ranks) ranks << QString::number(rank.value);
        QString tip = gpu.name.empty() ? toQt(names[g]) : toQt(gpu.name);
        if (!ranks.isEmpty()) tip += (ranks.size() == 1 ? tr(", with rank %1") : tr(", with ranks %1")).arg(ranks.join(QStringLiteral(", ")));
        chooser_->setItemData(static_cast<int>(g) + kFirstGpu, tip, Qt::ToolTipRole);
    }
    chooser_->setCurrentIndex(!composition_.ofGpus ? 0 : composition_.gpu ? static_cast<int>(index(*composition_.gpu)) + kFirstGpu : kAllGpus);
    chooser_->setToolTip(chooser_->itemData(chooser_->currentIndex(), Qt::ToolTipRole).toString());
    placeChooser();
}

// Left of the axis and its numbers, where no curve comes; the limit is told above it.
void MemoryPlot::placeChooser()
{
    const QSize wanted = chooser_->sizeHint();
    const int room = static_cast<int>(left_) - kRoomForNumbers;
    chooser_->setGeometry(2, height() - wanted.height() - 4, std::max(room, 48), wanted.height());
}

void MemoryPlot::addGpuCurves()
{
    const traces::Trace& source = *composition_.reference;
    const std::vector<std::string> names = gpuNames(source);
    if (!composition_.gpu) {
        for (std::size_t g = 0; g < composition_.gpus; ++g) {
            addCurve(std::make_unique<GpuCurve>(GpuId{g}, GpuPart::Used), toQt(names[g]),
                     QPen(theme_.rank(static_cast<int>(g), static_cast<int>(composition_.gpus)), 1.6));
            curves_.back().gpu = GpuId{g};
        }
        return;
    }
    const auto colourOf = [this](MemoryClass memory) { return theme_.memoryClasses[static_cast<std::size_t>(memory)]; };
    struct Part {
        GpuPart part;
        QString name;
        QColor colour;
    };
    const Part parts[] = {{GpuPart::Active, tr("active"), colourOf(MemoryClass::Activations)},
                          {GpuPart::Reserved, tr("reserved, unused"), mixed(colourOf(MemoryClass::Activations), theme_.base, 0.6)},
                          {GpuPart::Used, tr("other"), colourOf(MemoryClass::Other)}};
    for (const Part& part : parts) {
        addStacked(std::make_unique<GpuCurve>(*composition_.gpu, part.part), part.name, part.colour);
        curves_.back().gpu = composition_.gpu;
    }
}

// Of the GPU that is shown; of several the smallest, which is full first.
Bytes MemoryPlot::gpuTotal() const
{
    Bytes least = 0;
    for (std::size_t g = 0; g < composition_.gpus; ++g) {
        const Bytes total = composition_.reference->gpus()[g].gpu.total;
        if (total == 0 || (composition_.gpu && *composition_.gpu != GpuId{g})) continue;
        least = least == 0 ? total : std::min(least, total);
    }
    return least;
}

// "peak 12 GiB of 80 GiB on GPU 0", and "active 8 GiB, reserved but unused 1 GiB, other 3 GiB"
void MemoryPlot::tellGpuPeak(GpuId gpu, const RankPoint& point)
{
    const traces::GpuSeries& series = composition_.reference->gpus()[index(gpu)];
    const QString name = toQt(gpuNames(*composition_.reference)[index(gpu)]);
    const traces::GpuMemory then = series.at(point.time);
    peakLine_ = series.gpu.total > 0 ? tr("peak %1 of %2 on %3").arg(valueText(point.value), valueText(series.gpu.total), name)
                                     : tr("peak %1 on %2").arg(valueText(point.value), name);
    peakParts_ = tr("active %1, reserved but unused %2, other %3").arg(valueText(then.active), valueText(then.unused()), valueText(then.other()));
}

} // namespace stagecraft::ui
