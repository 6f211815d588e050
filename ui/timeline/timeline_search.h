// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a line of text finds among the blocks of a scene (traces::SliceQuery), kept up to date as its sources change and
// grow. A few slices are searched at once, so that the number of matches follows each letter that is typed; many of them
// beside the window. Of a trace that a run adds to, only what was added is looked at.
//
// Matches have an order: source after source as they lie in the timeline, within one by the time of their begin.
//
//   TimelineSearch search(scene);
//   search.setText("stage 2 send");
//   connect(&search, &TimelineSearch::changed, ...);           // count(), busy() or the places are others
//   const TimelineItem item = search.next(selected, Direction::On, leftEdgeOfTheView);
//   search.placeOf(item)                                        // 2: the third of count()
#pragma once

#include "ui/bridge/background_job.h"
#include "ui/timeline/item_neighbours.h"
#include "ui/timeline/timeline_scene.h"

#include "traces/analysis/slice_matches.h"

#include <QObject>
#include <QString>

#include <memory>
#include <optional>
#include <vector>

namespace stagecraft::ui {

class TimelineSearch : public QObject {
    Q_OBJECT
public:
    // So many slices are searched within a few milliseconds.
    static constexpr std::size_t kDirectSlices = 200'000;

    // The scene must outlive the search.
    explicit TimelineSearch(const TimelineScene& scene, QObject* parent = nullptr);
    ~TimelineSearch() override;

    void setText(const QString& text); // empty: finds nothing and costs nothing
    [[nodiscard]] const QString& text() const { return text_; }
    [[nodiscard]] const QString& problem() const { return problem_; } // why the text cannot be searched for; empty: it can
    [[nodiscard]] bool busy() const { return job_ && job_->busy(); }  // not all has been looked at yet
    [[nodiscard]] std::size_t count() const;

    // Place of an item among the matches, from 0; nullopt where it is none.
    [[nodiscard]] std::optional<std::size_t> placeOf(const TimelineItem& item) const;
    // The match next to an item; where there is none, the one next to a moment of shown time. After the last comes the
    // first.
    [[nodiscard]] TimelineItem next(const TimelineItem& item, Direction direction, traces::TimeNs shown) const;

signals:
    void changed();

private:
    struct Found {
        std::shared_ptr<const traces::Trace> trace;
        traces::SliceMatches matches;
    };

    void refresh(); // looks at what was not looked at yet
    void refreshSources();
    void take(std::vector<Found> found);
    [[nodiscard]] bool searchesAllRows() const; // of the scene as it is
    [[nodiscard]] std::size_t missing() const;  // slices that were not looked at
    [[nodiscard]] int sourceOf(const Found& found) const;
    [[nodiscard]] TimelineItem itemOf(const Found& found, traces::SliceRef slice, int segment) const;

    const TimelineScene& scene_;
    QString text_;
    QString problem_;
    std::optional<traces::SliceQuery> query_;                // nullopt: nothing to look for
    std::vector<Found> found_;                               // by source, of those that have rows
    std::unique_ptr<BackgroundJob<std::vector<Found>>> job_; // made when first needed
};

} // namespace stagecraft::ui
