// Tables, and what reads them: GetItem, Scan, Query and DescribeTable.
#include <algorithm>
#include <optional>
#include <utility>

#include "tests/world/dynamodb/expression.hpp"
#include "tests/world/dynamodb/refusal.hpp"
#include "tests/world/dynamodb/tables.hpp"

namespace world::dynamodb {
namespace {

// From the developer guide ("Quotas in Amazon DynamoDB").
constexpr std::size_t kMostOfPartitionKey = 2048;
constexpr std::size_t kMostOfSortKey = 1024;
constexpr std::size_t kPageBytes = 1024 * 1024;

// The value of an attribute of a key.
const std::string& key_text(const Item& item, const std::string& name,
                            std::size_t most) {
  const std::string wrong = "One or more parameter values were invalid: ";
  const Value* const value = find(item, name);
  if (value == nullptr) {
    invalid(wrong + "Missing the key " + name + " in the item");
  }
  if (value->type != "S") {
    invalid(wrong + "Type mismatch for key " + name +
            " expected: S actual: " + value->type);
  }
  if (value->text.empty()) invalid(wrong + "empty string value of " + name);
  if (value->bytes > most) invalid(wrong + "Size of " + name);
  return value->text;
}

Item projected(const Item& item, const std::vector<std::string>& names) {
  Item some;
  for (const std::string& name : names) {
    const Value* const value = find(item, name);
    if (value != nullptr) some[name] = *value;
  }
  return some;
}

// Of a scan or a query.
struct Search {
  std::string table_name;
  std::optional<KeyCondition> key{};  // Of a query.
  std::optional<Condition> filter{};
  std::optional<std::vector<std::string>> projection{};
  std::optional<Item> start{};
  std::int64_t most = 0;
};

Search read_search(const Json& body, bool is_query) {
  Members in(body);
  Search search{in.text("TableName").value_or("")};
  Bindings bindings(in);
  if (is_query) {
    const auto key = in.text("KeyConditionExpression");
    search.key = parse_key_condition(key.value_or(""), bindings);
  }
  if (const auto filter = in.text("FilterExpression")) {
    search.filter = parse_condition("FilterExpression", *filter, bindings);
  }
  if (const auto projection = in.text("ProjectionExpression")) {
    search.projection = parse_projection(*projection, bindings);
  }
  search.start = in.item("ExclusiveStartKey");
  search.most = in.integer("Limit").value_or(INT32_MAX);
  if (search.most < 1) invalid("Value at 'limit' must be at least 1");
  in.boolean("ConsistentRead");  // Every read is.
  in.finish();
  bindings.check_all_used();
  return search;
}

// Of a query.
const std::string& partition_of(const Search& search, const Table& table) {
  for (const std::string& key : table.key) {
    if (search.filter && search.filter->attributes.count(key) > 0) {
      invalid("Filter Expression can only contain non-primary key attributes");
    }
  }
  const auto& [attribute, value] = *search.key;
  if (attribute != table.key[0]) {
    invalid("Query condition missed key schema element: " + table.key[0]);
  }
  if (value.type != "S" || value.text.empty()) {
    invalid("One or more parameter values were invalid: " + attribute);
  }
  return value.text;
}

}  // namespace

// --- Tables ------------------------------------------------------------------

Place place_of(const std::string& partition, const std::string& sort) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a.
  for (const char c : partition) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return {hash, partition, sort};
}

bool Table::is_of_key(const std::string& attribute) const {
  return std::find(key.begin(), key.end(), attribute) != key.end();
}

const Item* Table::find(const Place& place) const {
  const auto found = items.find(place);
  return found != items.end() ? &found->second : nullptr;
}

Place Table::place_of_key(const Item& given) const {
  for (const std::string& name : key) {
    const Value* const value = dynamodb::find(given, name);
    if (given.size() != key.size() || value == nullptr || value->type != "S") {
      invalid("The provided key element does not match the schema");
    }
  }
  return place_of_item(given);
}

Place Table::place_of_item(const Item& item) const {
  const std::string& partition = key_text(item, key[0], kMostOfPartitionKey);
  if (key.size() == 1) return place_of(partition, "");
  return place_of(partition, key_text(item, key[1], kMostOfSortKey));
}

void Tables::create(const std::string& name, std::vector<std::string> key) {
  const std::string id = "table-" + std::to_string(++tables_made_);
  tables_.insert_or_assign(name, Table{std::move(key), id});
}

Table* Tables::find(const std::string& name) {
  const auto found = tables_.find(name);
  return found != tables_.end() ? &found->second : nullptr;
}

Table& Tables::existing(const std::string& name) {
  if (name.empty()) invalid("Value null at 'tableName'");
  Table* const table = find(name);
  if (table != nullptr) return *table;
  throw Refusal{"ResourceNotFoundException",
                "Requested resource not found: Table: " + name + " not found"};
}

// --- Operations --------------------------------------------------------------

std::string Tables::get_item(const Json& body) {
  Members in(body);
  const std::string name = in.text("TableName").value_or("");
  const auto key = in.item("Key");
  in.boolean("ConsistentRead");  // Every read is.
  Bindings bindings(in);
  std::optional<std::vector<std::string>> projection;
  if (const auto text = in.text("ProjectionExpression")) {
    projection = parse_projection(*text, bindings);
  }
  in.finish();
  bindings.check_all_used();
  if (!key) invalid("Value null at 'key'");
  const Table& table = existing(name);
  const Item* const item = table.find(table.place_of_key(*key));
  if (item == nullptr) return "{}";
  return R"({"Item":)" +
         json_of(projection ? projected(*item, *projection) : *item) + "}";
}

std::string Tables::page(const Json& body, bool is_query) {
  const Search search = read_search(body, is_query);
  const Table& table = existing(search.table_name);
  std::string partition;
  auto at = table.items.begin();
  if (is_query) {
    partition = partition_of(search, table);
    at = table.items.lower_bound(place_of(partition, ""));
  }
  if (search.start) {
    const Place place = table.place_of_key(*search.start);
    if (is_query && std::get<1>(place) != partition) {
      invalid("The provided starting key is outside query boundaries");
    }
    at = table.items.upper_bound(place);
  }
  std::string items;
  std::int64_t count = 0, scanned = 0;
  std::size_t bytes = 0;
  const Item* last = nullptr;
  bool is_full = false;
  for (; at != table.items.end() && !is_full; ++at) {
    const auto& [place, item] = *at;
    if (is_query && std::get<1>(place) != partition) break;
    bytes += size_of(item);
    is_full = last != nullptr && bytes > kPageBytes;
    if (is_full) break;
    last = &item;
    is_full = ++scanned == search.most;
    if (search.filter && !search.filter->holds(item)) continue;
    if (count++ > 0) items += ',';
    items +=
        json_of(search.projection ? projected(item, *search.projection) : item);
  }
  std::string told = R"({"Items":[)" + items + R"(],"Count":)" +
                     std::to_string(count) + R"(,"ScannedCount":)" +
                     std::to_string(scanned);
  if (is_full) {
    told += R"(,"LastEvaluatedKey":)" + json_of(projected(*last, table.key));
  }
  return told + "}";
}

std::string Tables::describe_table(const Json& body) {
  Members in(body);
  const std::string name = in.text("TableName").value_or("");
  in.finish();
  const Table& table = existing(name);
  std::string schema, definitions;
  for (const std::string& part : table.key) {
    const bool first = schema.empty();
    const std::string attribute =
        (first ? R"({"AttributeName":)" : R"(,{"AttributeName":)") +
        quoted(part);
    schema += attribute +
              (first ? R"(,"KeyType":"HASH"})" : R"(,"KeyType":"RANGE"})");
    definitions += attribute + R"(,"AttributeType":"S"})";
  }
  return R"({"Table":{"TableName":)" + quoted(name) + R"(,"TableId":")" +
         table.id + R"(","TableStatus":"ACTIVE","KeySchema":[)" + schema +
         R"(],"AttributeDefinitions":[)" + definitions + R"(],"ItemCount":)" +
         std::to_string(table.items.size()) + "}}";
}

}  // namespace world::dynamodb
