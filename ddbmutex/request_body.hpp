// How a layout writes its requests: as JSON whose expressions are put together
// of parts.
//
//   constexpr auto kRenew = part("SET #e = :e");
//   constexpr auto kIsOurs = part("#u = :u");
//   RequestBody body(place, request, text);
//   body.key();
//   body.update(kRenew);
//   body.condition(kIsOurs);
//   body.words();
//   body.end();
//
// "#e" stands for the name of an attribute, ":e" for a value: words of one
// letter, for all that is sent is hashed too, 64 bytes at a time.  What they
// stand for is up to the layout.  Of words that are numbered, ":0" is one of
// our own versions, "#set0", ":set0" and "#gone0" are what a user stores and
// removes.
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

// Attributes, and their values as they are to be: uuid, owner, expires, lease,
// ttl, data, and the key's name; k is the token.  Values besides: the version
// that was (s)een, its uuid and its end (v); the time (b)efore which a lease is
// over; z, i: 0 and 1; a string's t(y)pe and the greatest (w)idth of a uuid;
// the greatest (x) and the least (m) lease; the last token of all (q).  Of
// layouts that others share: the ve(r)sion; that a row is (f)ree, which "1"
// says (j); what (g)uards a row from all takers; the (p)refix of our versions;
// the version seen (h)ere; binary (c).
constexpr char kLetters[] = "uosyzieltkbxmwvqdnrfgcphj";

// The place of that word; does not compile if there is none.
constexpr std::size_t word(char letter) {
  std::size_t place = 0;
  while (kLetters[place] != letter) ++place;
  return place;
}

// A part of an expression, and the words in it as bits, found by the compiler.
// (No view of the text: each pointer in a constant costs 24 bytes more where
// programs may be loaded anywhere.)
struct RequestPart {
  std::string_view text() const {
    return {reinterpret_cast<const char*>(this + 1), size};
  }

  unsigned names = 0, values = 0, size = 0;
};

template <std::size_t kSize>
struct PartOf : RequestPart {
  constexpr explicit PartOf(const char (&part)[kSize]) {
    size = kSize - 1;
    for (std::size_t at = 0; at + 1 < kSize; ++at) {
      text[at] = part[at];
      if (part[at] == '#') names |= 1u << word(part[at + 1]);
      if (part[at] == ':') values |= 1u << word(part[at + 1]);
    }
  }

  char text[kSize]{};
};

template <std::size_t kSize>
constexpr PartOf<kSize> part(const char (&text)[kSize]) {
  return PartOf<kSize>(text);
}

inline const RequestPart& either(bool first, const RequestPart& one,
                                 const RequestPart& other) {
  return first ? one : other;
}

// What several layouts have in their expressions.
constexpr auto kNothing = part("");
constexpr auto kIsAbsent = part("attribute_not_exists(#n) OR ");
constexpr auto kNotOurs = part(" AND #u <> :u");
constexpr auto kOwnEnd = part("#u = :u AND #e IN (");
constexpr auto kAndData = part(", #d");

// The body of a request, as it grows.  What the words stand for is put behind
// the expressions: of those that occur alone, since DynamoDB refuses others.
class RequestBody {
 public:
  // It grows behind the text.
  RequestBody(const Place& place, const Request& request, sigv4::Text& text);

  void key();
  void item(const RequestPart& record);  // ":u :e"
  // One after the other, if there is an update; both go on with more parts.
  void update(const RequestPart& part);
  void condition(const RequestPart& part);
  void operator+=(const RequestPart& part);
  // "#e IN (:0, :1)", of which `in` is what goes before.
  void own_list(const RequestPart& in);
  void assignments();  // ", #set0 = :set0, #set1 = :set1"
  void changes();
  void words();  // Behind the condition.
  void put(const char* text) { text_ += text; }
  void end() { text_ += '}'; }

 private:
  void key_members();
  void value(char word, ServiceTime stamp) {
    place_.layout->value(text_, word, place_, request_, stamp);
  }
  // What the request sets beside the record: a take, what every take does.
  const dynamodb::Item& set() const {
    return request_.verb == Request::Verb::take ? place_.attributes
                                                : request_.changes->set;
  }
  void words(char mark, unsigned bits);

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
