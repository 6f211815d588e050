// SPDX-License-Identifier: Apache-2.0
#include "engine/transport/process_group.h"

#include <algorithm>
#include <charconv>
#include <thread>

namespace stagecraft::runtime {

namespace {

// Messages to one that has died fail; its life line tells who it was, if one waits a little.
constexpr std::chrono::milliseconds kNamingStep{10};
constexpr int kNaming = 30;

constexpr std::string_view kLeaving = "the end";

// What one says about what: a line, and the rest.
struct Said {
    std::string about;
    std::string text;
};

std::string written(std::string_view about, std::string_view text)
{
    std::string mail(about);
    mail += '\n';
    mail += text;
    return mail;
}

Said readSaid(const std::string& mail)
{
    const std::size_t end = mail.find('\n');
    return {mail.substr(0, end), mail.substr(end + 1)};
}

// What one has, or why not.
std::string told(const Expected<std::string>& own) { return own.ok() ? "+" + own.value() : "-" + own.error().message; }

Expected<std::string> heard(const std::string& text)
{
    if (text.front() == '-') return Error{text.substr(1)};
    return text.substr(1);
}

// Several texts as one: of each its length, then itself.
std::string packed(const std::vector<std::string>& texts)
{
    std::string all;
    for (const std::string& text : texts) all += std::to_string(text.size()) + ':' + text;
    return all;
}

std::vector<std::string> unpacked(std::string_view all)
{
    std::vector<std::string> texts;
    while (!all.empty()) {
        std::size_t length = 0;
        const char* const colon = std::from_chars(all.data(), all.data() + all.size(), length).ptr;
        all.remove_prefix(static_cast<std::size_t>(colon + 1 - all.data()));
        texts.emplace_back(all.substr(0, length));
        all.remove_prefix(length);
    }
    return texts;
}

std::string apart(int rank, std::string_view about, std::string_view first)
{
    return "rank " + std::to_string(rank) + " has come to " + std::string(about) + ", and rank 0 to " + std::string(first) + ": they cannot go on together";
}

} // namespace

Expected<std::unique_ptr<ProcessGroup>> ProcessGroup::join(std::unique_ptr<MessagePort> port, const Member& self, int together, Launcher launcher)
{
    std::unique_ptr<ProcessGroup> group(new ProcessGroup(std::move(port), together, launcher));
    group->meet(self);
    return group;
}

ProcessGroup::ProcessGroup(std::unique_ptr<MessagePort> port, int together, Launcher launcher)
    : port_(std::move(port)), launcher_(launcher), members_(static_cast<std::size_t>(port_->size())),
      office_(std::make_unique<PostOffice>(*port_, patienceFor(together), [this](std::chrono::microseconds time, PostOffice::Health health) { lookAfterOthers(time, health); }))
{
}

// On the office's thread.
void ProcessGroup::lookAfterOthers(std::chrono::microseconds time, PostOffice::Health health)
{
    const auto watch = [this](std::chrono::microseconds part) {
        if (LifeLine* line = watched_.load()) line->watch(part, [this](int rank) { noteLoss(rank); });
        else std::this_thread::sleep_for(part);
    };
    watch(time);
    if (lost() >= 0 || health == PostOffice::Health::Well) return;
    for (int i = 0; i < kNaming && lost() < 0; ++i) watch(kNamingStep);
    noteLoss(size());
}

ProcessGroup::~ProcessGroup() { office_.reset(); }

void ProcessGroup::meet(const Member& self)
{
    members_[static_cast<std::size_t>(rank())] = self;
    if (rank() == 0) {
        line_ = std::make_unique<LifeLine>(LifeLine::Listen{});
        watched_.store(line_.get());
    }
    office_->sendToAll(MailKind::Hello, self.host + "\n" + self.clock + "\n" + (line_ ? line_->invitation() : ""));
    for (int r = 0; r < size(); ++r) {
        if (r == rank()) continue;
        const std::optional<Mail> hello = await(MailKind::Hello, r);
        if (!hello) return;
        const std::size_t first = hello->text.find('\n');
        const std::size_t second = hello->text.find('\n', first + 1);
        members_[static_cast<std::size_t>(r)] = {hello->text.substr(0, first), hello->text.substr(first + 1, second - first - 1)};
        if (r != 0) continue;
        line_ = std::make_unique<LifeLine>(LifeLine::Join{hello->text.substr(second + 1), rank()});
        watched_.store(line_.get());
    }
}

bool ProcessGroup::onOneHost() const
{
    return std::all_of(members_.begin(), members_.end(), [&](const Member& m) { return m.host == members_.front().host; });
}

int ProcessGroup::placeOnHost() const
{
    const std::string& host = member(rank()).host;
    return static_cast<int>(std::count_if(members_.begin(), members_.begin() + rank(), [&](const Member& each) { return each.host == host; }));
}

Error ProcessGroup::lossOf(int rank) const
{
    if (rank == size()) return Error{"the messages between the ranks broke down: " + office_->breakdown()};
    return Error{"rank " + std::to_string(rank) + " died: its process on " + member(rank).host +
                 " ended without a word; it was killed, or there was not enough memory for it"};
}

void ProcessGroup::noteLoss(int rank)
{
    int none = -1;
    if (!lost_.compare_exchange_strong(none, rank)) return;
    const std::lock_guard lock(mutex_);
    if (tell_) tell_(rank);
}

void ProcessGroup::onLoss(std::function<void(int rank)> tell)
{
    const std::lock_guard lock(mutex_);
    tell_ = std::move(tell);
    if (tell_ && lost() >= 0) tell_(lost());
}

std::optional<Mail> ProcessGroup::await(MailKind kind, int from)
{
    std::optional<Mail> mail;
    office_->waitUntil([&] { return (mail = office_->find(kind, from)).has_value() || lost() >= 0; });
    return mail;
}

Expected<void> ProcessGroup::agree(std::string_view about, const Expected<void>& own)
{
    const auto all = exchange(about, own.ok() ? Expected<std::string>("") : own.error());
    return all.ok() ? Expected<void>{} : all.error();
}

Expected<std::vector<std::string>> ProcessGroup::exchange(std::string_view about, const Expected<std::string>& own)
{
    if (rank() != 0) {
        office_->send(0, MailKind::Agreement, written(about, told(own)));
        const std::optional<Mail> mail = await(MailKind::Agreement, 0);
        if (!mail) return lossOf(lost());
        const Said theirs = readSaid(mail->text);
        if (theirs.about != about) return Error{apart(rank(), about, theirs.about)};
        const Expected<std::string> all = heard(theirs.text);
        if (!all.ok()) return all.error();
        return unpacked(all.value());
    }
    std::vector<std::string> all;
    Expected<std::string> common = own;
    if (own.ok()) all.push_back(own.value());
    for (int r = 1; r < size(); ++r) {
        const std::optional<Mail> mail = await(MailKind::Agreement, r);
        if (!mail) return lossOf(lost());
        if (!common.ok()) continue;
        const Said theirs = readSaid(mail->text);
        if (theirs.about != about) {
            common = Error{apart(r, theirs.about, about)};
        } else if (Expected<std::string> one = heard(theirs.text); one.ok()) {
            all.push_back(std::move(one).value());
        } else {
            common = one.error().in("rank " + std::to_string(r));
        }
    }
    if (common.ok()) common = packed(all);
    office_->sendToAll(MailKind::Agreement, written(about, told(common)));
    if (!common.ok()) return common.error();
    return all;
}

Expected<std::string> ProcessGroup::fromFirst(std::string_view about, const Expected<std::string>& own)
{
    if (rank() == 0) {
        office_->sendToAll(MailKind::Agreement, written(about, told(own)));
        return own;
    }
    const std::optional<Mail> mail = await(MailKind::Agreement, 0);
    if (!mail) return lossOf(lost());
    const Said theirs = readSaid(mail->text);
    if (theirs.about != about) return Error{apart(rank(), about, theirs.about)};
    return heard(theirs.text);
}

void ProcessGroup::leave()
{
    if (lost() >= 0) return;
    const auto sent = [&] { return office_->allSent() || lost() >= 0; };
    office_->waitUntil(sent); // as long as the others take it
    // They have nothing more for this one. Who is elsewhere is told that he cannot go on, and comes here as well.
    while (!agree(kLeaving, {}).ok() && lost() < 0) {}
    office_->waitUntil(sent);
    if (line_) line_->leave();
    if (lost() >= 0) return;
    office_.reset(); // nobody else calls the port
    port_->finish();
}

} // namespace stagecraft::runtime
