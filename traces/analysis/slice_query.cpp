// SPDX-License-Identifier: Apache-2.0
#include "traces/analysis/slice_query.h"

#include "traces/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace stagecraft::traces {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

constexpr KindSet setOf(ActionKind kind) { return KindSet{1} << static_cast<int>(kind); }

// What else people call it.
std::string_view otherNames(ActionKind kind)
{
    switch (kind) {
    case ActionKind::InputGrad: return "backward dgrad";
    case ActionKind::WeightGrad: return "backward wgrad";
    case ActionKind::SendForward:
    case ActionKind::SendBackward: return "transfer hand-off";
    case ActionKind::RecvForward:
    case ActionKind::RecvBackward: return "receive transfer hand-off";
    case ActionKind::AllReduce: return "allreduce";
    default: return "";
    }
}

// All words for a kind, in lower case. A pair goes by that it is one: its parts are found by themselves.
std::string wordsFor(ActionKind kind)
{
    if (kind == ActionKind::Overlap) return "overlapped overlap_f_b pair";
    std::string words(kindName(kind));
    words.append(" ").append(kindText(kind)).append(" ").append(otherNames(kind));
    return lowered(std::move(words));
}

KindSet kindsWith(std::string_view word)
{
    KindSet kinds = 0;
    for (int i = 1; i < kActionKindCount; ++i) { // 0 is None
        const auto kind = static_cast<ActionKind>(i);
        if (wordsFor(kind).find(word) != std::string::npos) kinds |= setOf(kind);
    }
    return kinds;
}

// Takes a leading number off `text`.
std::optional<std::int32_t> takeNumber(std::string_view& text)
{
    std::int32_t number = 0;
    if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

// "3" or "3-7".
std::optional<NumberRange> rangeIn(std::string_view text)
{
    const auto first = takeNumber(text);
    if (!first) return std::nullopt;
    if (text.empty()) return NumberRange{*first, *first};
    if (text.front() != '-') return std::nullopt;
    text.remove_prefix(1);
    const auto last = takeNumber(text);
    if (!last || !text.empty()) return std::nullopt;
    return NumberRange{std::min(*first, *last), std::max(*first, *last)};
}

// Longer ones first where one begins with another.
constexpr std::array<std::string_view, 11> kKeywords{
    "stages", "stage", "ranks", "rank", "micro-batches", "micro-batch", "microbatches", "microbatch", "mb", "steps", "step"};

std::string_view takeTerm(std::string_view& text)
{
    text = trimmed(text);
    const std::string_view term = text.substr(0, text.find_first_of(kBlanks));
    text.remove_prefix(term.size());
    return term;
}

} // namespace

bool LaneQuery::matchesWork(const Work& work, ActionKind pair) const
{
    const KindSet own = setOf(work.kind) | setOf(pair);
    for (const KindSet kinds : kinds_)
        if ((kinds & own) == 0) return false;
    if (!stages_.contains(work.stage.value) || !microbatches_.contains(work.microbatch.value)) return false;
    if (flow_ && *flow_ != work.flow) return false;
    return std::all_of(either_.begin(), either_.end(), [&](const NumberRange& range) {
        return range.contains(work.stage.value) || range.contains(work.microbatch.value);
    });
}

bool LaneQuery::matchesName(std::string_view text) const
{
    if (onlyActions_) return false;
    if (words_.empty()) return true;
    const std::string name = lowered(std::string(text));
    return std::all_of(words_.begin(), words_.end(),
                       [&](const std::string& word) { return name.find(word) != std::string::npos; });
}

Expected<SliceQuery> SliceQuery::parse(std::string_view text)
{
    SliceQuery query;
    for (std::string_view raw = takeTerm(text); !raw.empty(); raw = takeTerm(text)) {
        const std::string term = lowered(std::string(raw));
        const auto keyword =
            std::find_if(kKeywords.begin(), kKeywords.end(), [&](std::string_view word) { return term.starts_with(word); });
        if (keyword == kKeywords.end()) {
            query.addTerm(term);
            continue;
        }
        std::string_view rest = std::string_view(term).substr(keyword->size());
        if (rest.starts_with(':') || rest.starts_with('=')) rest.remove_prefix(1);
        else if (!rest.empty() && !rangeIn(rest)) { // another word that begins like it
            query.addTerm(term);
            continue;
        }
        if (rest.empty()) rest = takeTerm(text);
        const auto range = rangeIn(rest);
        if (!range)
            return Error{"after \"" + std::string(*keyword) + "\" comes a number, as in \"" + std::string(*keyword) +
                         " 2\""};
        query.rangeOf(*keyword)->cut(*range);
        query.onLanes_ = true;
    }
    return query;
}

NumberRange* SliceQuery::rangeOf(std::string_view keyword)
{
    if (keyword.starts_with("rank")) return &ranks_;
    if (keyword.starts_with("step")) return &query_.steps_;
    query_.onlyActions_ = true;
    return keyword.starts_with("stage") ? &query_.stages_ : &query_.microbatches_;
}

void SliceQuery::addTerm(std::string_view term)
{
    Word word{std::string(term)};
    if (!addAction(word.text) && !addNumber(term)) word.kinds = kindsWith(term);
    words_.push_back(std::move(word));
}

bool SliceQuery::addNumber(std::string_view term)
{
    const auto range = rangeIn(term);
    if (range) query_.either_.push_back(*range);
    return range.has_value();
}

// The text form of an action, any of its numbers left out.
bool SliceQuery::addAction(const std::string& term)
{
    if (term.starts_with('(')) {
        // The text form has its kinds in capitals, and d and u, the directions, small.
        std::string cell = term;
        for (std::size_t i = 0; i < cell.size(); ++i) {
            const bool direction = i > 0 && (cell[i - 1] == '(' || cell[i - 1] == ';');
            if (!direction && cell[i] >= 'a' && cell[i] <= 'z') cell[i] = static_cast<char>(cell[i] - 32);
        }
        const Expected<Action> pair = parseAction(cell);
        if (!pair.ok()) return false;
        if (query_.exact_ && *query_.exact_ != pair.value()) query_.kinds_.push_back(0); // two pairs at once
        query_.exact_ = pair.value();
        return true;
    }
    std::string_view rest = term;
    std::optional<Flow> flow;
    if (rest.starts_with('d') || rest.starts_with('u')) {
        flow = rest.front() == 'd' ? Flow::Down : Flow::Up;
        rest.remove_prefix(1);
    }
    const auto stage = takeNumber(rest);
    if (flow && !stage) return false; // a word that begins with the letter
    const std::size_t letters = std::min(rest.find_first_of("0123456789"), rest.size());
    const std::string kindWord = lowered(std::string(rest.substr(0, letters)));
    rest.remove_prefix(letters);
    const auto microbatch = takeNumber(rest);
    if (kindWord.empty() || !rest.empty()) return false;
    for (int i = 1; i < kActionKindCount; ++i) {
        const auto kind = static_cast<ActionKind>(i);
        if (lowered(std::string(kindText(kind))) != kindWord) continue;
        query_.kinds_.push_back(setOf(kind));
        if (stage) query_.stages_.cut({*stage, *stage});
        if (microbatch) query_.microbatches_.cut({*microbatch, *microbatch});
        if (flow) query_.flow_ = flow;
        return true;
    }
    return false;
}

LaneQuery SliceQuery::on(const LaneInfo& lane) const
{
    LaneQuery query = query_;
    query.any_ = !empty() && ranks_.contains(lane.rank.value);
    // Only such rows have a name that says what lies on them.
    const std::string name = lane.kind == LaneKind::Stream ? lowered(lane.name) : std::string();
    for (const Word& word : words_) {
        if (name.find(word.text) != std::string::npos) continue;
        if (word.kinds != kAllKinds) query.kinds_.push_back(word.kinds);
        query.words_.push_back(word.text);
    }
    return query;
}

} // namespace stagecraft::traces
