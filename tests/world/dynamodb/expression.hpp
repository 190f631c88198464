// The expressions of DynamoDB's requests, as they are parsed: conditions (also
// filters and key conditions), updates and projections.  Their placeholders
// ("#name", ":value") are kept, so that an expression is parsed only once for
// all requests that have its text.
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_EXPRESSION_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_EXPRESSION_HPP

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/world/dynamodb/value.hpp"

namespace world {
namespace dynamodb {

// What a request has its placeholders stand for.
struct Bindings {
  std::vector<std::pair<std::string, std::string>> names;  // "#n", "name"
  Item values;                                             // ":v"

  const std::string* name(std::string_view placeholder) const;
};

// A document path: a.#b[3]
struct Step {
  std::string name;       // Or "#name"; empty: it is an index.
  std::size_t index = 0;  // Into a list.
};
using Path = std::vector<Step>;

inline bool operator==(const Step& one, const Step& other) {
  return one.name == other.name && one.index == other.index;
}

struct Operand {
  enum class Kind {
    path,
    value,
    size,  // Of a path's or a value's content.
    if_not_exists,
    list_append,
    plus,
    minus,
  };
  Kind kind = Kind::path;
  Path path{};
  std::string value{};           // ":value"
  std::vector<Operand> parts{};  // Of a function, of a sum.
};

struct Condition {
  enum class Kind {
    all,       // AND
    any,       // OR
    negation,  // NOT
    equal,
    not_equal,
    less,
    less_or_equal,
    greater,
    greater_or_equal,
    between,
    in,
    attribute_exists,
    attribute_not_exists,
    attribute_type,
    begins_with,
    contains,
  };
  Kind kind = Kind::all;
  std::vector<Condition> parts{};   // Of AND, OR and NOT.
  std::vector<Operand> operands{};  // Of all others.
};

// One action of an update.
struct Change {
  enum class Kind { set, remove, add, take_out };  // SET, REMOVE, ADD, DELETE
  Kind kind = Kind::set;
  Path path{};
  Operand operand{};  // None with REMOVE.
};

struct Expression {
  std::string parameter;  // "ConditionExpression"
  // Of these, that which the parameter is for.
  Condition condition;
  std::vector<Change> update;
  std::vector<Path> projection;
  std::vector<std::string> placeholders;  // Of both kinds.
};
using ExpressionPointer = std::shared_ptr<const Expression>;

// Refuses what is not an expression of that parameter.
ExpressionPointer parse(std::string_view parameter, std::string_view text);

bool is_reserved(std::string word);

// What was parsed before.
class ExpressionCache {
 public:
  ExpressionPointer get(std::string_view parameter, const std::string& text);

 private:
  std::map<std::string, ExpressionPointer, std::less<>> parsed_;
};

}  // namespace dynamodb
}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_EXPRESSION_HPP
