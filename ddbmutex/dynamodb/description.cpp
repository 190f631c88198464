#include "description.hpp"

#include <cstddef>
#include <memory>
#include <string_view>

#include "../../sigv4/shared.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::string_view_literals::operator""sv;

namespace {

// "AttributeDefinitions" tells the types.
bool is_string(Value table, std::string_view name) {
  const Value definitions = table["AttributeDefinitions"];
  if (!definitions.is_list()) return false;
  for (Elements each(definitions); each.next();) {
    if (each.value.text("AttributeName") == name) {
      return each.value.text("AttributeType") == "S"sv;
    }
  }
  return false;
}

// {"AttributeName":"name","KeyType":"HASH"}
bool read_key(Value element, Value value, TableDescription& table) {
  const std::string_view name = element.text("AttributeName");
  const std::string_view role = element.text("KeyType");
  const bool first = role == "HASH";
  if (!first && role != "RANGE") return false;
  std::string& part = first ? table.key : table.sort_key;
  if (name.empty() || !part.empty()) return false;
  part = name;
  table.of_strings = table.of_strings && dynamodb::is_string(value, name);
  return true;
}

// As the developer guide tells global tables' versions and consistency modes:
// a mode that is not told is the eventual one.  False if it makes no sense.
bool read_replicas(Value value, TableDescription& table) {
  const Value replicas = value["Replicas"];
  const bool legacy = value.text("GlobalTableVersion") == "2017.11.29"sv;
  table.eventual_replicas =
      legacy || (replicas.size() > 0 &&
                 value.text("MultiRegionConsistency") != "STRONG"sv);
  return legacy || !replicas || replicas.is_list();
}

// False if it is not the description of a table.
bool read_description(Value value, TableDescription& table) {
  table.status = value.text("TableStatus");
  table.id = value.text("TableId");
  const Value schema = value["KeySchema"];
  if (table.status.empty() || (schema && !schema.is_list())) return false;
  for (Elements each(schema); each.next();) {
    if (!read_key(each.value, value, table)) return false;
  }
  if (table.key.empty() && table.status != "DELETING") return false;
  return read_replicas(value, table);
}

}  // namespace

void read_table(Value body, const Wanted&, Answer& answer) {
  const auto table = sigv4::share<TableDescription>();
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
