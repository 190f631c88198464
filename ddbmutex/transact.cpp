#include "transact.hpp"

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <cstddef>
#include <vector>

#include "../sigv4/service.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

namespace {

// Of the parts of a transaction, without ours.
constexpr int kMostWrites = 99;

// Arrays and objects within each other.  What DynamoDB takes has 32 levels of
// its own lists and maps, of two of JSON each, and a few more around them.
constexpr int kDeepest = 100;

constexpr std::string_view kNoCondition = "ConditionalCheckFailed";

// Hears the text's tokens, and counts the objects of the outermost array.  Each
// member tells whether to go on.
class Outline {
 public:
  bool StartArray() { return open(true); }
  bool EndArray(rapidjson::SizeType) { return close(); }
  bool StartObject() { return open(false); }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool Key(const char*, rapidjson::SizeType, bool) { return true; }
  bool Null() { return plain(); }
  bool Bool(bool) { return plain(); }
  bool Int(int) { return plain(); }
  bool Uint(unsigned) { return plain(); }
  bool Int64(std::int64_t) { return plain(); }
  bool Uint64(std::uint64_t) { return plain(); }
  bool Double(double) { return plain(); }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return plain(); }
  bool String(const char*, rapidjson::SizeType, bool) { return plain(); }

  int writes() const { return writes_; }
  // Why it did not go on.
  const char* problem() const { return problem_; }

 private:
  bool stop(const char* why) {
    problem_ = why;
    return false;
  }

  bool open(bool array) {
    if (depth_ == 0 && !array) return stop("not an array");
    if (depth_ == 1 && array) return stop("an element is not an object");
    if (depth_ == 1) ++writes_;
    if (++depth_ > kDeepest) return stop("nested too deeply");
    return true;
  }

  bool close() {
    --depth_;
    return true;
  }

  bool plain() {
    if (depth_ == 0) return stop("not an array");
    return depth_ > 1 || stop("an element is not an object");
  }

  int depth_ = 0;
  int writes_ = 0;
  const char* problem_ = "";
};

// What stands between the outermost brackets.
std::string_view inside(std::string_view array) {
  const std::size_t begin = array.find('[') + 1;
  return array.substr(begin, array.rfind(']') - begin);
}

}  // namespace

std::string problem_of_writes(std::string_view writes) {
  // RapidJSON takes a NUL for the end.
  if (writes.find('\0') != writes.npos) return "not JSON: a NUL character";
  if (sigv4::has_lone_surrogate(writes)) return "not JSON: half a surrogate";
  rapidjson::MemoryStream stream(writes.data(), writes.size());
  rapidjson::Reader reader;
  Outline outline;
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag |
                              rapidjson::kParseValidateEncodingFlag |
                              rapidjson::kParseNumbersAsStringsFlag;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, outline);
  if (result.Code() == rapidjson::kParseErrorTermination) {
    return outline.problem();
  }
  if (result.IsError()) {
    return std::string("not JSON at byte ") + std::to_string(result.Offset()) +
           ": " + rapidjson::GetParseError_En(result.Code());
  }
  if (outline.writes() == 0) return "no elements";
  return outline.writes() > kMostWrites ? "more than 99 elements" : "";
}

std::string write_transaction(std::string_view check, std::string_view writes,
                              std::string_view token) {
  std::string body = R"({"TransactItems":[{"ConditionCheck":)";
  body.append(check).append("},").append(inside(writes));
  body.append(R"(],"ClientRequestToken":")").append(token).append("\"}");
  return body;
}

bool is_refused_by_check(const Answer& answer) {
  return answer.fault == Fault::condition_failed && !answer.reasons.empty() &&
         answer.reasons.front().code == kNoCondition;
}

std::string refused_part(const Answer& answer) {
  // A condition that did not hold weighs more than what is passing.
  const bool condition = answer.fault == Fault::condition_failed;
  for (std::size_t i = 1; i < answer.reasons.size(); ++i) {
    const Answer::Reason& reason = answer.reasons[i];
    if (reason.code == "None" || reason.code.empty()) continue;
    if (condition && reason.code != kNoCondition) continue;
    const std::string part = "part " + std::to_string(i) + ": " + reason.code;
    return reason.message.empty() ? part : part + ": " + reason.message;
  }
  return "";
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
