// SPDX-License-Identifier: GPL-3.0-or-later
//
// The bounded box for what a worker says on standard error, between the thread that reads it and the window, which empties
// it at each tick. A worker that floods it costs the window no more than kLines per tick: lines beyond are counted and
// dropped, and a line is cut after kLineBytes. push() and finish() belong to the reading thread; take() to any.
#pragma once

#include <QByteArray>
#include <QStringList>

#include <cstdint>
#include <mutex>

namespace stagecraft::ui {

class LineInbox {
public:
    static constexpr qsizetype kLines = 40;
    static constexpr qsizetype kLineBytes = 2000;

    // Any split of the stream. True: the box was empty before and is not any more.
    bool push(QByteArrayView bytes);
    bool finish(); // the stream ended: what has no line end yet is a line too

    struct Contents {
        QStringList lines;
        std::int64_t leftOut = 0; // lines dropped since the last take()
    };
    Contents take();

private:
    void append(QByteArrayView part); // to line_, as far as it goes
    bool endLine();

    QByteArray line_;          // not yet ended; the reading thread's
    std::int64_t cutBytes_ = 0; // of it

    std::mutex mutex_; // guards contents_
    Contents contents_;
};

} // namespace stagecraft::ui
