// SPDX-License-Identifier: GPL-3.0-or-later
//
// A field for the path of a file or a folder, to type or to choose in a dialog. Nobody looks whether it is there: it may be one of
// another machine, where the engine runs.
//
//   auto* folder = new PathField(PathField::Kind::Folder, "checkpoint");
//   addPath(*form, tr("Folder"), *folder, tr("..."));
//   folder->edit().edited = [this](const std::string& path) { ... };
#pragma once

#include "ui/lab/value_edit.h"

#include <QWidget>

#include <functional>
#include <string>

class QFormLayout;
class QPushButton;

namespace stagecraft::ui {

class PathField : public QWidget {
    Q_OBJECT
public:
    enum class Kind { File, Folder };
    // The field is called `name`Field, and its button `name`Browse.
    PathField(Kind kind, const QString& name, QWidget* parent = nullptr);

    // Asks for a path, with the present one; empty: the user changed their mind. A file dialog, unless another is set.
    using Chooser = std::function<QString(const QString& title, const QString& present)>;
    void setChooser(Chooser chooser) { chooser_ = std::move(chooser); }

    [[nodiscard]] ValueEdit<std::string>& edit() { return *edit_; }
    [[nodiscard]] QPushButton& button() { return *button_; }
    void setValue(const std::string& path) { edit_->setValue(path); }
    void setAvailable(bool available, const QString& reasonIfNot); // as setCapability() does it

private:
    void choose();

    ValueEdit<std::string>* edit_;
    QPushButton* button_;
    Chooser chooser_;
};

// A row for the label and one for the field: a path is long.
void addPath(QFormLayout& form, const QString& label, PathField& field, const QString& tip);

} // namespace stagecraft::ui
