// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// stored.hpp: attributes with types, for programs that prefer them to the JSON
// of Options::item.
//
//   #include "extras/stored.hpp"
//
//   using Type = ddbmutex::Attribute::Type;
//   options.item = ddbmutex::to_item({{"state", Type::string, "new"}});
//   for (const auto& attribute : ddbmutex::attributes_of(info.item)) ...
//
// Pure functions; any thread may call them.
#ifndef DDBMUTEX_EXTRAS_STORED_HPP
#define DDBMUTEX_EXTRAS_STORED_HPP

#include <string>
#include <system_error>
#include <vector>

#include "../ddbmutex.hpp"

namespace ddbmutex {
inline namespace v0 {

// An attribute of an item, of any of DynamoDB's types.
struct Attribute {
  enum class Type {
    string,
    number,
    binary,
    boolean,
    null,
    string_set,
    number_set,
    binary_set,
    list,
    map,
  };
  std::string name{};  // Empty for a member of a set or list.
  Type type = Type::string;
  // string: UTF-8; number: decimal text, up to 38 digits; binary: the bytes;
  // boolean: "true" or "false"; empty for other types.
  std::string value{};
  std::vector<Attribute> members{};  // Of sets, lists and maps.
};
bool operator==(const Attribute& a, const Attribute& b);
inline bool operator!=(const Attribute& a, const Attribute& b) {
  return !(a == b);
}
using Attributes = std::vector<Attribute>;

// The JSON that Options::item and Changes::item take.  Errors: bad_option that
// names the attribute, if DynamoDB would refuse or change its value.
std::string to_item(const Attributes& attributes,
                    std::error_code& ec = detail::throws());

// What DdbMutex::item() and LockInfo::item say.  Empty for any other text.
// Leaves out binary values that are not valid base64.
Attributes attributes_of(const std::string& item);

}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_EXTRAS_STORED_HPP
