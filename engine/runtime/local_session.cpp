// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/local_session.h"

#include "engine/runtime/run.h"
#include "engine/runtime/run_messages.h"
#include "engine/transport/process_group.h"

#include <exception>
#include <system_error>

namespace stagecraft::runtime {

using namespace engine;

namespace {

class LocalSession final : public Session {
public:
    explicit LocalSession(LocalSessionOptions options) : options_(options) {}

    Expected<void> start(const Plan& plan) override
    {
        if (run_ && !finished(state_.load()))
            return Error{"a run is going on: stop it first, or wait until it has ended"};
        try {
            Expected<RunnablePlan> runnable = makeRunnable(plan, options_.memory ? *options_.memory : hostMemory(), options_.group);
            // what keeps one process from it keeps all
            if (options_.group != nullptr && plan.run.mode == RunMode::Processes) {
                const Expected<void> all = options_.group->agree(runnable.ok() ? Expected<void>{} : runnable.error());
                if (!all.ok()) return all.error();
            }
            if (!runnable.ok()) return runnable.error();
            run_.reset();
            state_.store(SessionState::Idle);
            run_ = std::make_unique<Run>(std::move(runnable).value(), options_, inbox_, state_);
            return {};
        } catch (const std::system_error& error) {
            state_.store(SessionState::Idle);
            return Error{threadFailure("the run's controller", error.code().message()).text};
        } catch (const std::exception& error) {
            state_.store(SessionState::Idle);
            return Error{std::string("the run cannot start: ") + error.what()};
        }
    }

    void pause() override
    {
        if (live()) run_->pause();
    }
    void resume() override
    {
        if (live()) run_->resume();
    }
    void stop() override
    {
        if (run_) run_->stop();
    }

    void trouble(const StageTrouble& trouble) override
    {
        if (live()) run_->trouble().set(trouble);
    }

    [[nodiscard]] SessionState state() const override { return state_.load(); }
    std::vector<traces::Record> takeRecords() override { return inbox_.take(); }
    bool waitForRecords(std::chrono::milliseconds timeout) override { return inbox_.waitFor(timeout); }

private:
    [[nodiscard]] bool live() const { return run_ && !finished(state_.load()); }

    LocalSessionOptions options_;
    RecordInbox inbox_;
    std::atomic<SessionState> state_{SessionState::Idle};
    std::unique_ptr<Run> run_; // last: it writes to the others until it is gone
};

} // namespace

std::unique_ptr<Session> makeLocalSession(LocalSessionOptions options)
{
    return std::make_unique<LocalSession>(options);
}

} // namespace stagecraft::runtime
