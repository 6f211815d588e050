// SPDX-License-Identifier: GPL-3.0-or-later
//
// What GPUs the engine has, asked of scripts in its place.
#include "tests/ui/bridge/fake_doctor.h"

#include "ui/bridge/engine_inquiry.h"

#include <QElapsedTimer>
#include <QSignalSpy>
#include <QTest>

#include <gmock/gmock.h>

namespace stagecraft::ui {
namespace {

using testing::AllOf;
using testing::HasSubstr;

EngineMachine machineOf(const char* json)
{
    const traces::Expected<EngineMachine> machine = readEngineMachine(json);
    if (!machine.ok()) throw std::runtime_error(machine.error().message);
    return machine.value();
}

TEST(EngineMachine, HasTheGpusThatTheDoctorLists)
{
    const EngineMachine machine = machineOf(kTwoGpus);
    EXPECT_EQ(machine.noGpus, "");
    ASSERT_EQ(machine.gpus.size(), 2U);
    EXPECT_EQ(machine.gpus[0], (EngineGpu{.name = "NVIDIA H200", .memory = 150119178240, .capability = "9.0"}));
    EXPECT_EQ(gpuLines(machine.gpus).toStdString(), "0: NVIDIA H200, 139.8 GiB, compute capability 9.0\n1: NVIDIA T4, 14.56 GiB");
}

TEST(EngineMachine, SaysWhatKeepsARunFromTheGpus)
{
    EXPECT_EQ(machineOf(kNoDriver).noGpus.toStdString(),
              "No GPU can be used where the engine runs: libcuda.so.1 is not on this machine: no NVIDIA driver");
    const EngineMachine noModule = machineOf(R"({"libtorch": {"found": true}, "cuda": {"found": true},
        "gpus": {"found": true, "disables": "this build has no CUDA module", "list": [{"name": "a", "memory_bytes": 1}]}})");
    EXPECT_EQ(noModule.noGpus, "No GPU can be used where the engine runs: this build has no CUDA module");
    EXPECT_EQ(noModule.gpus.size(), 1U) << "it has one";
    EXPECT_EQ(machineOf(R"({"libtorch": {"found": false, "reason": "no LibTorch"}, "cuda": {"found": true},
        "gpus": {"found": true, "list": [{"name": "a", "memory_bytes": 1}]}})").noGpus,
              "No GPU can be used where the engine runs: no LibTorch");
}

TEST(EngineMachine, IsNotReadFromAnythingElse)
{
    for (const char* json : {"", "Welcome to gpu-host!\n{}", "[]", "{}", R"({"gpus": 3})", R"({"gpus": {"found": true, "version": "1: of an older version"}})"})
        EXPECT_FALSE(readEngineMachine(json).ok()) << json;
}

class EngineInquiryTest : public testing::Test {
protected:
    void ask(EngineInquiry& inquiry) { inquiry.ask(doctorCommand(doctor.command(), {})); }
    std::string answerOf(const QByteArray& script)
    {
        doctor.run(script);
        EngineInquiry inquiry;
        ask(inquiry);
        EXPECT_TRUE(QTest::qWaitFor([&] { return !inquiry.asking(); }));
        EXPECT_TRUE(inquiry.machine().gpus.empty());
        return inquiry.machine().noGpus.toStdString();
    }

    FakeDoctor doctor;
};

TEST_F(EngineInquiryTest, AsksTheEngineCommandOnceAndTells)
{
    doctor.answer(kTwoGpus);
    EngineInquiry inquiry;
    EXPECT_NE(inquiry.machine().noGpus, "") << "nothing is known yet, and that is a reason too";
    QSignalSpy told(&inquiry, &EngineInquiry::told);
    ask(inquiry);
    EXPECT_THAT(inquiry.machine().noGpus.toStdString(), HasSubstr("is being asked"));
    ask(inquiry);
    ASSERT_TRUE(QTest::qWaitFor([&] { return !inquiry.asking(); }));
    EXPECT_EQ(inquiry.machine(), machineOf(kTwoGpus));
    EXPECT_EQ(told.count(), 2) << "being asked, and the answer";
    ask(inquiry);
    EXPECT_FALSE(inquiry.asking());
    EXPECT_EQ(doctor.asked(), "doctor --json\n");
}

TEST_F(EngineInquiryTest, AsksAgainWhereThereWasNoGpu)
{
    doctor.answer(kNoDriver);
    EngineInquiry inquiry;
    ask(inquiry);
    ASSERT_TRUE(QTest::qWaitFor([&] { return !inquiry.asking(); }));
    doctor.answer(kTwoGpus);
    ask(inquiry);
    ASSERT_TRUE(QTest::qWaitFor([&] { return inquiry.machine().noGpus.isEmpty(); }));
}

TEST_F(EngineInquiryTest, TakesAFailureForAReason)
{
    EXPECT_THAT(answerOf("echo 'error: no such verb' >&2; exit 2"), HasSubstr("ended with exit status 2: error: no such verb"));
    EXPECT_THAT(answerOf("kill -9 $$"), HasSubstr("was killed by signal 9 (Killed)"));
    EXPECT_THAT(answerOf("echo 'Welcome to gpu-host!'; echo '{}'"), AllOf(HasSubstr("doctor --json\" answers cannot be read"), HasSubstr("login script")));
    EXPECT_THAT(answerOf("exec yes"), HasSubstr("writes on and on"));
    EngineInquiry nowhere;
    nowhere.ask(doctorCommand("no-such-engine --here", {}));
    ASSERT_TRUE(QTest::qWaitFor([&] { return !nowhere.asking(); }));
    EXPECT_THAT(nowhere.machine().noGpus.toStdString(), HasSubstr("\"no-such-engine --here doctor --json\" could not be started"));
}

TEST_F(EngineInquiryTest, GivesUpOnOneThatDoesNotAnswer)
{
    doctor.run("exec sleep 60");
    EngineInquiry inquiry(nullptr, std::chrono::milliseconds(300));
    ask(inquiry);
    ASSERT_TRUE(QTest::qWaitFor([&] { return !inquiry.asking(); }));
    EXPECT_THAT(inquiry.machine().noGpus.toStdString(), HasSubstr("has not answered within 0.3 s"));
}

TEST_F(EngineInquiryTest, DropsTheAnswerToAnEarlierQuestion)
{
    doctor.run("exec sleep 60");
    FakeDoctor other;
    other.answer(kTwoGpus);
    EngineInquiry inquiry;
    ask(inquiry);
    inquiry.ask(doctorCommand(other.command(), {}));
    ASSERT_TRUE(QTest::qWaitFor([&] { return !inquiry.asking(); }));
    EXPECT_EQ(inquiry.machine().gpus.size(), 2U);
    inquiry.forget();
    EXPECT_TRUE(inquiry.machine().gpus.empty());
    EXPECT_THAT(inquiry.machine().noGpus.toStdString(), HasSubstr("when its command is complete"));

    FakeDoctor third;
    third.answer(kNoDriver);
    QObject::connect(&inquiry, &EngineInquiry::told, &inquiry, [&] { EXPECT_TRUE(inquiry.machine().gpus.empty()); });
    inquiry.ask(doctorCommand(other.command(), {}));
    inquiry.forget();
    inquiry.ask(doctorCommand(third.command(), {}));
    ASSERT_TRUE(QTest::qWaitFor([&] { return !inquiry.asking(); }));
    EXPECT_EQ(inquiry.machine(), machineOf(kNoDriver)) << "nobody waits for the other's answer any more";
}

TEST_F(EngineInquiryTest, BlocksNeitherWhileItAsksNorWhenItGoes)
{
    doctor.run("exec sleep 60");
    QElapsedTimer clock;
    clock.start();
    {
        EngineInquiry inquiry;
        ask(inquiry);
        EXPECT_LT(clock.elapsed(), 5000);
        ASSERT_TRUE(QTest::qWaitFor([&] { return !doctor.asked().isEmpty(); }));
        clock.restart();
    }
    EXPECT_LT(clock.elapsed(), 5000);
}

} // namespace
} // namespace stagecraft::ui
