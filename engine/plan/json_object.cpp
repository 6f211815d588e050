// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/json_object.h"

#include "traces/base/text.h"
#include "traces/base/utf8.h"

#include <vector>

namespace stagecraft::engine {
namespace {

constexpr int kMostDepth = 64;

// What the parser's callback finds wrong; it leaves the parser as an exception of ours.
struct Refused {
    std::string what;
};

class Watch {
public:
    bool operator()(int depth, Json::parse_event_t event, Json& parsed)
    {
        using Event = Json::parse_event_t;
        if (depth > kMostDepth) throw Refused{fmt::format("it is nested deeper than {} levels; no file of this kind is", kMostDepth)};
        if (event == Event::object_start) keys_.emplace_back();
        else if (event == Event::object_end) keys_.pop_back();
        else if (event == Event::key && !keys_.back().insert(parsed.get<std::string>()).second)
            throw Refused{fmt::format("the key \"{}\" stands twice in one object; keep one", parsed.get<std::string>())};
        return true;
    }

private:
    std::vector<std::set<std::string>> keys_; // of each open object
};

std::string placeOf(std::string_view text, std::size_t byte)
{
    std::size_t line = 1;
    std::size_t column = 1;
    for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
        ++column;
        if (text[i] != '\n') continue;
        ++line;
        column = 1;
    }
    return fmt::format("line {}, column {}", line, column);
}

// What the parser says without its identifiers. It repeats what it read last, which may be half of a character or all of a long text:
// the place says enough there.
std::string wordsOf(const Json::exception& e)
{
    constexpr std::size_t kMostRepeated = 40;
    std::string_view words = e.what();
    for (const std::string_view mark : {" - ", "] "})
        if (const std::size_t at = words.find(mark); at != std::string_view::npos) {
            words.remove_prefix(at + mark.size());
            break;
        }
    const std::size_t repeated = words.find("; last read: ");
    if (repeated != std::string_view::npos && (words.size() - repeated > kMostRepeated || traces::firstBrokenByte(words) != std::string_view::npos))
        words = words.substr(0, repeated);
    return std::string(words);
}

traces::Error parseError(std::string_view text, const Json::parse_error& e)
{
    if (traces::trimmed(text).empty()) return traces::Error{"it is empty, where a JSON object { ... } should be"};
    constexpr std::size_t kLongestCharacter = 4;
    const bool atEnd = e.byte > text.size();
    const std::size_t broken = traces::firstBrokenByte(text);
    const bool cutCharacter = atEnd && broken != std::string_view::npos && text.size() - broken < kLongestCharacter;
    if (broken < e.byte && !cutCharacter)
        return traces::Error{fmt::format("it is not UTF-8 (byte {}, {}); save it in that encoding", broken, placeOf(text, broken + 1))};
    if (atEnd) return traces::Error{fmt::format("it ends too early ({}); is it cut off?", placeOf(text, text.size()))};
    return traces::Error{fmt::format("{}: this is not JSON ({})", placeOf(text, e.byte), wordsOf(e))};
}

} // namespace

traces::Expected<Json> parseJson(std::string_view text)
{
    try {
        return Json::parse(text, Watch{});
    } catch (const Refused& refused) {
        return traces::Error{refused.what};
    } catch (const Json::parse_error& e) {
        return parseError(text, e);
    } catch (const Json::exception& e) { // such as a number that no type holds
        return traces::Error{fmt::format("this is JSON that cannot be used ({})", wordsOf(e))};
    }
}

} // namespace stagecraft::engine
