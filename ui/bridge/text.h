// SPDX-License-Identifier: GPL-3.0-or-later
//
// Text between Qt and the parts below it, which know only UTF-8.
#pragma once

#include <QString>

#include <string>
#include <string_view>

namespace stagecraft::ui {

inline QString toQt(std::string_view text)
{
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}
inline std::string fromQt(const QString& text) { return text.toStdString(); }

} // namespace stagecraft::ui
