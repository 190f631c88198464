// What writes items: PutItem, UpdateItem, DeleteItem and TransactWriteItems.
#include <functional>
#include <optional>
#include <utility>

#include "tests/world/dynamodb/expression.hpp"
#include "tests/world/dynamodb/refusal.hpp"
#include "tests/world/dynamodb/tables.hpp"

namespace world::dynamodb {
namespace {

// From the developer guide ("Quotas in Amazon DynamoDB").
constexpr std::size_t kMostOfItem = 400 * 1024;
// From the API reference ("TransactWriteItems").
constexpr std::size_t kMostParts = 100;
constexpr std::size_t kMostOfToken = 36;
constexpr std::chrono::minutes kTokenTime{10};

constexpr const char* kConditionFailed = "ConditionalCheckFailedException";

// Refuses a value that is not among those allowed, each with a blank around it.
void check_choice(const std::string& value, std::string_view allowed) {
  if (allowed.find(" " + value + " ") != allowed.npos) return;
  invalid("1 validation error detected: Value '" + value +
          "' failed to satisfy constraint: Member must satisfy enum value set");
}

// One write, which goes through these steps.  In a transaction, all of its
// writes go through each step before the next.
class Write {
 public:
  // Refuses what is wrong whatever the tables hold.
  Write(WriteKind kind, Members& in);
  void locate(Tables& tables);
  void evaluate();  // The condition, and what the item becomes.
  void carry_out();

  const std::string& table_name() const { return table_name_; }
  bool is_of_same_item(const Write& other) const {
    return table_ == other.table_ && place_ == other.place_;
  }
  // Known once it was evaluated; null if there is none.
  const Item* before() const { return before_; }
  const Item& after() const { return after_; }
  Item changed() const;  // What is changed in it, as it was before.

 private:
  const WriteKind kind_;
  std::string table_name_;
  Item subject_;  // The Item of a put, the Key of any other.
  std::optional<Condition> condition_{};
  std::vector<Change> update_{};
  bool tells_ = false;  // What the condition met, if it fails.

  Table* table_ = nullptr;
  Place place_{};
  const Item* before_ = nullptr;
  Item after_{};
};

Write::Write(WriteKind kind, Members& in)
    : kind_(kind), table_name_(in.text("TableName").value_or("")) {
  const auto subject = in.item(kind == WriteKind::put ? "Item" : "Key");
  if (!subject) invalid("Value null at 'key' or 'item'");
  subject_ = *subject;
  if (subject_.count("") > 0) invalid("Empty attribute name");
  if (size_of(subject_) > kMostOfItem) {
    invalid("Item size has exceeded the maximum allowed size");
  }
  const std::string on_failure =
      in.text("ReturnValuesOnConditionCheckFailure").value_or("NONE");
  check_choice(on_failure, " NONE ALL_OLD ");
  tells_ = on_failure == "ALL_OLD";
  Bindings bindings(in);
  if (const auto condition = in.text("ConditionExpression")) {
    condition_ = parse_condition("ConditionExpression", *condition, bindings);
  } else if (kind == WriteKind::check) {
    invalid("Value null at 'conditionExpression'");
  }
  if (kind == WriteKind::update) {
    const auto update = in.text("UpdateExpression");
    if (update) update_ = parse_update(*update, bindings);
  }
  bindings.check_all_used();
}

void Write::locate(Tables& tables) {
  table_ = &tables.existing(table_name_);
  place_ = kind_ == WriteKind::put ? table_->place_of_item(subject_)
                                   : table_->place_of_key(subject_);
  for (const Change& change : update_) {
    if (table_->is_of_key(change.attribute)) {
      invalid(
          "One or more parameter values were invalid: Cannot update "
          "attribute " +
          change.attribute + ". This attribute is part of the key");
    }
  }
}

void Write::evaluate() {
  before_ = table_->find(place_);
  if (condition_ &&
      !condition_->holds(before_ != nullptr ? *before_ : Item())) {
    throw Refusal{
        kConditionFailed, "The conditional request failed",
        tells_ && before_ != nullptr ? R"("Item":)" + json_of(*before_) : ""};
  }
  const bool updates = kind_ == WriteKind::update && before_ != nullptr;
  after_ = updates ? *before_ : subject_;
  make_changes(update_, after_);
  if (size_of(after_) > kMostOfItem) {
    invalid("Item size to update has exceeded the maximum allowed size");
  }
}

void Write::carry_out() {
  if (kind_ == WriteKind::remove) {
    table_->items.erase(place_);
  } else if (kind_ != WriteKind::check) {
    table_->items[place_] = std::move(after_);
  }
}

Item Write::changed() const {
  Item changed;
  for (const Change& change : update_) {
    if (before_ == nullptr) break;
    const auto old = before_->find(change.attribute);
    if (old != before_->end()) changed.insert(*old);
  }
  return changed;
}

}  // namespace

// --- A write by itself -------------------------------------------------------

std::string Tables::put_item(const Json& body) {
  return write(WriteKind::put, body);
}
std::string Tables::update_item(const Json& body) {
  return write(WriteKind::update, body);
}
std::string Tables::delete_item(const Json& body) {
  return write(WriteKind::remove, body);
}

std::string Tables::write(WriteKind kind, const Json& body) {
  Members in(body);
  Write write(kind, in);
  const std::string wanted = in.text("ReturnValues").value_or("NONE");
  in.finish();
  if (kind != WriteKind::update) {
    check_choice(wanted, " NONE ALL_OLD ");
  } else if (wanted == "UPDATED_NEW") {
    not_simulated(wanted);
  } else {
    check_choice(wanted, " NONE ALL_OLD ALL_NEW UPDATED_OLD ");
  }
  write.locate(*this);
  write.evaluate();
  Item told;
  if (wanted == "ALL_OLD" && write.before() != nullptr) told = *write.before();
  if (wanted == "ALL_NEW") told = write.after();
  if (wanted == "UPDATED_OLD") told = write.changed();
  std::string answer = "{}";
  if (!told.empty()) answer = R"({"Attributes":)" + json_of(told) + "}";
  write.carry_out();
  return answer;
}

// --- Transactions ------------------------------------------------------------

namespace {

struct Part {
  Write write;
  std::optional<Refusal> reason{};  // Why it cannot be done.

  void attempt(const std::function<void(Write&)>& step) {
    if (!reason) try {
        step(write);
      } catch (const Refusal& refusal) {
        reason = refusal;
      }
  }
};

// {"Put":{...}}
void read_part(const Json& json, std::vector<Part>& parts) {
  constexpr std::pair<const char*, WriteKind> kKinds[] = {
      {"Put", WriteKind::put},
      {"Update", WriteKind::update},
      {"Delete", WriteKind::remove},
      {"ConditionCheck", WriteKind::check}};
  Members in(json);
  const std::size_t before = parts.size();
  for (const auto& [name, kind] : kKinds) {
    const Json* const content = in.find(name);
    if (content == nullptr) continue;
    Members members(*content);
    parts.push_back({Write(kind, members)});
    members.finish();
    if (kind == WriteKind::update && !members.find("UpdateExpression")) {
      invalid("Value null at 'updateExpression'");
    }
  }
  in.finish();
  if (parts.size() != before + 1) {
    invalid(
        "TransactItems can only contain one of Check, Put, Update or Delete");
  }
}

void check_distinct(const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    for (const Part* other = parts.data(); other != &part; ++other) {
      if (!part.reason && !other->reason &&
          part.write.is_of_same_item(other->write)) {
        invalid(
            "Transaction request cannot include multiple operations on one "
            "item");
      }
    }
  }
}

Refusal cancelled(const std::vector<Part>& parts) {
  std::string codes, reasons;
  for (const auto& [write, reason] : parts) {
    const std::string code = !reason ? "None"
                             : reason->type == kConditionFailed
                                 ? "ConditionalCheckFailed"
                                 : "ValidationError";
    codes += (codes.empty() ? "" : ", ") + code;
    reasons += (reasons.empty() ? "" : ",") + (R"({"Code":")" + code + '"');
    if (reason && !reason->more.empty()) reasons += "," + reason->more;
    if (reason) reasons += R"(,"Message":)" + quoted(reason->message);
    reasons += '}';
  }
  return {"TransactionCanceledException",
          "Transaction cancelled, please refer cancellation reasons for "
          "specific reasons [" +
              codes + "]",
          R"("CancellationReasons":[)" + reasons + "]"};
}

}  // namespace

bool Tables::is_repeated(const std::string& token,
                         const std::string& parts) const {
  const auto found = transactions_.find(token);
  if (found == transactions_.end() || now_ - found->second.time >= kTokenTime) {
    return false;
  }
  if (found->second.parts != parts) {
    throw Refusal{"IdempotentParameterMismatchException",
                  "The request uses the same client token as a previous, but "
                  "non-identical request."};
  }
  return true;
}

std::string Tables::transact_write_items(const Json& body) {
  Members in(body);
  const auto token = in.text("ClientRequestToken");
  const Json* const items = in.array("TransactItems");
  in.finish();
  if (items == nullptr) invalid("Value null at 'transactItems'");
  std::vector<Part> parts;
  for (const Json& one : items->GetArray()) read_part(one, parts);
  if (parts.empty() || parts.size() > kMostParts) {
    invalid("TransactItems must have 1 to 100 members");
  }
  if (token && (token->empty() || token->size() > kMostOfToken)) {
    invalid("ClientRequestToken must have 1 to 36 characters");
  }
  for (Part& part : parts) existing(part.write.table_name());
  const std::string text = json_of(*items);
  if (token && is_repeated(*token, text)) return "{}";
  for (Part& part : parts) {
    part.attempt([this](Write& write) { write.locate(*this); });
  }
  check_distinct(parts);
  for (Part& part : parts) part.attempt([](Write& write) { write.evaluate(); });
  for (const Part& part : parts) {
    if (part.reason) throw cancelled(parts);
  }
  for (Part& part : parts) part.write.carry_out();
  if (token) transactions_[*token] = {text, now_};
  return "{}";
}

}  // namespace world::dynamodb
