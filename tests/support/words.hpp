// The library's enumerators as words, so that a failed check can be read.
#ifndef DDBMUTEX_TESTS_SUPPORT_WORDS_HPP
#define DDBMUTEX_TESTS_SUPPORT_WORDS_HPP

#include <array>
#include <cstddef>
#include <ostream>
#include <string>

#include "ddbmutex/dynamodb/answer.hpp"
#include "ddbmutex/lock/protocol.hpp"
#include "ddbmutex/lock/row.hpp"
#include "sigv4/http_answer.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

inline std::ostream& operator<<(std::ostream& out, Transport transport) {
  constexpr std::array<const char*, 8> kWords = {
      "under_way", "complete",  "unreachable", "bad_certificate",
      "broken",    "too_large", "timed_out",   "cancelled"};
  return out << kWords.at(static_cast<std::size_t>(transport));
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

namespace tests {

inline std::string word(ddbmutex::lock::Verdict verdict) {
  constexpr std::array<const char*, 11> kWords = {
      "ours",     "again", "busy",    "bad_record", "kept_row", "no_row",
      "released", "taken", "deleted", "expired",    "no_date"};
  return kWords.at(static_cast<std::size_t>(verdict));
}

inline std::string word(ddbmutex::lock::Request::Verb verb) {
  constexpr std::array<const char*, 4> kWords = {"take", "renew", "release",
                                                 "look"};
  return kWords.at(static_cast<std::size_t>(verb));
}

inline std::string word(ddbmutex::lock::Row::Kind kind) {
  constexpr std::array<const char*, 4> kWords = {"absent", "bare", "record",
                                                 "unknown"};
  return kWords.at(static_cast<std::size_t>(kind));
}

inline std::string word(ddbmutex::lock::Reply::Outcome outcome) {
  constexpr std::array<const char*, 4> kWords = {"done", "refused", "unknown",
                                                 "unsent"};
  return kWords.at(static_cast<std::size_t>(outcome));
}

inline std::string word(ddbmutex::dynamodb::Fault fault) {
  return ddbmutex::dynamodb::name_of(fault);
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_WORDS_HPP
