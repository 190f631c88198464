#include "tests/world/dynamodb/service.hpp"

#include <exception>

#include "tests/world/dynamodb/json.hpp"
#include "tests/world/dynamodb/refusal.hpp"
#include "tests/world/dynamodb/tables.hpp"

namespace world {

using dynamodb::Refusal;
using dynamodb::Tables;

namespace {

struct Operation {
  const char* name;
  std::string (Tables::*run)(const dynamodb::Json& body);
};
constexpr Operation kOperations[] = {
    {"GetItem", &Tables::get_item},
    {"PutItem", &Tables::put_item},
    {"UpdateItem", &Tables::update_item},
    {"DeleteItem", &Tables::delete_item},
    {"Scan", &Tables::scan},
    {"Query", &Tables::query},
    {"TransactWriteItems", &Tables::transact_write_items},
    {"DescribeTable", &Tables::describe_table},
};

// Where the service has such an error from.
std::string namespace_of(const std::string& type) {
  if (type == "ValidationException") return "com.amazon.coral.validate#";
  if (type == "SerializationException") return "com.amazon.coral.service#";
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

std::string answer(Tables& tables, std::string_view name,
                   std::string_view body) {
  for (const Operation& operation : kOperations) {
    if (operation.name != name) continue;
    char room[8192];  // Of most requests; no memory is asked for then.
    rapidjson::MemoryPoolAllocator<> pool(room, sizeof room);
    rapidjson::Document json(&pool);
    json.Parse<rapidjson::kParseIterativeFlag |
               rapidjson::kParseValidateEncodingFlag>(body.data(), body.size());
    if (json.HasParseError() || !json.IsObject()) {
      throw Refusal{"SerializationException", ""};
    }
    return (tables.*operation.run)(json);
  }
  dynamodb::not_simulated("operation " + std::string(name));
}

}  // namespace

Service::Service() : tables_(std::make_unique<Tables>()) {}
Service::~Service() = default;

Reply Service::call(std::string_view operation, std::string_view body) {
  try {
    return {200, answer(*tables_, operation, body)};
  } catch (const Refusal& refusal) {
    return reply_of(refusal);
  } catch (const std::exception& fault) {
    return {500, R"({"__type":"com.amazonaws.dynamodb.v20120810#)"
                 R"(InternalServerError","message":")" +
                     std::string(fault.what()) + "\"}"};
  }
}

void Service::create_table(const std::string& name, const Key& key) {
  std::vector<std::string> names = {key.partition};
  if (!key.sort.empty()) names.push_back(key.sort);
  tables_->create(name, std::move(names));
}

void Service::set_time(std::chrono::seconds now) { tables_->set_time(now); }

std::string Service::item(const std::string& table,
                          const std::string& partition,
                          const std::string& sort) const {
  const dynamodb::Table* const found = tables_->find(table);
  if (found == nullptr) return "";
  const auto* const item = found->find(dynamodb::place_of(partition, sort));
  return item != nullptr ? json_of(*item) : "";
}

std::size_t Service::size(const std::string& table) const {
  const dynamodb::Table* const found = tables_->find(table);
  return found != nullptr ? found->items.size() : 0;
}

void Service::remove(const std::string& table, const std::string& partition,
                     const std::string& sort) {
  dynamodb::Table* const found = tables_->find(table);
  if (found == nullptr) return;
  found->items.erase(dynamodb::place_of(partition, sort));
}

}  // namespace world
