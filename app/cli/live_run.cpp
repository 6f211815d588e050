// SPDX-License-Identifier: Apache-2.0
#include "app/cli/live_run.h"

#include "app/cli/journal_file.h"
#include "traces/format/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <set>
#include <utility>

namespace stagecraft::cli {

namespace {

using namespace std::chrono_literals;

volatile std::sig_atomic_t stopAsked = 0;

void askToStop(int signal)
{
    stopAsked = 1;
    std::signal(signal, SIG_DFL);
}

// Signals ask for a stop while this lives.
class StopOnSignal {
public:
    StopOnSignal()
    {
        stopAsked = 0;
        std::signal(SIGINT, askToStop);
        std::signal(SIGTERM, askToStop);
    }
    ~StopOnSignal()
    {
        std::signal(SIGINT, SIG_DFL);
        std::signal(SIGTERM, SIG_DFL);
    }
    StopOnSignal(const StopOnSignal&) = delete;
    StopOnSignal& operator=(const StopOnSignal&) = delete;
};

// One line on standard error, written over and over.
class ProgressLine {
public:
    explicit ProgressLine(bool shown) : shown_(shown) {}
    ~ProgressLine() { clear(); }
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    void show(const engine::ProgressMessage& progress)
    {
        if (!shown_) return;
        constexpr int kWidth = 24;
        const int full = static_cast<int>(kWidth * std::min(1.0, std::max(0.0, progress.fraction)));
        std::fprintf(stderr, "\r\033[K[%s%s] %s", std::string(static_cast<std::size_t>(full), '#').c_str(),
                     std::string(static_cast<std::size_t>(kWidth - full), '.').c_str(), progress.text.c_str());
        std::fflush(stderr);
        dirty_ = true;
    }
    void clear()
    {
        if (dirty_) std::fputs("\r\033[K", stderr);
        dirty_ = false;
    }

private:
    bool shown_;
    bool dirty_ = false;
};

class Follower {
public:
    Follower(const FollowOptions& options, std::optional<JournalFile> journal)
        : slices_(options.slices), recent_(options.slices), progress_(options.progress), notes_(options.notes), journal_(std::move(journal))
    {
        if (!journal_) return;
        writer_.emplace([this](std::string_view bytes) { journal_->write(bytes); });
    }

    void take(const std::vector<traces::Record>& records)
    {
        for (const traces::Record& record : records) {
            if (const auto* said = std::get_if<traces::SessionRecord>(&record)) {
                hear(said->json);
                continue;
            }
            if (std::holds_alternative<traces::InfoRecord>(record) && recent_.trace().laneCount() > 0) {
                writer_.reset();
                recent_ = traces::RecentTrace(slices_);
            }
            if (writer_) writer_->write(record);
            peaks_.take(record);
            // what does not fit is named in the trace, so that whoever opens it knows
            if (auto applied = recent_.take(record); !applied.ok()) addNote(applied.error().message);
            else if (isOfAnAction(record)) {
                run.ran = true;
                if (writer_) journal_->begin();
            }
        }
        sayNewNotes();
        if (journal_) note(journal_->sync());
    }

    void finish(engine::SessionState state)
    {
        run.state = state;
        if (run.failure) { // whoever opens the trace is to know why it ends
            const traces::NoteRecord why{"the run failed: " + failureOf(*run.failure).message};
            if (writer_) writer_->write(why);
            (void)recent_.take(why);
        }
        run.slices = recent_.takenSlices();
        run.droppedSteps = recent_.droppedSteps();
        run.gpuPeaks = peaks_.all();
        run.trace = recent_.release();
        if (!journal_) return;
        run.journalBegun = journal_->begun();
        note(journal_->close());
    }

    void say(const std::string& text)
    {
        progress_.clear();
        warn(text);
    }

    LiveRun run;

private:
    // Building the stages leaves nothing of the kind, not even on a GPU, whose kernels have lanes of their own.
    [[nodiscard]] bool isOfAnAction(const traces::Record& record) const
    {
        const auto* slice = std::get_if<traces::SliceRecord>(&record);
        return slice != nullptr && recent_.trace().lane(slice->lane).info().kind == traces::LaneKind::Compute;
    }

    // At once: a run that may not fit into memory could end without another word.
    void sayNewNotes()
    {
        if (!notes_) return;
        for (const std::string& note : recent_.notes()) {
            if (!notesSaid_.insert(note).second) continue;
            say("the run: " + note);
        }
    }

    void hear(const std::string& json)
    {
        Expected<engine::SessionMessage> message = engine::readMessage(json);
        if (!message.ok()) {
            addNote(message.error().in("message of the engine").message);
            return;
        }
        if (const auto* progress = std::get_if<engine::ProgressMessage>(&message.value())) progress_.show(*progress);
        if (auto* failure = std::get_if<engine::FailureMessage>(&message.value()); failure && !run.failure)
            run.failure = std::move(*failure);
        if (auto* result = std::get_if<engine::ResultMessage>(&message.value())) run.result = std::move(result->result);
    }

    // A run may go on for hours: who watches it is told at once that its trace is not kept.
    void note(const Expected<void>& kept)
    {
        if (kept.ok() || run.journalFault) return;
        run.journalFault = kept.error().in("the run's trace is incomplete");
        progress_.clear();
        failed(*run.journalFault);
    }

    void addNote(std::string note) { (void)recent_.take(traces::NoteRecord{std::move(note)}); } // which always fits

    std::size_t slices_;
    traces::RecentTrace recent_;
    traces::GpuPeaks peaks_;
    ProgressLine progress_;
    bool notes_;
    std::optional<JournalFile> journal_;
    std::optional<traces::JournalWriter> writer_;
    std::set<std::string> notesSaid_;
};

} // namespace

Expected<LiveRun> follow(engine::Session& session, const engine::Plan& plan, const FollowOptions& options)
{
    std::optional<JournalFile> journal;
    Expected<void> ready;
    if (!options.journal.empty()) {
        Expected<JournalFile> opened = JournalFile::open(options.journal);
        if (opened.ok()) journal.emplace(std::move(opened).value());
        else ready = opened.error();
    }
    if (options.agree) ready = options.agree(ready); // before any of them starts: it would wait for the others for ever
    if (!ready.ok()) return ready.error();

    const StopOnSignal stopOnSignal;
    if (auto started = session.start(plan); !started.ok()) return started.error();
    Follower follower(options, std::move(journal));
    std::optional<std::chrono::steady_clock::time_point> stopSent;
    bool patienceAsked = false;
    for (;;) {
        // read before the records: once finished, what is then taken is all there is
        const engine::SessionState state = session.state();
        if (session.waitForRecords(engine::finished(state) ? 0ms : 50ms)) follower.take(session.takeRecords());
        else if (engine::finished(state)) {
            follower.finish(state);
            return std::move(follower.run);
        }
        if (stopAsked && !stopSent) {
            session.stop();
            stopSent = std::chrono::steady_clock::now();
        }
        if (stopSent && !patienceAsked && std::chrono::steady_clock::now() - *stopSent > 1s) {
            follower.say("stopping: it waits for the actions that run to end; the same once more ends it at once, and the last of its trace is lost");
            patienceAsked = true;
        }
    }
}

Error failureOf(const engine::FailureMessage& failure)
{
    std::vector<std::string> where;
    const auto add = [&where](const char* thing, const std::optional<int>& number) {
        if (number) where.push_back(fmt::format("{} {}", thing, *number));
    };
    add("step", failure.step);
    add("rank", failure.rank);
    add("stage", failure.stage);
    add("micro-batch", failure.microbatch);
    return Error{where.empty() ? failure.text : fmt::format("{}: {}", fmt::join(where, ", "), failure.text)};
}

} // namespace stagecraft::cli
