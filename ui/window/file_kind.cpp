// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/file_kind.h"

#include <QByteArray>
#include <QFile>

namespace stagecraft::ui {
namespace {

constexpr qint64 kHeadBytes = 1 << 16; // traces are large; the keys that tell them apart come first

// The keys of the outermost JSON object, as far as the text goes. Written for a text that breaks off: no parser takes that.
QByteArrayList outerKeys(const QByteArray& json)
{
    QByteArrayList keys;
    int depth = 0;
    for (qsizetype i = 0; i < json.size(); ++i) {
        const char c = json[i];
        if (c == '{' || c == '[') ++depth;
        else if (c == '}' || c == ']') --depth;
        if (c != '"') continue;
        const qsizetype begin = ++i;
        while (i < json.size() && json[i] != '"') i += json[i] == '\\' ? 2 : 1;
        qsizetype next = i + 1;
        while (next < json.size() && (json[next] == ' ' || json[next] == '\n' || json[next] == '\r' || json[next] == '\t')) ++next;
        if (depth == 1 && next < json.size() && json[next] == ':') keys << json.mid(begin, i - begin);
    }
    return keys;
}

} // namespace

FileKind fileKind(const QString& file, FileKind hint)
{
    const auto ends = [&](const char* ending) { return file.endsWith(QLatin1String(ending), Qt::CaseInsensitive); };
    QFile in(file);
    if (in.open(QIODevice::ReadOnly)) {
        const QByteArray head = in.read(kHeadBytes).trimmed();
        if (head.startsWith("STRACE") || head.startsWith("\x1f\x8b") || head.startsWith('[')) return FileKind::Trace;
        if (head.startsWith('{')) {
            const QByteArrayList keys = outerKeys(head);
            if (keys.contains("traceEvents")) return FileKind::Trace;
            if (keys.contains("stagecraft_plan") || keys.contains("pipeline")) return FileKind::Plan;
        }
    }
    if (ends(".plan.json")) return FileKind::Plan;
    // A table of actions is an export of a trace: whoever reads it says that it is written only.
    if (ends(".strace") || ends(".csv") || ends(".gz")) return FileKind::Trace;
    return hint;
}

} // namespace stagecraft::ui
