// How a layout writes its requests: as JSON whose expressions are put together
// of parts.
//
//   constexpr PartOf<Words> kRenew = "SET #e = :e";
//   constexpr PartOf<Words> kIsOurs = "#u = :u";
//   RequestBody body(kVocabulary, place, request, text);
//   body.key();
//   body.update(kRenew);
//   body.condition(kIsOurs);
//   body.words();
//   body.end();
//
// "#e" stands for the name of an attribute, ":e" for a value: words of one
// letter, for all that is sent is hashed too, 64 bytes at a time.  Those of a
// layout, and what they stand for:
//
//   struct Words {
//     static constexpr char kLetters[] = "ue";
//     // A word is told by its place in that list.
//     static std::string_view name(std::size_t word, const Place& place);
//     // Both put {"S":"..."} or the like behind the text.
//     static void value(sigv4::Text& text, std::size_t word,
//                       const Place& place, const Request& request);
//     static void version(sigv4::Text& text, ServiceTime stamp,
//                         const Place& place, const Request& request);
//   };
//   constexpr Vocabulary kVocabulary = vocabulary_of<Words>();
//
// Of words that are numbered, ":0" is one of our own versions, "#set0", ":set0"
// and "#gone0" are what a user stores and removes.
#ifndef DDBMUTEX_REQUEST_BODY_HPP
#define DDBMUTEX_REQUEST_BODY_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "../sigv4/text.hpp"
#include "record.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// The place of that word; does not compile if there is none.
template <class Words>
constexpr std::size_t place_of(char letter) {
  std::size_t place = 0;
  while (Words::kLetters[place] != letter) ++place;
  return place;
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
      if (part[at] == '#') names |= 1u << place_of<Words>(part[at + 1]);
      if (part[at] == ':') values |= 1u << place_of<Words>(part[at + 1]);
    }
  }
};

// The words of a layout.
struct Vocabulary {
  const char* letters;
  std::string_view (*name)(std::size_t word, const Place& place);
  void (*value)(sigv4::Text& text, std::size_t word, const Place& place,
                const Request& request);
  void (*version)(sigv4::Text& text, ServiceTime stamp, const Place& place,
                  const Request& request);
};

template <class Words>
constexpr Vocabulary vocabulary_of() {
  return {Words::kLetters, Words::name, Words::value, Words::version};
}

// The body of a request, as it grows.  What the words stand for is put behind
// the expressions: of those that occur alone, since DynamoDB refuses others.
class RequestBody {
 public:
  using Part = RequestPart;

  // It grows behind the text.
  RequestBody(const Vocabulary& vocabulary, const Place& place,
              const Request& request, sigv4::Text& text);

  void key();
  void item(const Part& record);  // ":u :e"
  // One after the other, if there is an update; both go on with more parts.
  void update(const Part& part);
  void condition(const Part& part);
  RequestBody& operator+=(const Part& part);
  void own_list();     // ":0, :1"
  void assignments();  // ", #set0 = :set0, #set1 = :set1"
  void changes();
  void words();  // Behind the condition.
  void put(std::string_view text) { text_ += text; }
  void end() { text_ += '}'; }

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
  sigv4::Text& text_;
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
