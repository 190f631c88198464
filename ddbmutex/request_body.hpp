// How a layout writes its requests: as JSON whose expressions are put together
// of parts.
//
//   constexpr PartOf<Words> kRenew = "SET #expires = :expires";
//   constexpr PartOf<Words> kIsOurs = "#uuid = :uuid";
//   RequestBody body(kVocabulary, place, request);
//   body.key();
//   body.update(kRenew);
//   body.condition(kIsOurs);
//   body.words();
//   body.end();
//
// "#word" stands for the name of an attribute, ":word" for a value.  The words
// of a layout, 32 at the most, and what they stand for:
//
//   struct Words {
//     static constexpr char kList[][13] = {"uuid", "expires"};
//     // A word is told by its place in that list.  Empty if it is the name
//     // itself.
//     static std::string_view name(std::size_t word, const Place& place);
//     // Both put {"S":"..."} or the like behind the text.
//     static void value(sigv4::Text& text, std::size_t word,
//                       const Place& place, const Request& request);
//     static void version(sigv4::Text& text, ServiceTime stamp,
//                         const Place& place, const Request& request);
//   };
//   constexpr Vocabulary kVocabulary = vocabulary_of<Words>();
#ifndef DDBMUTEX_REQUEST_BODY_HPP
#define DDBMUTEX_REQUEST_BODY_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "../sigv4/text.hpp"
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

// A part of an expression, and the words in it as bits.
struct RequestPart {
  std::string_view text;
  unsigned names = 0, values = 0;
};

// The same of a layout's words, found by the compiler.
template <class Words>
struct PartOf : RequestPart {
  template <std::size_t kSize>
  constexpr PartOf(const char (&part)[kSize]) {
    text = {part, kSize - 1};
    for (std::size_t at = 0; at + 1 < kSize; ++at) {
      if (part[at] == '#') names |= 1u << place_of<Words>(part + at + 1);
      if (part[at] == ':') values |= 1u << place_of<Words>(part + at + 1);
    }
  }
};

// A word as a member of the two objects begins, and as the whole member of the
// one with the names if it is that itself: ,"#uuid":"uuid"
struct WordMember {
  constexpr void set(const char* word) {
    const auto put = [this](const char* piece) {
      while (*piece != '\0') text[size++] = *piece++;
    };
    for (const char* piece : {",\"#", word, "\":"}) put(piece);
    begin = size;
    for (const char* piece : {"\"", word, "\""}) put(piece);
  }

  std::string_view word() const { return {text + 3, begin - 5u}; }

  char text[32] = {};
  unsigned char begin = 0, size = 0;
};

template <class Words>
constexpr auto members_of() {
  std::array<WordMember, std::size(Words::kList)> members;
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i].set(Words::kList[i]);
  }
  return members;
}

template <class Words>
constexpr auto kMembers = members_of<Words>();

// The words of a layout.
struct Vocabulary {
  const WordMember* members;
  std::string_view (*name)(std::size_t word, const Place& place);
  void (*value)(sigv4::Text& text, std::size_t word, const Place& place,
                const Request& request);
  void (*version)(sigv4::Text& text, ServiceTime stamp, const Place& place,
                  const Request& request);
};

template <class Words>
constexpr Vocabulary vocabulary_of() {
  return {kMembers<Words>.data(), Words::name, Words::value, Words::version};
}

// The body of a request, as it grows.  What the words stand for is put behind
// the expressions: of those that occur alone, since DynamoDB refuses others.
class RequestBody {
 public:
  using Part = RequestPart;

  RequestBody(const Vocabulary& vocabulary, const Place& place,
              const Request& request);

  void key();
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
  std::string end() {
    text_ += '}';
    return text_.take();
  }

 private:
  void key_members();
  // What the request sets beside the record: a take, what every take does.
  const dynamodb::Item& set() const {
    return request_.verb == Request::Verb::take ? place_.attributes
                                                : request_.changes->set;
  }
  void words(char mark, unsigned bits);

  const Vocabulary& vocabulary_;
  const Place& place_;
  const Request& request_;
  sigv4::Text text_;
  unsigned names_ = 0, values_ = 0;  // Bits of words.
  // How many of those words there are that have a number behind them.
  std::size_t own_ = 0, set_ = 0, gone_ = 0;
};

// {"S":"..."}
void append_text(sigv4::Text& to, std::string_view text);
// {"N":"5"}
void append_number(sigv4::Text& to, std::int64_t number);

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_REQUEST_BODY_HPP
