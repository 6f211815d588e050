// SPDX-License-Identifier: GPL-3.0-or-later
//
// Whether a file holds a plan or a trace, by what is in it: plans and Chrome traces are both JSON, and a user may have
// called either of them "mine.json".
//
//   fileKind("mine.json", FileKind::Trace) == FileKind::Plan
#pragma once

#include <QString>

namespace stagecraft::ui {

enum class FileKind { Plan, Trace };

// `hint` decides where neither content nor name does: what the user asked to open. A missing file is judged by its name.
FileKind fileKind(const QString& file, FileKind hint);

} // namespace stagecraft::ui
