// SPDX-License-Identifier: GPL-3.0-or-later
//
// Text between Qt and the parts below it, which know only UTF-8.
//
//   counted(3, "micro-batch") == "3 micro-batches": no translation is loaded, so tr()'s own %n would leave "3 micro-batch(es)"
#pragma once

#include "traces/base/text.h"

#include <QString>

#include <concepts>
#include <string>
#include <string_view>

namespace stagecraft::ui {

inline QString toQt(std::string_view text)
{
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}
inline std::string fromQt(const QString& text) { return text.toStdString(); }

template <std::integral Number>
QString counted(Number number, std::string_view thing)
{
    return toQt(traces::counted(number, thing));
}

} // namespace stagecraft::ui
