// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/bridge/line_inbox.h"

#include <algorithm>
#include <utility>

namespace stagecraft::ui {

void LineInbox::append(QByteArrayView part)
{
    const qsizetype taken = std::min(part.size(), kLineBytes - line_.size());
    line_.append(part.first(taken));
    cutBytes_ += part.size() - taken;
}

bool LineInbox::endLine()
{
    QByteArray line = std::exchange(line_, {});
    const std::int64_t cut = std::exchange(cutBytes_, 0);
    if (line.isEmpty()) return false;
    const std::lock_guard lock(mutex_);
    const bool wasEmpty = contents_.lines.isEmpty();
    if (contents_.lines.size() >= kLines) {
        ++contents_.leftOut;
        return false;
    }
    QString text = QString::fromUtf8(line);
    if (cut > 0) text += QStringLiteral("… (%1 more bytes)").arg(cut);
    contents_.lines << text;
    return wasEmpty;
}

bool LineInbox::push(QByteArrayView bytes)
{
    bool woken = false;
    for (qsizetype end = bytes.indexOf('\n'); end >= 0; end = bytes.indexOf('\n')) {
        append(bytes.first(end));
        woken |= endLine();
        bytes = bytes.sliced(end + 1);
    }
    append(bytes);
    return woken;
}

bool LineInbox::finish() { return endLine(); }

LineInbox::Contents LineInbox::take()
{
    const std::lock_guard lock(mutex_);
    return std::exchange(contents_, {});
}

} // namespace stagecraft::ui
