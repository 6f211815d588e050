// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a run's result tells beside its figures, as lines for the log: what a text model writes, and what micro-batches keep.
//
//   for (const QString& line : resultNotes(result)) log.note(line);
#pragma once

#include "engine/session/session_message.h"

#include <QStringList>

namespace stagecraft::ui {

QStringList resultNotes(const engine::RunResult& result);

} // namespace stagecraft::ui
