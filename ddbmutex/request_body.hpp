// How a layout writes its requests: as JSON whose expressions are put together
// of parts.
//
//   RequestBody<Words> body(place, request);
//   body.key();
//   body.update("SET #expires = :expires");
//   body.condition("#uuid = :uuid");
//   body.words();
//   body.end();
//
// "#word" stands for the name of an attribute, ":word" for a value.  The words
// of a layout, 32 at the most, and what they stand for:
//
//   struct Words {
//     static constexpr char kList[][13] = {"uuid", "expires"};
//     // A word is told by its place in that list.
//     static std::string_view name(std::size_t word, const Place& place);
//     // Both put {"S":"..."} or the like behind the text.
//     static void value(std::string& text, std::size_t word,
//                       const Place& place, const Request& request);
//     static void version(std::string& text, ServiceTime stamp,
//                         const Place& place, const Request& request);
//   };
//
// Templates, so that the compiler sees a layout as a whole: each costs no more
// than it needs.
#ifndef DDBMUTEX_REQUEST_BODY_HPP
#define DDBMUTEX_REQUEST_BODY_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "../sigv4/text.hpp"
#include "json.hpp"
#include "record.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// The place of the word that begins there; does not compile if there is none.
template <class Words>
constexpr std::size_t place_of(const char* begin) {
  const auto is_of_word = [](char c) {
    return (c >= 'a' && c <= 'z') || c == '_';
  };
  std::size_t word = 0, same = 0;
  while (is_of_word(begin[same]) || Words::kList[word][same] != '\0') {
    const bool fits = begin[same] == Words::kList[word][same];
    word += fits ? 0 : 1;
    same = fits ? same + 1 : 0;
  }
  return word;
}

// A part of an expression, and the words in it as bits: found by the compiler.
template <class Words>
struct RequestPart {
  template <std::size_t kSize>
  constexpr RequestPart(const char (&part)[kSize]) : text(part, kSize - 1) {
    for (std::size_t at = 0; at + 1 < kSize; ++at) {
      if (part[at] == '#') names |= 1u << place_of<Words>(part + at + 1);
      if (part[at] == ':') values |= 1u << place_of<Words>(part + at + 1);
    }
  }

  std::string_view text;
  unsigned names = 0, values = 0;
};

// The body of a request, as it grows.  What the words stand for is put behind
// the expressions: of those that occur alone, since DynamoDB refuses others.
template <class Words>
class RequestBody {
 public:
  using Part = RequestPart<Words>;

  RequestBody(const Place& place, const Request& request);

  void key() { key(R"(,"Key":{)"), text_ += '}'; }
  void item(const Part& record);  // ":uuid :expires"
  // One after the other, if there is an update; both go on with more parts.
  void update(const Part& part);
  void condition(const Part& part);
  RequestBody& operator+=(const Part& part);
  void own_list();     // ":own0, :own1"
  void assignments();  // ", #set0 = :set0, #set1 = :set1"
  void changes();
  void words();  // Behind the condition.
  void put(std::string_view text) { text_ += text; }
  std::string end() { return std::move(text_ += '}'); }

 private:
  using Item = dynamodb::Item;
  using Digits = sigv4::Digits;

  void key(std::string_view before);
  // What the request sets beside the record: a take, what every take does.
  const Item& set() const {
    return request_.verb == Request::Verb::take ? place_.attributes
                                                : request_.changes->set;
  }
  void words(std::string_view mark, unsigned bits);
  void value(std::size_t word) { Words::value(text_, word, place_, request_); }

  const Place& place_;
  const Request& request_;
  std::string text_;
  unsigned names_ = 0, values_ = 0;  // Bits of words.
  // How many of those words there are that have a number behind them.
  std::size_t own_ = 0, set_ = 0, gone_ = 0;
};

// {"S":"..."}
inline void append_text(std::string& to, std::string_view text) {
  dynamodb::append_form(to, R"({"S":$})", {text});
}

// {"N":"5"}
inline void append_number(std::string& to, std::int64_t number) {
  sigv4::append(to, {R"({"N":")", sigv4::Digits(number), "\"}"});
}

template <class Words>
RequestBody<Words>::RequestBody(const Place& place, const Request& request)
    : place_(place), request_(request) {
  text_.reserve(2048);
  dynamodb::append_form(text_, R"({"TableName":$)", {place.table});
}

template <class Words>
void RequestBody<Words>::key(std::string_view before) {
  text_ += before;
  dynamodb::append_form(text_, R"($:{"S":$})", {place_.key_name, place_.key});
  if (place_.sort_name.empty()) return;
  dynamodb::append_form(text_, R"(,$:{"S":$})",
                        {place_.sort_name, place_.sort_value});
}

template <class Words>
void RequestBody<Words>::item(const Part& record) {
  key(R"(,"Item":{)");
  for (std::size_t word = 0; record.values >> word != 0; ++word) {
    if ((record.values >> word & 1) == 0) continue;
    sigv4::append(text_, {",\"", Words::name(word, place_), "\":"});
    value(word);
  }
  if (!place_.attributes.empty()) text_ += ',';
  dynamodb::append_members(text_, place_.attributes);
  text_ += '}';
}

template <class Words>
void RequestBody<Words>::update(const Part& part) {
  text_ += R"(,"UpdateExpression":")";
  *this += part;
}

template <class Words>
void RequestBody<Words>::condition(const Part& part) {
  const bool updates = names_ != 0;
  sigv4::append(text_, {updates ? "\"" : "", R"(,"ConditionExpression":")"});
  *this += part;
}

template <class Words>
RequestBody<Words>& RequestBody<Words>::operator+=(const Part& part) {
  text_ += part.text;
  names_ |= part.names;
  values_ |= part.values;
  return *this;
}

template <class Words>
void RequestBody<Words>::own_list() {
  for (; own_ < request_.own.size(); ++own_) {
    sigv4::append(text_, {own_ == 0 ? ":own" : ", :own", Digits(own_)});
  }
}

template <class Words>
void RequestBody<Words>::assignments() {
  for (; set_ < set().size(); ++set_) {
    const Digits number(set_);
    sigv4::append(text_, {", #set", number, " = :set", number});
  }
}

// What the user changes; behind the other assignments.
template <class Words>
void RequestBody<Words>::changes() {
  if (!request_.changes) return;
  assignments();
  for (; gone_ < request_.changes->remove.size(); ++gone_) {
    sigv4::append(text_,
                  {gone_ == 0 ? " REMOVE #gone" : ", #gone", Digits(gone_)});
  }
}

template <class Words>
void RequestBody<Words>::words() {
  text_ += R"(","ExpressionAttributeNames":)";
  words("#", names_);
  text_ += R"(,"ExpressionAttributeValues":)";
  words(":", values_);
}

// {"#uuid":"uuid"} or {":uuid":{"S":"..."}}
template <class Words>
void RequestBody<Words>::words(std::string_view mark, unsigned bits) {
  const bool names = mark == "#";
  std::string_view before = "{\"";
  const auto next = [&](std::string_view kind, std::string_view number) {
    sigv4::append(text_,
                  {std::exchange(before, ",\""), mark, kind, number, "\":"});
  };
  for (std::size_t word = 0; bits >> word != 0; ++word) {
    if ((bits >> word & 1) == 0) continue;
    next(Words::kList[word], "");
    if (names) {
      dynamodb::append_string(text_, Words::name(word, place_));
    } else {
      value(word);
    }
  }
  for (std::size_t i = 0; i < set_; ++i) {
    next("set", Digits(i));
    if (names) {
      dynamodb::append_string(text_, set()[i].name);
    } else {
      dynamodb::append_value(text_, set()[i]);
    }
  }
  for (std::size_t i = 0; names && i < gone_; ++i) {
    next("gone", Digits(i));
    dynamodb::append_string(text_, request_.changes->remove[i]);
  }
  for (std::size_t i = 0; !names && i < own_; ++i) {
    next("own", Digits(i));
    Words::version(text_, request_.own[i], place_, request_);
  }
  text_ += '}';
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_REQUEST_BODY_HPP
