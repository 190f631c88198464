// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// JSON documents of services and programs, and the keys in them.
//
//   const Document answer = parse_json(http.body);
//   if (!answer.root().is_object()) return broken_keys({"no JSON object"});
//   Secret secret = answer.root().text("SecretAccessKey");
//
// Pure functions, except that ends of keys are on the boot clock.
#ifndef DDBMUTEX_SIGV4_FROM_JSON_HPP
#define DDBMUTEX_SIGV4_FROM_JSON_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "../json.hpp"
#include "credentials.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

constexpr std::size_t kMaxJsonBytes = 64 * 1024;

// Reads a copy of the text.  A text that is longer than kMaxJsonBytes is no
// JSON.
Document parse_json(std::string_view text);

// How a service writes keys.
struct KeyForm {
  KeyNames names{};
  // Whether Expiration and the token's member are required.  The token may be
  // empty: then the keys have none.
  bool must_end = true;
};

// As STS and programs write them.
constexpr KeyForm kSessionForm = {
    {"AccessKeyId", "SecretAccessKey", "SessionToken"}, true};

// The keys in the object that the names lead to: {"a", "b"} is the member "b"
// of the member "a" of the document's object.  `found`, even if they have
// expired; else `broken`, and the reason names what is missing or wrong.
// `now`: seconds since 1970.  An AccountId that is not a number is left out,
// with a warning.
KeyOutcome keys_in(const Document& document,
                   std::initializer_list<const char*> names,
                   const KeyForm& form, std::string_view place,
                   std::int64_t now);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_JSON_HPP
