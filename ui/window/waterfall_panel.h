// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where the step's time went, as bars: what is simulated, and beside it the step of the other trace. Each takes several
// simulations, so they are worked out beside the window, and only while the panel is seen.
#pragma once

#include "engine/explain/waterfall.h"
#include "ui/bridge/background_job.h"
#include "ui/theme/theme.h"

#include <QFont>
#include <QWidget>

#include <memory>
#include <optional>
#include <vector>

namespace stagecraft::ui {

class Workbench;

// One column of bars; an error takes their place.
struct WaterfallColumn {
    QString title; // "simulated", "measured, step 2"
    std::optional<engine::Waterfall> waterfall;
    QString problem;
};

class WaterfallPanel : public QWidget {
    Q_OBJECT
public:
    // The workbench must outlive the panel.
    explicit WaterfallPanel(Workbench& workbench, QWidget* parent = nullptr);

    void setTheme(const Theme& theme);
    [[nodiscard]] const std::vector<WaterfallColumn>& columns() const { return columns_; }
    [[nodiscard]] bool busy() const { return job_.busy(); }

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

public slots:
    void refresh(); // other sources, another plan

signals:
    void pressed(); // by a mouse: it has no keys of its own

protected:
    void paintEvent(QPaintEvent* event) override;
    void showEvent(QShowEvent* event) override;
    bool event(QEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;

private:
    void start();
    void take(std::vector<WaterfallColumn> columns);
    [[nodiscard]] double rowHeight() const;
    [[nodiscard]] QFont rowFont() const;
    void paintColumn(QPainter& painter, const WaterfallColumn& column, const QRectF& area, bool withNames) const;
    [[nodiscard]] double namesWidth() const;

    Workbench& workbench_;
    Theme theme_;
    std::vector<WaterfallColumn> columns_;
    bool outdated_ = true;
    BackgroundJob<std::vector<WaterfallColumn>> job_;
};

} // namespace stagecraft::ui
