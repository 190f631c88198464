// Operations on tables.  All that they change is done at once, except that the
// answer to a CreateTable still says CREATING.
#include <algorithm>
#include <utility>

#include "tests/world/dynamodb/refusal.hpp"
#include "tests/world/dynamodb/tables.hpp"

namespace world {
namespace dynamodb {
namespace {

std::string table_name(const Json& body, Reader& reader) {
  const Json* name = member(body, "TableName");
  if (name == nullptr) invalid("Value null at 'tableName'");
  return reader.text(*name);
}

std::string text_in(const Json& object, const char* name, Reader& reader) {
  const Json* text = member(reader.object(object), name);
  if (text == nullptr) invalid("Value null at '" + std::string(name) + "'");
  return reader.text(*text);
}

const Json& array_in(const Json& body, const char* name, Reader& reader) {
  const Json* array = member(body, name);
  if (array == nullptr) invalid("Value null at '" + std::string(name) + "'");
  return reader.array(*array);
}

Type key_type(const Json& definitions, const std::string& name,
              Reader& reader) {
  for (const Json& one : definitions.GetArray()) {
    if (text_in(one, "AttributeName", reader) != name) continue;
    const auto type = type_of(text_in(one, "AttributeType", reader));
    if (!type || !is_scalar(*type)) invalid("AttributeType must be S, N or B");
    return *type;
  }
  invalid("Some index key attributes are not defined in AttributeDefinitions");
}

std::vector<KeyPart> key_in(const Json& body, Reader& reader) {
  const Json& definitions = array_in(body, "AttributeDefinitions", reader);
  const Json& schema = array_in(body, "KeySchema", reader);
  std::vector<KeyPart> key;
  for (const Json& part : schema.GetArray()) {
    const std::string name = text_in(part, "AttributeName", reader);
    if (text_in(part, "KeyType", reader) != (key.empty() ? "HASH" : "RANGE")) {
      invalid("Invalid KeySchema: HASH comes first, then RANGE");
    }
    key.push_back({name, key_type(definitions, name, reader)});
  }
  const bool good = !key.empty() && key.size() <= 2 &&
                    key.size() == definitions.Size() &&
                    (key.size() == 1 || key[0].name != key[1].name);
  if (!good) invalid("KeySchema and AttributeDefinitions do not match");
  return key;
}

bool is_name(const std::string& name) {
  return name.size() >= 3 && name.size() <= 255 &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
         });
}

}  // namespace

Table& Tables::create(const std::string& name, std::vector<KeyPart> key) {
  const std::string id = "table-" + std::to_string(++tables_made_);
  return entries_.insert_or_assign(name, Entry{Table(std::move(key)), id})
      .first->second.table;
}

Table* Tables::find(const std::string& name) {
  const auto found = entries_.find(name);
  return found != entries_.end() ? &found->second.table : nullptr;
}

Tables::Entry& Tables::entry_of(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    refuse("ResourceNotFoundException",
           "Requested resource not found: Table: " + name + " not found");
  }
  return found->second;
}

std::string Tables::description(const std::string& name, const Entry& entry,
                                const char* status) const {
  std::string schema, definitions;
  for (const KeyPart& part : entry.table.key()) {
    const bool first = schema.empty();
    const std::string attribute = std::string(first ? "" : ",") +
                                  R"({"AttributeName":)" + quoted(part.name);
    schema +=
        attribute + R"(,"KeyType":")" + (first ? "HASH" : "RANGE") + "\"}";
    definitions +=
        attribute + R"(,"AttributeType":")" + tag_of(part.type) + "\"}";
  }
  return R"({"TableName":)" + quoted(name) + R"(,"TableId":")" + entry.id +
         R"(","TableStatus":")" + status + R"(","KeySchema":[)" + schema +
         R"(],"AttributeDefinitions":[)" + definitions + R"(],"ItemCount":)" +
         std::to_string(entry.table.size()) + "}";
}

Outcome Tables::create_table(const Json& body) {
  Reader reader;
  const std::string name = table_name(body, reader);
  std::vector<KeyPart> key = key_in(body, reader);
  if (!is_name(name)) invalid("TableName has 3 to 255 letters, digits, _.-");
  const Json* mode = member(body, "BillingMode");
  const bool on_demand =
      mode != nullptr && reader.text(*mode) == "PAY_PER_REQUEST";
  if (on_demand == (member(body, "ProvisionedThroughput") != nullptr)) {
    invalid(
        "One or more parameter values were invalid: either BillingMode is "
        "PAY_PER_REQUEST, or ProvisionedThroughput is given");
  }
  if (find(name) != nullptr) {
    refuse("ResourceInUseException", "Table already exists: " + name);
  }
  create(name, std::move(key));
  return R"({"TableDescription":)" +
         description(name, entry_of(name), "CREATING") + "}";
}

Outcome Tables::delete_table(const Json& body) {
  Reader reader;
  const std::string name = table_name(body, reader);
  const std::string told = R"({"TableDescription":)" +
                           description(name, entry_of(name), "DELETING") + "}";
  entries_.erase(name);
  return told;
}

Outcome Tables::describe_table(const Json& body) {
  Reader reader;
  const std::string name = table_name(body, reader);
  return R"({"Table":)" + description(name, entry_of(name), "ACTIVE") + "}";
}

Outcome Tables::update_time_to_live(const Json& body) {
  Reader reader;
  const std::string name = table_name(body, reader);
  const Json* how = member(body, "TimeToLiveSpecification");
  if (how == nullptr) invalid("Value null at 'timeToLiveSpecification'");
  const std::string attribute = text_in(*how, "AttributeName", reader);
  const Json* enabled = member(*how, "Enabled");
  if (enabled == nullptr) invalid("Value null at 'enabled'");
  const bool on = reader.boolean(*enabled);
  std::string& now = entry_of(name).clean_up_attribute;
  if (!now.empty() && now != attribute) {
    invalid(
        "TimeToLive is active on a different AttributeName: current "
        "AttributeName is " +
        now);
  }
  if (on == !now.empty()) {
    invalid(std::string("TimeToLive is already ") +
            (on ? "enabled" : "disabled"));
  }
  now = on ? attribute : "";
  return R"({"TimeToLiveSpecification":{"AttributeName":)" + quoted(attribute) +
         R"(,"Enabled":)" + (on ? "true" : "false") + "}}";
}

Outcome Tables::describe_time_to_live(const Json& body) {
  Reader reader;
  const std::string& attribute =
      entry_of(table_name(body, reader)).clean_up_attribute;
  if (attribute.empty()) {
    return R"({"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}})";
  }
  return R"({"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED",)"
         R"("AttributeName":)" +
         quoted(attribute) + "}}";
}

}  // namespace dynamodb
}  // namespace world
