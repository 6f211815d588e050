// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/window/file_kind.h"

#include "engine/plan/plan_json.h"

#include <QFile>
#include <QTemporaryDir>

#include <gtest/gtest.h>

namespace stagecraft::ui {
namespace {

class FileKindTest : public testing::Test {
protected:
    // Judged with either hint: nullopt where the hint decides.
    std::optional<FileKind> kindOf(const char* name, const QByteArray& content)
    {
        const QString file = folder.filePath(name);
        QFile out(file);
        EXPECT_TRUE(out.open(QIODevice::WriteOnly));
        out.write(content);
        out.close();
        const FileKind kind = fileKind(file, FileKind::Plan);
        return kind == fileKind(file, FileKind::Trace) ? std::optional(kind) : std::nullopt;
    }
    QTemporaryDir folder;
};

TEST_F(FileKindTest, KnowsAPlanByItsKeysWhateverItsName)
{
    for (const engine::PresetPlan& preset : engine::presetPlans())
        EXPECT_EQ(kindOf("mine.json", QByteArray::fromStdString(preset.json)), FileKind::Plan) << preset.name;
    EXPECT_EQ(kindOf("mine.txt", R"({"name": "\"traceEvents\": ", "pipeline": {"schedule": "1f1b"}})"), FileKind::Plan);
}

TEST_F(FileKindTest, KnowsATraceByItsKeysAndFirstBytes)
{
    EXPECT_EQ(kindOf("a.json", R"({"otherData": {"plan": "x", "pipeline": 1}, "traceEvents": [)"), FileKind::Trace) << "cut off";
    EXPECT_EQ(kindOf("a.plan.json", R"({"schemaVersion": 1, "traceEvents": []})"), FileKind::Trace) << "in spite of its name";
    EXPECT_EQ(kindOf("a.json", R"([{"ph": "X", "name": "pipeline"}])"), FileKind::Trace);
    EXPECT_EQ(kindOf("noname", "STRACE1\n"), FileKind::Trace);
    EXPECT_EQ(kindOf("noname", "\x1f\x8b\x08"), FileKind::Trace);
}

TEST_F(FileKindTest, GoesByTheNameAndThenByWhatWasAskedFor)
{
    EXPECT_EQ(kindOf("broken.plan.json", "{"), FileKind::Plan);
    EXPECT_EQ(kindOf("table.csv", "step,rank"), FileKind::Trace);
    EXPECT_EQ(kindOf("something.json", "{}"), std::nullopt);
    EXPECT_EQ(fileKind(folder.filePath("missing.strace"), FileKind::Plan), FileKind::Trace);
}

} // namespace
} // namespace stagecraft::ui
