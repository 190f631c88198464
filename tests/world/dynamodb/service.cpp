#include "tests/world/dynamodb/service.hpp"

#include <algorithm>
#include <exception>
#include <utility>
#include <variant>

#include "tests/world/dynamodb/evaluation.hpp"
#include "tests/world/dynamodb/refusal.hpp"
#include "tests/world/dynamodb/tables.hpp"

namespace world {
namespace dynamodb {
namespace {

// From the developer guide ("Quotas in Amazon DynamoDB").
constexpr std::size_t kMostOfItem = 400 * 1024;

const Item kNoItem;

bool is_used(const std::string& placeholder,
             std::initializer_list<const Expression*> expressions) {
  for (const Expression* expression : expressions) {
    if (expression == nullptr) continue;
    const auto& used = expression->placeholders;
    if (std::find(used.begin(), used.end(), placeholder) != used.end()) {
      return true;
    }
  }
  return false;
}

// Each of them may be null.
void check_all_used(const Bindings& bindings,
                    std::initializer_list<const Expression*> expressions) {
  for (const auto& [mark, name] : bindings.names) {
    if (!is_used(mark, expressions)) {
      invalid(
          "Value provided in ExpressionAttributeNames unused in expressions: "
          "keys: {" +
          mark + "}");
    }
  }
  for (const Attribute& value : bindings.values) {
    if (!is_used(value.name, expressions)) {
      invalid(
          "Value provided in ExpressionAttributeValues unused in expressions: "
          "keys: {" +
          value.name + "}");
    }
  }
}

std::vector<Path> paths_of(const Expression& expression,
                           const Bindings& bindings) {
  std::vector<Path> paths;
  for (const Path& path : expression.projection) {
    paths.push_back(resolved(path, bindings));
  }
  for (const Change& change : expression.update) {
    paths.push_back(resolved(change.path, bindings));
  }
  return paths;
}

void need(bool there, const char* parameter) {
  if (there) return;
  invalid("1 validation error detected: Value null at '" +
          std::string(parameter) +
          "' failed to satisfy constraint: Member must not be null");
}

// {"Attributes":{...}}, or {} if there are none to tell.
std::string attributes(const Item* item) {
  return item != nullptr ? R"({"Attributes":)" + json_of(*item) + "}" : "{}";
}

std::string attributes_at(const Write& write, const Item& item) {
  if (!write.update) return "{}";
  const Item some =
      projected(item, paths_of(*write.update, write.request.bindings));
  return attributes(some.empty() ? nullptr : &some);
}

// What an update tells, of which one of the two items may not be there.
std::string told_of_update(const Write& write, const Item* before,
                           const Item& after) {
  const std::string& wanted = write.request.return_values;
  if (wanted == "ALL_OLD") return attributes(before);
  if (wanted == "ALL_NEW") return attributes(&after);
  if (wanted == "UPDATED_NEW") return attributes_at(write, after);
  if (wanted == "UPDATED_OLD" && before != nullptr) {
    return attributes_at(write, *before);
  }
  return "{}";
}

Refusal condition_failed(const Write& write, const Item* found) {
  const bool tells = write.request.on_failure == "ALL_OLD" && found != nullptr;
  return {"ConditionalCheckFailedException", "The conditional request failed",
          tells ? R"("Item":)" + json_of(*found) : ""};
}

// The comparisons of a key condition, of which there are one or two.
std::vector<const Condition*> comparisons_in(const Condition& condition) {
  if (condition.kind != Condition::Kind::all) return {&condition};
  std::vector<const Condition*> parts;
  for (const Condition& part : condition.parts) parts.push_back(&part);
  return parts;
}

// Refuses what is no key condition of any table.
void check_form(const Condition& condition) {
  using Kind = Condition::Kind;
  const auto comparisons = comparisons_in(condition);
  if (comparisons.size() > 2)
    invalid("Conditions can be of length 1 or 2 only");
  for (const Condition* one : comparisons) {
    const bool good = (one->kind >= Kind::equal && one->kind <= Kind::between &&
                       one->kind != Kind::not_equal) ||
                      one->kind == Kind::begins_with;
    if (!good) invalid("Invalid operator used in KeyConditionExpression");
    const auto& operands = one->operands;
    const bool fits = operands[0].kind == Operand::Kind::path &&
                      operands[0].path.size() == 1 &&
                      std::all_of(operands.begin() + 1, operands.end(),
                                  [](const Operand& operand) {
                                    return operand.kind == Operand::Kind::value;
                                  });
    if (!fits) {
      invalid(
          "Invalid condition in KeyConditionExpression: a key attribute comes "
          "first, then values");
    }
  }
}

// The only one of them that is about this attribute; null if there is none.
const Condition* comparison_of(const std::string& attribute,
                               const Condition& condition,
                               const Bindings& bindings) {
  const Condition* found = nullptr;
  for (const Condition* one : comparisons_in(condition)) {
    if (resolved(one->operands[0].path, bindings)[0].name != attribute) {
      continue;
    }
    if (found != nullptr) {
      invalid(
          "KeyConditionExpressions must only contain one condition per key");
    }
    found = one;
  }
  return found;
}

// The partition that a query is of; refuses what is no key condition of this
// table.  REQUIRES: its form is good.
Place partition_of(const Condition& condition, const Bindings& bindings,
                   const Table& table) {
  std::size_t found = 0;
  const Value* partition = nullptr;
  for (const KeyPart& part : table.key()) {
    const bool first = &part == &table.key().front();
    const Condition* one = comparison_of(part.name, condition, bindings);
    if (one == nullptr) continue;
    ++found;
    for (std::size_t i = 1; i < one->operands.size(); ++i) {
      const Value* value = bindings.values.find(one->operands[i].value);
      if (value->type != part.type) {
        invalid(
            "One or more parameter values were invalid: Condition parameter "
            "type does not match schema type");
      }
      if (value->text.empty()) {
        invalid(
            "One or more parameter values are not valid. The AttributeValue "
            "for a key attribute cannot contain an empty string value.");
      }
      if (first && one->kind == Condition::Kind::equal) partition = value;
    }
  }
  if (partition == nullptr || found != comparisons_in(condition).size()) {
    invalid("Query key condition not supported");
  }
  return place_of(*partition, nullptr);
}

// All paths of a condition.
void collect_paths(const Operand& operand, const Bindings& bindings,
                   std::vector<Path>& paths) {
  if (operand.kind == Operand::Kind::path) {
    paths.push_back(resolved(operand.path, bindings));
  }
  for (const Operand& part : operand.parts) {
    collect_paths(part, bindings, paths);
  }
}

void collect_paths(const Condition& condition, const Bindings& bindings,
                   std::vector<Path>& paths) {
  for (const Condition& part : condition.parts) {
    collect_paths(part, bindings, paths);
  }
  for (const Operand& operand : condition.operands) {
    collect_paths(operand, bindings, paths);
  }
}

// A key has nothing inside of it.
void check_key_paths(const std::vector<Path>& paths, const Table& table) {
  for (const Path& path : paths) {
    if (path.size() > 1 && table.is_of_key(path[0].name)) {
      invalid(
          "Key attributes must be scalars; list random access '[]' and map "
          "lookup '.' are not allowed: IndexKey: " +
          path[0].name);
    }
  }
}

void check_filter(const Expression& filter, bool is_query,
                  const Bindings& bindings, const Table& table) {
  std::vector<Path> paths;
  collect_paths(filter.condition, bindings, paths);
  check_key_paths(paths, table);
  for (const Path& path : paths) {
    if (is_query && table.is_of_key(path[0].name)) {
      invalid(
          "Filter Expression can only contain non-primary key attributes: "
          "Primary key attribute: " +
          path[0].name);
    }
  }
}

}  // namespace

// --- What the operations share -----------------------------------------------

void check_choice(const std::string& value, std::string_view allowed) {
  if (allowed.find(" " + value + " ") != allowed.npos) return;
  invalid("1 validation error detected: Value '" + value +
          "' failed to satisfy constraint: Member must satisfy enum value set");
}

bool condition_holds(const Write& write, const Item* found) {
  return !write.condition ||
         holds(write.condition->condition, found != nullptr ? *found : kNoItem,
               write.request.bindings);
}

Item updated_by(const Write& write, const Item* found) {
  const Item& before = found != nullptr ? *found : *write.request.key;
  Item after = write.update ? updated(before, write.update->update,
                                      write.request.bindings)
                            : before;
  if (size_of(after) > kMostOfItem) {
    invalid("Item size to update has exceeded the maximum allowed size");
  }
  return after;
}

ExpressionPointer Tables::parsed(const char* parameter,
                                 const std::optional<std::string>& text,
                                 const Bindings& bindings) {
  if (!text) return nullptr;
  ExpressionPointer expression = expressions_.get(parameter, *text);
  check(*expression, bindings);
  return expression;
}

Write Tables::prepared(Request request) {
  need(!request.table.empty(), "tableName");
  check_choice(request.on_failure, " NONE ALL_OLD ");
  if (request.item && size_of(*request.item) > kMostOfItem) {
    invalid("Item size has exceeded the maximum allowed size");
  }
  Write write{std::move(request)};
  const Request& checked = write.request;
  write.update = parsed("UpdateExpression", checked.update, checked.bindings);
  write.condition =
      parsed("ConditionExpression", checked.condition, checked.bindings);
  check_all_used(checked.bindings, {write.update.get(), write.condition.get()});
  return write;
}

Write Tables::prepared(const Json& body, std::string_view members,
                       std::string_view return_values) {
  Reader reader;
  Request request = reader.request(body, members);
  reader.finish();
  check_choice(request.return_values, return_values);
  return prepared(std::move(request));
}

Table& Tables::existing(const Request& request) {
  Table* table = find(request.table);
  if (table == nullptr) {
    refuse("ResourceNotFoundException", "Requested resource not found");
  }
  return *table;
}

void Tables::locate(Write& write) {
  write.table = &existing(write.request);
  const auto& item = write.request.item;
  write.place = item ? write.table->place_of_item(*item)
                     : write.table->place_of_key(*write.request.key);
  if (!write.update) return;
  for (const Path& path : paths_of(*write.update, write.request.bindings)) {
    if (write.table->is_of_key(path[0].name)) {
      invalid(
          "One or more parameter values were invalid: Cannot update attribute "
          "" +
          path[0].name + ". This attribute is part of the key");
    }
  }
}

// --- Operations on items -----------------------------------------------------

Outcome Tables::get_item(const Json& body) {
  Reader reader;
  const Request request =
      reader.request(body,
                     " TableName Key ConsistentRead ProjectionExpression "
                     "ExpressionAttributeNames ");
  reader.finish();
  need(!request.table.empty(), "tableName");
  need(request.key.has_value(), "key");
  const auto projection =
      parsed("ProjectionExpression", request.projection, request.bindings);
  check_all_used(request.bindings, {projection.get()});
  const Table& table = existing(request);
  if (projection) {
    check_key_paths(paths_of(*projection, request.bindings), table);
  }
  const Item* item = table.find(table.place_of_key(*request.key));
  if (item == nullptr) return "{}";
  return R"({"Item":)" +
         (projection ? json_of(projected(
                           *item, paths_of(*projection, request.bindings)))
                     : json_of(*item)) +
         "}";
}

Outcome Tables::put_item(const Json& body) {
  Write write = prepared(body,
                         " TableName Item ConditionExpression "
                         "ExpressionAttributeNames ExpressionAttributeValues "
                         "ReturnValues ReturnValuesOnConditionCheckFailure ",
                         " NONE ALL_OLD ");
  need(write.request.item.has_value(), "item");
  locate(write);
  const Item* found = write.table->find(write.place);
  if (!condition_holds(write, found)) return condition_failed(write, found);
  std::string told =
      attributes(write.request.return_values == "ALL_OLD" ? found : nullptr);
  write.table->put(write.place, std::move(*write.request.item));
  return told;
}

Outcome Tables::update_item(const Json& body) {
  Write write = prepared(body,
                         " TableName Key UpdateExpression ConditionExpression "
                         "ExpressionAttributeNames ExpressionAttributeValues "
                         "ReturnValues ReturnValuesOnConditionCheckFailure ",
                         " NONE ALL_OLD ALL_NEW UPDATED_OLD UPDATED_NEW ");
  need(write.request.key.has_value(), "key");
  locate(write);
  const Item* found = write.table->find(write.place);
  if (!condition_holds(write, found)) return condition_failed(write, found);
  Item after = updated_by(write, found);
  std::string told = told_of_update(write, found, after);
  write.table->put(write.place, std::move(after));
  return told;
}

Outcome Tables::delete_item(const Json& body) {
  Write write = prepared(body,
                         " TableName Key ConditionExpression "
                         "ExpressionAttributeNames ExpressionAttributeValues "
                         "ReturnValues ReturnValuesOnConditionCheckFailure ",
                         " NONE ALL_OLD ");
  need(write.request.key.has_value(), "key");
  locate(write);
  const Item* found = write.table->find(write.place);
  if (!condition_holds(write, found)) return condition_failed(write, found);
  std::string told =
      attributes(write.request.return_values == "ALL_OLD" ? found : nullptr);
  write.table->erase(write.place);
  return told;
}

// --- Pages -------------------------------------------------------------------

Outcome Tables::scan(const Json& body) { return page(body, false); }
Outcome Tables::query(const Json& body) { return page(body, true); }

std::string Tables::page(const Json& body, bool is_query) {
  Reader reader;
  const Request request = reader.request(
      body, is_query ? " TableName ConsistentRead Limit ExclusiveStartKey "
                       "FilterExpression ProjectionExpression "
                       "ExpressionAttributeNames ExpressionAttributeValues "
                       "KeyConditionExpression "
                     : " TableName ConsistentRead Limit ExclusiveStartKey "
                       "FilterExpression ProjectionExpression "
                       "ExpressionAttributeNames ExpressionAttributeValues ");
  reader.finish();
  const Bindings& bindings = request.bindings;
  need(!request.table.empty(), "tableName");
  if (request.limit.value_or(1) < 1) {
    invalid("Value at 'limit' must be greater than or equal to 1");
  }
  if (is_query) need(request.key_condition.has_value(), "keyConditions");
  const auto condition =
      parsed("KeyConditionExpression", request.key_condition, bindings);
  if (condition) check_form(condition->condition);
  const auto filter = parsed("FilterExpression", request.filter, bindings);
  const auto projection =
      parsed("ProjectionExpression", request.projection, bindings);
  check_all_used(bindings, {condition.get(), filter.get(), projection.get()});
  const Table& table = existing(request);
  Table::Search search;
  search.most = static_cast<std::size_t>(request.limit.value_or(INT32_MAX));
  search.is_in_range = [&](const Item& item) {
    return !condition || holds(condition->condition, item, bindings);
  };
  search.is_wanted = [&](const Item& item) {
    return !filter || holds(filter->condition, item, bindings);
  };
  if (filter) check_filter(*filter, is_query, bindings, table);
  if (projection) check_key_paths(paths_of(*projection, bindings), table);
  if (request.start) search.start = table.place_of_key(*request.start);
  if (condition) {
    search.partition = partition_of(condition->condition, bindings, table);
    if (search.start &&
        !(search.start->partition == search.partition->partition)) {
      invalid("The provided starting key is outside query boundaries");
    }
  }
  const Page page = table.page(search);
  std::string told = R"({"Items":[)";
  for (const Item* item : page.items) {
    if (item != page.items.front()) told += ',';
    told += projection
                ? json_of(projected(*item, paths_of(*projection, bindings)))
                : json_of(*item);
  }
  told += R"(],"Count":)" + std::to_string(page.items.size()) +
          R"(,"ScannedCount":)" + std::to_string(page.scanned);
  if (page.last_key) {
    told += R"(,"LastEvaluatedKey":)" + json_of(*page.last_key);
  }
  return told + "}";
}

}  // namespace dynamodb

// --- The service -------------------------------------------------------------

using dynamodb::Refusal;
using dynamodb::Tables;

namespace {

struct Operation {
  const char* name;
  dynamodb::Outcome (Tables::*run)(const dynamodb::Json& body);
};
constexpr Operation kOperations[] = {
    {"GetItem", &Tables::get_item},
    {"PutItem", &Tables::put_item},
    {"UpdateItem", &Tables::update_item},
    {"DeleteItem", &Tables::delete_item},
    {"Scan", &Tables::scan},
    {"Query", &Tables::query},
    {"TransactWriteItems", &Tables::transact_write_items},
    {"CreateTable", &Tables::create_table},
    {"DeleteTable", &Tables::delete_table},
    {"DescribeTable", &Tables::describe_table},
    {"UpdateTimeToLive", &Tables::update_time_to_live},
    {"DescribeTimeToLive", &Tables::describe_time_to_live},
};

// Where the service has such an error from.
std::string namespace_of(const std::string& type) {
  if (type == "ValidationException") return "com.amazon.coral.validate#";
  if (type == "SerializationException" || type == "UnknownOperationException") {
    return "com.amazon.coral.service#";
  }
  return "com.amazonaws.dynamodb.v20120810#";
}

Reply reply_of(const Refusal& refusal) {
  const bool capital = refusal.type == "SerializationException" ||
                       refusal.type == "TransactionCanceledException";
  std::string body =
      R"({"__type":")" + namespace_of(refusal.type) + refusal.type + '"';
  if (!refusal.message.empty()) {
    body += std::string(capital ? R"(,"Message":)" : R"(,"message":)") +
            dynamodb::quoted(refusal.message);
  }
  if (!refusal.more.empty()) body += "," + refusal.more;
  return {refusal.type == "NotSimulated" ? 501 : 400, body + "}"};
}

dynamodb::Outcome answer(Tables& tables, std::string_view name,
                         std::string_view body) {
  for (const Operation& operation : kOperations) {
    if (operation.name != name) continue;
    char room[8192];  // Of most requests; no memory is asked for then.
    rapidjson::MemoryPoolAllocator<> pool(room, sizeof room);
    rapidjson::Document json(&pool);
    json.Parse<rapidjson::kParseIterativeFlag |
               rapidjson::kParseValidateEncodingFlag>(body.data(), body.size());
    if (json.HasParseError() || !json.IsObject()) {
      dynamodb::refuse("SerializationException", "");
    }
    return (tables.*operation.run)(json);
  }
  dynamodb::refuse("UnknownOperationException", "");
}

// Of a table that the judge looks at: its place by string values.
dynamodb::Place place(const std::string& partition, const std::string& sort) {
  const dynamodb::Value sort_value = dynamodb::string_value(sort);
  return dynamodb::place_of(dynamodb::string_value(partition),
                            sort.empty() ? nullptr : &sort_value);
}

}  // namespace

Service::Service() : tables_(std::make_unique<Tables>()) {}
Service::~Service() = default;

Reply Service::call(std::string_view operation, std::string_view body) {
  try {
    dynamodb::Outcome outcome = answer(*tables_, operation, body);
    const auto* refusal = std::get_if<Refusal>(&outcome);
    if (refusal != nullptr) return reply_of(*refusal);
    return {200, std::get<std::string>(std::move(outcome))};
  } catch (const Refusal& refusal) {
    return reply_of(refusal);
  } catch (const std::exception& fault) {
    return {500, R"({"__type":"com.amazonaws.dynamodb.v20120810#)"
                 R"(InternalServerError","message":")" +
                     std::string(fault.what()) + "\"}"};
  }
}

void Service::create_table(const std::string& name, const Key& key) {
  std::vector<dynamodb::KeyPart> parts = {{key.partition}};
  if (!key.sort.empty()) parts.push_back({key.sort});
  tables_->create(name, std::move(parts));
}

void Service::set_time(std::chrono::seconds now) { tables_->set_time(now); }

std::string Service::item(const std::string& table,
                          const std::string& partition,
                          const std::string& sort) const {
  const dynamodb::Table* found = tables_->find(table);
  if (found == nullptr) return "";
  const dynamodb::Item* item = found->find(place(partition, sort));
  return item != nullptr ? dynamodb::json_of(*item) : "";
}

std::size_t Service::size(const std::string& table) const {
  const dynamodb::Table* found = tables_->find(table);
  return found != nullptr ? found->size() : 0;
}

std::vector<std::string> Service::items(const std::string& table) const {
  std::vector<std::string> all;
  const dynamodb::Table* found = tables_->find(table);
  if (found == nullptr) return all;
  for (const dynamodb::Item* item : found->items()) {
    all.push_back(dynamodb::json_of(*item));
  }
  return all;
}

void Service::remove(const std::string& table, const std::string& partition,
                     const std::string& sort) {
  dynamodb::Table* found = tables_->find(table);
  if (found != nullptr) found->erase(place(partition, sort));
}

}  // namespace world
