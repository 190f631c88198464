// TransactWriteItems: all of its writes, or none.
#include <rapidjson/document.h>

#include <algorithm>
#include <utility>

#include "tests/world/dynamodb/refusal.hpp"
#include "tests/world/dynamodb/tables.hpp"

namespace world {
namespace dynamodb {

// --- Parts -------------------------------------------------------------------

struct Tables::Part {
  Write write;
  enum class Kind { put, update, remove, check } kind = Kind::check;
  // Why it cannot be done: an element of CancellationReasons; empty: it can be.
  std::string reason{};
  std::string code = "None";
  Item after{};  // Of a put and an update.
};

namespace {

// From the API reference ("TransactWriteItems").
constexpr std::size_t kMostParts = 100;
constexpr std::size_t kMostOfToken = 36;
constexpr std::chrono::minutes kTokenTime{10};

struct Form {
  const char* name;
  const char* needed;  // Beside the table's name.
  const char* members;
};
// In the order of Part::Kind.
constexpr Form kForms[] = {
    {"Put", "Item",
     " TableName Item ConditionExpression ExpressionAttributeNames "
     "ExpressionAttributeValues ReturnValuesOnConditionCheckFailure "},
    {"Update", "UpdateExpression",
     " TableName Key UpdateExpression ConditionExpression "
     "ExpressionAttributeNames ExpressionAttributeValues "
     "ReturnValuesOnConditionCheckFailure "},
    {"Delete", "Key",
     " TableName Key ConditionExpression ExpressionAttributeNames "
     "ExpressionAttributeValues ReturnValuesOnConditionCheckFailure "},
    {"ConditionCheck", "ConditionExpression",
     " TableName Key ConditionExpression ExpressionAttributeNames "
     "ExpressionAttributeValues ReturnValuesOnConditionCheckFailure "},
};

std::string reason_json(const std::string& code, const std::string& message,
                        const std::string& item) {
  return R"({"Code":")" + code + R"(",)" +
         (item.empty() ? "" : R"("Item":)" + item + ",") + R"("Message":)" +
         quoted(message) + "}";
}

bool has(const Request& request, std::string_view needed) {
  if (needed == "Item") return request.item.has_value();
  return request.key &&
         (needed != "UpdateExpression" || request.update.has_value()) &&
         (needed != "ConditionExpression" || request.condition.has_value());
}

}  // namespace

// Appends it; what it says is checked once all of them were read.
void Tables::read_part(const Json& json, Reader& reader,
                       std::vector<Part>& parts) {
  const std::size_t before = parts.size();
  for (const auto& [name, content] : reader.object(json).GetObject()) {
    if (content.IsNull()) continue;
    const std::string_view text(name.GetString(), name.GetStringLength());
    const auto* form =
        std::find_if(std::begin(kForms), std::end(kForms),
                     [text](const Form& one) { return text == one.name; });
    if (form == std::end(kForms)) continue;
    Part part;
    part.kind = static_cast<Part::Kind>(form - std::begin(kForms));
    part.write.request = reader.request(content, form->members);
    parts.push_back(std::move(part));
  }
  if (parts.size() == before + 1) return;
  parts.resize(before + 1);  // Not valid: told by a part without a table.
  parts.back().write.request = Request();
}

// --- Tokens ------------------------------------------------------------------

bool Tables::is_repeated(const std::string& token, const Json& parts) {
  const auto found = transactions_.find(token);
  if (token.empty() || found == transactions_.end() ||
      now_ - found->second.time >= kTokenTime) {
    return false;
  }
  rapidjson::Document before;
  before.Parse<rapidjson::kParseIterativeFlag>(found->second.parts.data(),
                                               found->second.parts.size());
  if (!(before == parts)) {
    refuse("IdempotentParameterMismatchException",
           "The request uses the same client token as a previous, but "
           "non-identical request.");
  }
  return true;
}

void Tables::remember(const std::string& token, const Json& parts) {
  if (token.empty()) return;
  for (auto at = transactions_.begin(); at != transactions_.end();) {
    const bool over = now_ - at->second.time >= kTokenTime;
    at = over ? transactions_.erase(at) : std::next(at);
  }
  transactions_[token] = {json_of(parts), now_};
}

// --- The operation -----------------------------------------------------------

Outcome Tables::transact_write_items(const Json& body) {
  const Json* items = member(body, "TransactItems");
  const Json* token_member = member(body, "ClientRequestToken");
  Reader reader;
  std::vector<Part> parts;
  const std::string token =
      token_member != nullptr ? reader.text(*token_member) : "";
  if (items == nullptr) invalid("Value null at 'transactItems'");
  for (const Json& one : reader.array(*items).GetArray()) {
    read_part(one, reader, parts);
  }
  reader.finish();
  if (parts.empty() || parts.size() > kMostParts) {
    invalid("TransactItems must have 1 to 100 members");
  }
  if (token.size() > kMostOfToken ||
      (token_member != nullptr && token.empty())) {
    invalid("ClientRequestToken must have 1 to 36 characters");
  }
  for (Part& part : parts) {
    const Form& form = kForms[static_cast<std::size_t>(part.kind)];
    if (!has(part.write.request, form.needed)) {
      invalid(
          "TransactItems can only contain one of Check, Put, Update or "
          "Delete, with all that it needs");
    }
    part.write = prepared(std::move(part.write.request));
  }
  for (const Part& part : parts) existing(part.write.request);
  if (is_repeated(token, *items)) return "{}";

  for (Part& part : parts) try {
      locate(part.write);
    } catch (const Refusal& refusal) {
      part.code = "ValidationError";
      part.reason = reason_json(part.code, refusal.message, "");
    }
  for (const Part& part : parts) {
    for (const Part* other = parts.data(); other != &part; ++other) {
      const bool same = part.reason.empty() && other->reason.empty() &&
                        part.write.table == other->write.table &&
                        !(part.write.place < other->write.place) &&
                        !(other->write.place < part.write.place);
      if (same) {
        invalid(
            "Transaction request cannot include multiple operations on one "
            "item");
      }
    }
  }
  bool cancelled = false;
  for (Part& part : parts) {
    if (part.reason.empty()) try {
        const Item* found = part.write.table->find(part.write.place);
        if (!condition_holds(part.write, found)) {
          const bool tells =
              found != nullptr && part.write.request.on_failure == "ALL_OLD";
          part.code = "ConditionalCheckFailed";
          part.reason = reason_json(part.code, "The conditional request failed",
                                    tells ? json_of(*found) : "");
        } else if (part.kind == Part::Kind::update) {
          part.after = updated_by(part.write, found);
        }
      } catch (const Refusal& refusal) {
        part.code = "ValidationError";
        part.reason = reason_json(part.code, refusal.message, "");
      }
    cancelled = cancelled || !part.reason.empty();
  }
  if (cancelled) {
    std::string codes, reasons;
    for (const Part& part : parts) {
      if (!codes.empty()) {
        codes += ", ";
        reasons += ",";
      }
      codes += part.code;
      reasons += part.reason.empty() ? R"({"Code":"None"})" : part.reason;
    }
    throw Refusal{"TransactionCanceledException",
                  "Transaction cancelled, please refer cancellation reasons "
                  "for specific reasons [" +
                      codes + "]",
                  R"("CancellationReasons":[)" + reasons + "]"};
  }
  for (Part& part : parts) {
    Write& write = part.write;
    if (part.kind == Part::Kind::put) {
      write.table->put(write.place, std::move(*write.request.item));
    } else if (part.kind == Part::Kind::update) {
      write.table->put(write.place, std::move(part.after));
    } else if (part.kind == Part::Kind::remove) {
      write.table->erase(write.place);
    }
  }
  remember(token, *items);
  return "{}";
}

}  // namespace dynamodb
}  // namespace world
