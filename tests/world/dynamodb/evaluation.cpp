#include "tests/world/dynamodb/evaluation.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "tests/world/dynamodb/number.hpp"
#include "tests/world/dynamodb/refusal.hpp"

namespace world {
namespace dynamodb {
namespace {

using Test = Condition::Kind;
using Term = Operand::Kind;

// --- What a request's values allow -------------------------------------------

// As the service names types where it refuses ADD and DELETE.
const char* long_name_of(Type type) {
  switch (type) {
    case Type::string:
      return "STRING";
    case Type::number:
      return "NUMBER";
    case Type::binary:
      return "BINARY";
    case Type::boolean:
      return "BOOLEAN";
    case Type::null:
      return "NULL";
    case Type::list:
      return "LIST";
    case Type::map:
      return "MAP";
    default:
      return "SET";
  }
}

std::string text_of(const Path& path) {
  std::string text = "[";
  for (const Step& step : path) {
    if (text.size() > 1) text += ", ";
    text +=
        step.name.empty() ? "[" + std::to_string(step.index) + "]" : step.name;
  }
  return text + "]";
}

class Checker {
 public:
  Checker(const Expression& expression, const Bindings& bindings)
      : expression_(expression), bindings_(bindings) {}

  void check() const;

 private:
  [[noreturn]] void fail(const std::string& what) const {
    invalid("Invalid " + expression_.parameter + ": " + what);
  }
  [[noreturn]] void wrong_type(const std::string& of, Type type) const {
    fail(
        "Incorrect operand type for operator or function; operator or "
        "function: " +
        of + ", operand type: " + tag_of(type));
  }
  // Null if it is not a value of the request's.
  const Value* value_of(const Operand& operand) const {
    return operand.kind == Term::value ? bindings_.values.find(operand.value)
                                       : nullptr;
  }
  void placeholders() const;
  void condition(const Condition& condition) const;
  void operand(const Operand& operand) const;
  void distinct(const Condition& condition) const;
  void bounds(const Condition& condition) const;
  void type_name(const Operand& operand) const;
  void change(const Change& change) const;
  void paths() const;

  const Expression& expression_;
  const Bindings& bindings_;
};

void Checker::placeholders() const {
  for (const std::string& placeholder : expression_.placeholders) {
    if (placeholder[0] == '#' && bindings_.name(placeholder) == nullptr) {
      fail(
          "An expression attribute name used in the document path is not "
          "defined; attribute name: " +
          placeholder);
    }
    if (placeholder[0] == ':' &&
        bindings_.values.find(placeholder) == nullptr) {
      fail(
          "An expression attribute value used in expression is not defined; "
          "attribute value: " +
          placeholder);
    }
  }
}

// Of a condition or an update.
void Checker::operand(const Operand& operand) const {
  for (const Operand& part : operand.parts) {
    this->operand(part);
    const Value* value = value_of(part);
    if (value == nullptr) continue;
    const Type type = value->type;
    if (operand.kind == Term::size &&
        (type == Type::number || type == Type::boolean || type == Type::null)) {
      wrong_type("size", type);
    }
    if (operand.kind == Term::plus && type != Type::number) {
      wrong_type("+", type);
    }
    if (operand.kind == Term::minus && type != Type::number) {
      wrong_type("-", type);
    }
    if (operand.kind == Term::list_append && type != Type::list) {
      wrong_type("list_append", type);
    }
  }
}

void Checker::distinct(const Condition& condition) const {
  const auto& operands = condition.operands;
  if (operands.size() != 2 || operands[0].kind != Term::path ||
      operands[1].kind != Term::path) {
    return;
  }
  const Path first = resolved(operands[0].path, bindings_);
  if (first != resolved(operands[1].path, bindings_)) return;
  fail(
      "The first operand must be distinct from the remaining operands for "
      "this operator or function; first operand: " +
      text_of(first));
}

void Checker::bounds(const Condition& condition) const {
  const Value* lower = value_of(condition.operands[1]);
  const Value* upper = value_of(condition.operands[2]);
  if (lower == nullptr || upper == nullptr) return;
  if (lower->type != upper->type) {
    fail(
        "The BETWEEN operator requires same data type for lower and upper "
        "bounds");
  }
  if (is_scalar(lower->type) && compare(*lower, *upper) > 0) {
    fail(
        "The BETWEEN operator requires upper bound to be greater than or "
        "equal to lower bound");
  }
}

void Checker::type_name(const Operand& operand) const {
  const Value* value = value_of(operand);
  if (value == nullptr || value->type != Type::string) {
    fail(
        "Incorrect operand type for operator or function; operator or "
        "function: attribute_type");
  }
  if (!type_of(value->text)) {
    fail("Invalid attribute type name found; type: " + value->text);
  }
}

void Checker::condition(const Condition& condition) const {
  for (const Condition& part : condition.parts) this->condition(part);
  for (const Operand& one : condition.operands) operand(one);
  distinct(condition);
  if (condition.kind == Test::between) bounds(condition);
  if (condition.kind == Test::attribute_type) type_name(condition.operands[1]);
  if (condition.kind != Test::begins_with) return;
  for (const Operand& one : condition.operands) {
    if (one.kind == Term::size) wrong_type("begins_with", Type::number);
    const Value* value = value_of(one);
    if (value != nullptr && value->type != Type::string &&
        value->type != Type::binary) {
      wrong_type("begins_with", value->type);
    }
  }
}

void Checker::change(const Change& change) const {
  operand(change.operand);
  const bool adds = change.kind == Change::Kind::add;
  if (!adds && change.kind != Change::Kind::take_out) return;
  const Type type = value_of(change.operand)->type;
  if (is_set(type) || (adds && type == Type::number)) return;
  fail(std::string("Incorrect operand type for operator or function; operator: "
                   "") +
       (adds ? "ADD" : "DELETE") + ", operand type: " + long_name_of(type));
}

// Those of an update or a projection: none may lead into another.
void Checker::paths() const {
  std::vector<Path> paths;
  for (const Path& path : expression_.projection) {
    paths.push_back(resolved(path, bindings_));
  }
  for (const Change& change : expression_.update) {
    paths.push_back(resolved(change.path, bindings_));
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      std::size_t same = 0;
      const std::size_t shorter = std::min(paths[i].size(), paths[j].size());
      while (same < shorter && paths[i][same] == paths[j][same]) ++same;
      const bool overlap = same == shorter;
      const bool conflict = !overlap && paths[i][same].name.empty() !=
                                            paths[j][same].name.empty();
      if (!overlap && !conflict) continue;
      fail(std::string("Two document paths ") +
           (overlap ? "overlap" : "conflict") +
           " with each other; must remove or rewrite one of these paths; path "
           "one: " +
           text_of(paths[j]) + ", path two: " + text_of(paths[i]));
    }
  }
}

void Checker::check() const {
  placeholders();
  condition(expression_.condition);
  for (const Change& one : expression_.update) change(one);
  paths();
}

// --- Conditions --------------------------------------------------------------

const Value* next_of(const Value& value, const Step& step,
                     const Bindings& bindings) {
  if (step.name.empty()) {
    return value.type == Type::list && step.index < value.list.size()
               ? &value.list[step.index]
               : nullptr;
  }
  const bool stands_in = step.name[0] == '#';
  return value.map.find(stands_in ? *bindings.name(step.name) : step.name);
}

const Value* find(const Item& item, const Path& path,
                  const Bindings& bindings) {
  const std::string& first = path[0].name;
  const Value* value =
      item.find(first[0] == '#' ? *bindings.name(first) : first);
  for (std::size_t i = 1; i < path.size() && value != nullptr; ++i) {
    value = next_of(*value, path[i], bindings);
  }
  return value;
}

// As the function size() tells it; null for what has none.
bool content_size(const Value& value, std::size_t& size) {
  switch (value.type) {
    case Type::string:
      size = static_cast<std::size_t>(
          std::count_if(value.text.begin(), value.text.end(), [](char c) {
            return (c & 0xC0) != 0x80;  // Begins a character.
          }));
      return true;
    case Type::binary:
      size = value.text.size();
      return true;
    case Type::list:
      size = value.list.size();
      return true;
    case Type::map:
      size = value.map.size();
      return true;
    default:
      size = value.members.size();
      return is_set(value.type);
  }
}

// Null if the item has no such attribute.  `own` has room for a value that is
// neither the item's nor the request's.
const Value* evaluated(const Operand& operand, const Item& item,
                       const Bindings& bindings, Value& own) {
  if (operand.kind == Term::path) return find(item, operand.path, bindings);
  if (operand.kind == Term::value) return bindings.values.find(operand.value);
  const Value* value = evaluated(operand.parts[0], item, bindings, own);
  std::size_t size = 0;
  if (value == nullptr || !content_size(*value, size)) return nullptr;
  own = number_value(std::to_string(size));
  return &own;
}

bool contains(const Value& value, const Value& part) {
  if (value.type == Type::string || value.type == Type::binary) {
    return value.type == part.type &&
           value.text.find(part.text) != std::string::npos;
  }
  if (is_set(value.type)) {
    return member_of(value.type) == part.type &&
           std::binary_search(value.members.begin(), value.members.end(),
                              part.text);
  }
  return std::find(value.list.begin(), value.list.end(), part) !=
         value.list.end();
}

bool begins_with(const Value& value, const Value& prefix) {
  return (value.type == Type::string || value.type == Type::binary) &&
         value.type == prefix.type &&
         value.text.compare(0, prefix.text.size(), prefix.text) == 0;
}

// Values of different types have no order.
bool has_order(const Value& one, const Value& other) {
  return one.type == other.type && is_scalar(one.type);
}

bool is_ordered(Test test, const Value& one, const Value& other) {
  if (!has_order(one, other)) return false;
  const int order = compare(one, other);
  switch (test) {
    case Test::less:
      return order < 0;
    case Test::less_or_equal:
      return order <= 0;
    case Test::greater:
      return order > 0;
    default:
      return order >= 0;
  }
}

// Of two operands that are both there.
bool compares(Test test, const Value& one, const Value& other) {
  switch (test) {
    case Test::equal:
      return one == other;
    case Test::not_equal:
      return !(one == other);
    case Test::attribute_type:
      return other.text == tag_of(one.type);
    case Test::begins_with:
      return begins_with(one, other);
    case Test::contains:
      return contains(one, other);
    default:
      return is_ordered(test, one, other);
  }
}

bool is_in(const Condition& condition, const Value& value, const Item& item,
           const Bindings& bindings) {
  for (std::size_t i = 1; i < condition.operands.size(); ++i) {
    Value own;
    const Value* one = evaluated(condition.operands[i], item, bindings, own);
    if (one != nullptr && *one == value) return true;
  }
  return false;
}

bool is_between(const Condition& condition, const Value& value,
                const Item& item, const Bindings& bindings) {
  Value own_lower, own_upper;
  const Value* lower =
      evaluated(condition.operands[1], item, bindings, own_lower);
  const Value* upper =
      evaluated(condition.operands[2], item, bindings, own_upper);
  return lower != nullptr && upper != nullptr &&
         is_ordered(Test::greater_or_equal, value, *lower) &&
         is_ordered(Test::less_or_equal, value, *upper);
}

// --- Updates -----------------------------------------------------------------

[[noreturn]] void no_such_path() {
  invalid(
      "The document path provided in the update expression is invalid for "
      "update");
}

[[noreturn]] void wrong_operand() {
  invalid("An operand in the update expression has an incorrect data type");
}

// The value of an operand of SET.
Value computed(const Operand& operand, const Item& item,
               const Bindings& bindings) {
  if (operand.kind == Term::path || operand.kind == Term::value) {
    Value none;
    const Value* value = evaluated(operand, item, bindings, none);
    if (value == nullptr) {
      invalid(
          "The provided expression refers to an attribute that does not exist "
          "in the item");
    }
    return *value;
  }
  if (operand.kind == Term::if_not_exists) {
    const Value* present = find(item, operand.parts[0].path, bindings);
    return present != nullptr ? *present
                              : computed(operand.parts[1], item, bindings);
  }
  Value one = computed(operand.parts[0], item, bindings);
  const Value other = computed(operand.parts[1], item, bindings);
  const bool lists = operand.kind == Term::list_append;
  const Type type = lists ? Type::list : Type::number;
  if (one.type != type || other.type != type) wrong_operand();
  if (lists) {
    one.list.insert(one.list.end(), other.list.begin(), other.list.end());
    return one;
  }
  const Number addend = read_number(other.text);
  return number_value(
      text_of(sum(read_number(one.text),
                  operand.kind == Term::minus ? negated(addend) : addend)));
}

Value with_members(Value value, const Value& more) {
  std::vector<std::string> all;
  std::set_union(value.members.begin(), value.members.end(),
                 more.members.begin(), more.members.end(),
                 std::back_inserter(all));
  value.members = std::move(all);
  return value;
}

Value without_members(Value value, const Value& less) {
  std::vector<std::string> left;
  std::set_difference(value.members.begin(), value.members.end(),
                      less.members.begin(), less.members.end(),
                      std::back_inserter(left));
  value.members = std::move(left);
  return value;
}

// What ADD or DELETE makes of an attribute; null stands for one that is not
// there, and an empty set means that there is none afterwards.
Value amended(const Value* before, Change::Kind kind, const Value& by) {
  if (before != nullptr && before->type != by.type) wrong_operand();
  if (kind == Change::Kind::take_out) {
    return before == nullptr ? Value{by.type} : without_members(*before, by);
  }
  if (before == nullptr) return by;
  if (by.type != Type::number) return with_members(*before, by);
  return number_value(
      text_of(sum(read_number(before->text), read_number(by.text))));
}

// The map or list that has the last step of a path of several.
Value& parent_of(Item& item, const Path& path) {
  Value* value = item.find(path[0].name);
  for (std::size_t i = 1; i + 1 < path.size() && value != nullptr; ++i) {
    const Step& step = path[i];
    if (!step.name.empty()) {
      value = value->map.find(step.name);
    } else {
      value =
          step.index < value->list.size() ? &value->list[step.index] : nullptr;
    }
  }
  if (value == nullptr ||
      value->type != (path.back().name.empty() ? Type::list : Type::map)) {
    no_such_path();
  }
  return *value;
}

void put_at(Item& item, const Path& path, Value value) {
  const Step& last = path.back();
  if (path.size() == 1) return item.set(last.name, std::move(value));
  Value& parent = parent_of(item, path);
  if (!last.name.empty()) {
    parent.map.set(last.name, std::move(value));
  } else if (last.index < parent.list.size()) {
    parent.list[last.index] = std::move(value);
  } else {
    parent.list.push_back(std::move(value));
  }
}

void remove_at(Item& item, const Path& path) {
  const Step& last = path.back();
  if (path.size() == 1) return item.erase(last.name);
  Value& parent = parent_of(item, path);
  if (!last.name.empty()) {
    parent.map.erase(last.name);
  } else if (last.index < parent.list.size()) {
    parent.list.erase(parent.list.begin() +
                      static_cast<std::ptrdiff_t>(last.index));
  }
}

// Of two elements of a list, the later one first.
bool is_removed_before(const Path& one, const Path& other) {
  return std::lexicographical_compare(
      other.begin(), other.end(), one.begin(), one.end(),
      [](const Step& a, const Step& b) {
        return std::tie(a.name, a.index) < std::tie(b.name, b.index);
      });
}

// --- Projections -------------------------------------------------------------

using Paths = std::vector<Path>;

// The paths that go on from here by this step, without it.
Paths behind(const Paths& paths, const Step& step) {
  Paths rests;
  for (const Path& path : paths) {
    if (path[0] == step) rests.emplace_back(path.begin() + 1, path.end());
  }
  return rests;
}

bool select(const Value& value, const Paths& paths, Value& selected) {
  if (paths.empty()) return false;
  selected.type = value.type;
  if (paths[0].empty()) {  // The only one, for none overlap.
    selected = value;
  } else if (value.type == Type::map) {
    selected.map = projected(value.map, paths);
    return !selected.map.empty();
  } else if (value.type == Type::list) {
    for (std::size_t i = 0; i < value.list.size(); ++i) {
      Value part;
      if (select(value.list[i], behind(paths, {"", i}), part)) {
        selected.list.push_back(std::move(part));
      }
    }
    return !selected.list.empty();
  } else {
    return false;
  }
  return true;
}

}  // namespace

void check(const Expression& expression, const Bindings& bindings) {
  Checker(expression, bindings).check();
}

Path resolved(Path path, const Bindings& bindings) {
  for (Step& step : path) {
    if (!step.name.empty() && step.name[0] == '#') {
      step.name = *bindings.name(step.name);
    }
  }
  return path;
}

bool holds(const Condition& condition, const Item& item,
           const Bindings& bindings) {
  const auto part_holds = [&](const Condition& part) {
    return holds(part, item, bindings);
  };
  const auto& parts = condition.parts;
  switch (condition.kind) {
    case Test::all:
      return std::all_of(parts.begin(), parts.end(), part_holds);
    case Test::any:
      return std::any_of(parts.begin(), parts.end(), part_holds);
    case Test::negation:
      return !part_holds(parts[0]);
    default:
      break;
  }
  Value own_first, own_second;
  const auto& operands = condition.operands;
  const Value* first = evaluated(operands[0], item, bindings, own_first);
  if (condition.kind == Test::attribute_exists) return first != nullptr;
  if (condition.kind == Test::attribute_not_exists) return first == nullptr;
  if (condition.kind == Test::in) {
    return first != nullptr && is_in(condition, *first, item, bindings);
  }
  if (condition.kind == Test::between) {
    return first != nullptr && is_between(condition, *first, item, bindings);
  }
  const Value* second = evaluated(operands[1], item, bindings, own_second);
  if (first == nullptr || second == nullptr) {
    return condition.kind == Test::not_equal;
  }
  return compares(condition.kind, *first, *second);
}

Item updated(const Item& item, const std::vector<Change>& update,
             const Bindings& bindings) {
  using Kind = Change::Kind;
  Item result = item;
  std::vector<Path> removed;
  for (const Change& change : update) {
    const Path path = resolved(change.path, bindings);
    if (change.kind == Kind::remove) {
      removed.push_back(path);
      continue;
    }
    if (change.kind == Kind::set) {
      put_at(result, path, computed(change.operand, item, bindings));
      continue;
    }
    Value value = amended(find(item, change.path, bindings), change.kind,
                          *bindings.values.find(change.operand.value));
    if (is_set(value.type) && value.members.empty()) {
      removed.push_back(path);
    } else {
      put_at(result, path, std::move(value));
    }
  }
  std::sort(removed.begin(), removed.end(), is_removed_before);
  for (const Path& path : removed) remove_at(result, path);
  return result;
}

Item projected(const Item& item, const std::vector<Path>& resolved_paths) {
  Item result;
  for (const Attribute& attribute : item) {
    Value part;
    if (select(attribute.value, behind(resolved_paths, {attribute.name}),
               part)) {
      result.set(attribute.name, std::move(part));
    }
  }
  return result;
}

}  // namespace dynamodb
}  // namespace world
