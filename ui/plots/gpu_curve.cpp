// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/gpu_curve.h"

#include <algorithm>

namespace stagecraft::ui {

namespace {

traces::Bytes upTo(GpuPart part, const traces::GpuMemory& memory)
{
    switch (part) {
    case GpuPart::Active: return memory.active;
    case GpuPart::Reserved: return memory.active + memory.unused();
    case GpuPart::Used: return memory.active + memory.unused() + memory.other();
    }
    return 0;
}

} // namespace

std::size_t GpuCurve::update(const traces::Trace& trace)
{
    const std::size_t there = index(gpu_) < trace.gpus().size() ? trace.gpus()[index(gpu_)].time.size() : 0;
    if (there < read_) { // another trace took its place
        read_ = 0;
        clear();
    }
    std::size_t kept = points().size();
    for (; read_ < there; ++read_) {
        const traces::GpuSeries& series = trace.gpus()[index(gpu_)];
        add({series.time[read_], upTo(part_, series.value[read_])}, kept);
    }
    findHighest(kept);
    return kept;
}

} // namespace stagecraft::ui
