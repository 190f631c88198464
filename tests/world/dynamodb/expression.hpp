// The expressions of DynamoDB's requests.  An attribute is named by itself or
// by a placeholder; no client of the simulation looks into lists and maps.
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_EXPRESSION_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_EXPRESSION_HPP

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/world/dynamodb/json.hpp"
#include "tests/world/dynamodb/value.hpp"

namespace world::dynamodb {

// What the placeholders of a request stand for.
class Bindings {
 public:
  explicit Bindings(Members& request);

  // Null if it stands for nothing.  Otherwise it counts as used from then on.
  const Value* name(const std::string& mark) { return bound(names_, mark); }
  const Value* value(const std::string& mark) { return bound(values_, mark); }
  void check_all_used() const;

 private:
  const Value* bound(const Item& all, const std::string& mark);

  Item names_, values_;  // "#name", ":value"
  std::set<std::string> used_;
};

// Each of these refuses a text that is no such expression, or that is wrong for
// every item.  `parameter`: "ConditionExpression", for the message.

struct Condition {
  std::function<bool(const Item&)> holds;
  std::set<std::string> attributes;  // Those that it names.
};
Condition parse_condition(const char* parameter, const std::string& text,
                          Bindings& bindings);

struct Change {
  enum class Kind { set, remove, add };
  Kind kind;
  std::string attribute;
  Value value{};  // Unless it is `remove`.
};
std::vector<Change> parse_update(const std::string& text, Bindings& bindings);
// Refuses an update that cannot be made to this item.
void make_changes(const std::vector<Change>& update, Item& item);

std::vector<std::string> parse_projection(const std::string& text,
                                          Bindings& bindings);

// "#name = :value", of the partition key.
struct KeyCondition {
  std::string attribute;
  Value value;
};
KeyCondition parse_key_condition(const std::string& text, Bindings& bindings);

char to_upper(char c);    // Of ASCII.
bool is_of_word(char c);  // A letter, a digit or '_'.

}  // namespace world::dynamodb

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_EXPRESSION_HPP
