// SPDX-License-Identifier: GPL-3.0-or-later
//
// The desktop program. Here alone the environment is read: whether there is a display.
#include "app/desktop/options.h"
#include "app/desktop/plot.h"
#include "app/desktop/render.h"
#include "app/desktop/screenshot.h"
#include "app/desktop/sources.h"
#include "app/keep_freed_memory.h"
#include "traces/base/text.h"
#include "ui/bridge/text.h"
#include "ui/window/log_panel.h"
#include "ui/window/main_window.h"
#include "ui/window/window_actions.h"

#include <QApplication>
#include <QFileInfo>
#include <QSettings>
#include <QTemporaryDir>

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace stagecraft::desktop {
namespace {

constexpr int kFailed = 1;
constexpr const char* kFirstPlan = "gpt-small"; // can be simulated and run on any machine

std::string programName = "stagecraft"; // set once, at the start

void tell(const std::string& text) { std::fprintf(stderr, "%s: %s\n", programName.c_str(), traces::harmless(text).c_str()); }

int fail(const QString& text)
{
    tell(ui::fromQt(text));
    return kFailed;
}

constexpr const char* kNoDisplay = "there is no display to open a window on; draw the window into a file with --screenshot "
                                   "OUT.png, or use stagecraft-cli";

// Qt ends the program with an abort when it cannot open a display that the environment names.
void endWithoutDisplay(QtMsgType type, const QMessageLogContext&, const QString& text)
{
    if (type != QtFatalMsg) return;
    std::fprintf(stderr, "stagecraft: %s\n(%s)\n", kNoDisplay, qPrintable(text));
    std::_Exit(kFailed);
}

QtMessageHandler handlerBefore = nullptr;

// Qt's offscreen platform says for every window with a least size that it cannot tell a window manager of it. There is
// none, so nothing is wrong; all else goes the usual way.
void withoutSizeHints(QtMsgType type, const QMessageLogContext& context, const QString& text)
{
    if (text == QLatin1String("This plugin does not support propagateSizeHints()")) return;
    handlerBefore(type, context, text);
}

bool isSet(const char* name)
{
    const char* value = std::getenv(name);
    return value && *value;
}

std::unique_ptr<QApplication> makeApplication(int& argc, char** argv)
{
    const QtMessageHandler before = qInstallMessageHandler(endWithoutDisplay);
    auto application = std::make_unique<QApplication>(argc, argv);
    qInstallMessageHandler(before);
    if (QGuiApplication::platformName() == QLatin1String("offscreen")) handlerBefore = qInstallMessageHandler(withoutSizeHints);
    QApplication::setApplicationName("stagecraft");
    QApplication::setOrganizationName("stagecraft");
    QApplication::setApplicationDisplayName("Stagecraft");
    QApplication::setApplicationVersion(STAGECRAFT_VERSION);
    return application;
}

// A picture waits for the trace here; the window reads it beside itself, and tells in its log how that went.
traces::Expected<void> openTrace(ui::MainWindow& window, const WindowCommand& command)
{
    const ui::TracePlan itsPlan = command.plan.isEmpty() ? ui::TracePlan::Take : ui::TracePlan::Offer;
    if (command.screenshot.isEmpty()) {
        window.files().open(command.trace, ui::FileKind::Trace, itsPlan);
        return {};
    }
    if (traces::Expected<void> opened = window.workbench().openTrace(command.trace); !opened.ok()) return opened;
    for (const QString& caveat : window.workbench().openedCaveats()) window.log().warn(caveat);
    for (const QString& text : window.workbench().openedInformation()) window.log().note(text);
    window.log().note(window.workbench().meetTracePlan(itsPlan));
    return {};
}

traces::Expected<void> openWhatIsNamed(ui::MainWindow& window, const WindowCommand& command)
{
    ui::Workbench& bench = window.workbench();
    const QString name = command.plan.isEmpty() ? QString(kFirstPlan) : command.plan;
    traces::Expected<engine::Plan> plan = planOf(name);
    if (!plan.ok()) return plan.error();
    const bool file = QFileInfo::exists(name);
    if (!file) bench.document().startFrom(std::move(plan).value());
    else if (auto opened = bench.document().open(name); !opened.ok()) return opened;
    else window.files().recent().add(name);
    if (command.trace.isEmpty() || !command.plan.isEmpty())
        window.log().note(file ? QObject::tr("Opened %1.").arg(name) : QObject::tr("New plan from the preset %1.").arg(name));
    return command.trace.isEmpty() ? traces::Expected<void>{} : openTrace(window, command);
}

// Takes the times of the run over as soon as it is finished.
void useMeasuredTimes(ui::MainWindow& window)
{
    QObject::connect(&window.workbench().run(), &ui::RunController::stateChanged, &window, [&window](engine::SessionState state) {
        if (state != engine::SessionState::Finished) return;
        const traces::Expected<void> used = window.workbench().useMeasuredCosts();
        if (!used.ok()) window.log().problem(ui::toQt(used.error().message));
    });
}

int runWindow(const WindowCommand& command)
{
    const bool picture = !command.screenshot.isEmpty();
    // A picture looks the same whatever the user's layout is, and leaves that as it is.
    const QTemporaryDir scratch;
    std::unique_ptr<QSettings> settings = picture
                                              ? std::make_unique<QSettings>(scratch.filePath("stagecraft.ini"), QSettings::IniFormat)
                                              : std::make_unique<QSettings>();
    ui::MainWindow window(*settings, {.programFolder = QApplication::applicationDirPath(), .theme = command.theme, .dialogs = {}});
    if (picture) window.resize(command.size);
    if (const traces::Expected<void> opened = openWhatIsNamed(window, command); !opened.ok()) {
        if (picture) return fail(ui::toQt(opened.error().message));
        window.log().problem(ui::toQt(opened.error().message));
    }
    window.show();
    if (command.statistics) window.actions().statistics->trigger();
    QWidget* beside = command.show ? &window.explore().present(*command.show) : nullptr;
    if (picture && beside) beside->resize(command.size);
    std::unique_ptr<Screenshot> screenshot;
    if (picture) screenshot = std::make_unique<Screenshot>(window, beside, command);
    if (picture && window.size() != command.size)
        tell("the window cannot be as small as asked for; the picture is " + std::to_string(window.width()) + "x" + std::to_string(window.height()));
    if (command.run) {
        const int steps = window.workbench().document().plan().run.steps;
        if (command.at.step && *command.at.step >= steps)
            return fail(QObject::tr("--screenshot-at step:%1: the plan runs %2, counted from 0").arg(*command.at.step).arg(ui::counted(steps, "step")));
        if (command.useMeasured) useMeasuredTimes(window);
        window.startRun();
        if (picture && !window.workbench().run().active())
            return fail(QObject::tr("the plan cannot be run: %1").arg(window.workbench().whyNotRunnable()));
    }
    return QApplication::exec();
}

int start(int argc, char** argv)
{
    programName = calledName(argc > 0 ? argv[0] : nullptr);
    const auto command = readCommandLine(argc, argv);
    if (const auto* done = std::get_if<Done>(&command)) return done->exitCode;
    const auto* window = std::get_if<WindowCommand>(&command);
    const bool needsDisplay = window && window->screenshot.isEmpty();
    if (!isSet("QT_QPA_PLATFORM")) {
        if (needsDisplay && !isSet("DISPLAY") && !isSet("WAYLAND_DISPLAY")) return fail(kNoDisplay);
        if (!needsDisplay) qputenv("QT_QPA_PLATFORM", "offscreen");
    }
    const std::unique_ptr<QApplication> application = makeApplication(argc, argv);
    if (window) return runWindow(*window);
    const auto* curves = std::get_if<PlotCommand>(&command);
    const traces::Expected<void> drawn = curves ? plot(*curves) : render(std::get<RenderCommand>(command), tell);
    return drawn.ok() ? 0 : fail(ui::toQt(drawn.error().message));
}

} // namespace
} // namespace stagecraft::desktop

int main(int argc, char** argv)
{
    stagecraft::keepFreedMemory();
    return stagecraft::desktop::start(argc, argv);
}
