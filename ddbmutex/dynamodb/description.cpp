// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Reads the answers of DescribeTable, CreateTable and DeleteTable.
#include "description.hpp"

#include <cstddef>
#include <memory>
#include <string_view>

#include "../../sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::string_view_literals::operator""sv;

namespace {

// In bytes.  An error shows the status.
constexpr std::size_t kMostOfStatus = 100;

// The attribute's type as AttributeDefinitions has it; empty if it is missing.
std::string_view type_of(Value table, std::string_view name) {
  const Value definitions = table["AttributeDefinitions"];
  if (!definitions.is_list()) return {};
  for (Elements each(definitions); each.next();) {
    if (each.value.text("AttributeName") == name) {
      return each.value.text("AttributeType");
    }
  }
  return {};
}

// Reads an element of KeySchema, {"AttributeName":"name","KeyType":"HASH"}.
// Returns false if it is malformed.
bool read_key(Value element, Value description, TableDescription& table) {
  const std::string_view name = element.text("AttributeName");
  const std::string_view role = element.text("KeyType");
  const bool first = role == "HASH";
  if (!first && role != "RANGE") return false;
  std::string& part = first ? table.key : table.sort_key;
  std::string& type = first ? table.key_type : table.sort_key_type;
  if (name.empty() || !part.empty()) return false;
  part = name;
  type = type_of(description, name);
  return true;
}

// The developer guide describes the versions and consistency modes of global
// tables.  A global table without a mode is eventually consistent.  Returns
// false if the description is malformed.
bool read_replicas(Value value, TableDescription& table) {
  const Value replicas = value["Replicas"];
  const bool legacy = value.text("GlobalTableVersion") == "2017.11.29"sv;
  table.eventual_replicas =
      legacy || (replicas.size() > 0 &&
                 value.text("MultiRegionConsistency") != "STRONG"sv);
  return legacy || !replicas || replicas.is_list();
}

// Returns false if the value is not the description of a table.
bool read_description(Value value, TableDescription& table) {
  table.status = sigv4::cut_to(value.text("TableStatus"), kMostOfStatus);
  table.id = value.text("TableId");
  const Value schema = value["KeySchema"];
  if (table.status.empty() || (schema && !schema.is_list())) return false;
  for (Elements each(schema); each.next();) {
    if (!read_key(each.value, value, table)) return false;
  }
  if (table.key.empty() && table.status != "DELETING") return false;
  return read_replicas(value, table);
}

// `the number "id"`
std::string attribute_text(const std::string& name, std::string_view type) {
  std::string_view kind = "attribute";
  if (type == "S") kind = "string";
  if (type == "N") kind = "number";
  if (type == "B") kind = "binary";
  return sigv4::join({"the ", kind, " ", sigv4::in_quotes(name)});
}

std::string key_text(const std::string& key, std::string_view type,
                     const std::string& sort_key, std::string_view sort_type) {
  const std::string text = attribute_text(key, type);
  if (sort_key.empty()) return text + " alone";
  return sigv4::join({text, " with ", attribute_text(sort_key, sort_type)});
}

}  // namespace

std::string wrong_key(const TableDescription& table, const std::string& key,
                      const std::string& sort_key) {
  if (table.key.empty()) return {};
  const std::string is =
      key_text(table.key, table.key_type, table.sort_key, table.sort_key_type);
  const std::string wanted = key_text(key, "S", sort_key, "S");
  if (is == wanted) return {};
  return sigv4::join(
      {"its key is ", is, ", not ", wanted, " (options `key` and `sort_key`)"});
}

void read_table(Value body, const Wanted&, Answer& answer) {
  const auto table = std::make_shared<TableDescription>();
  const Value described = body["Table"];
  if (!read_description(described ? described : body["TableDescription"],
                        *table)) {
    return bad_answer(answer, "not the description of a table");
  }
  answer.table = table;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
