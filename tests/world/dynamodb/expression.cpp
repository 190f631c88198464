// Parses expressions by recursive descent, after the grammar of the developer
// guide ("Condition and filter expressions, operators, and functions in
// DynamoDB", "Using update expressions in DynamoDB").
#include "tests/world/dynamodb/expression.hpp"

#include <algorithm>
#include <utility>

#include "tests/world/dynamodb/number.hpp"
#include "tests/world/dynamodb/refusal.hpp"

namespace world::dynamodb {
namespace {

// From the developer guide ("Quotas in Amazon DynamoDB", "Expressions").
constexpr std::size_t kMostBytes = 4096;
constexpr int kMostOperators = 300;
constexpr std::size_t kMostInList = 100;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "#name", ":value"
void check_placeholders(const Item& bound, char mark) {
  if (bound.empty()) invalid("ExpressionAttribute... must not be empty");
  for (const auto& [name, value] : bound) {
    if (name.size() < 2 || name[0] != mark ||
        !std::all_of(name.begin() + 1, name.end(), is_of_word)) {
      invalid("ExpressionAttribute... contains invalid key: " + name);
    }
  }
}

// --- Conditions --------------------------------------------------------------

using Holds = std::function<bool(const Item&)>;

struct Operand {
  enum class Kind { attribute, size_of_attribute, value };
  Kind kind;
  std::string attribute{};
  Value value{};

  // Null if the item has no such attribute.  `own` has room for a size.
  const Value* in(const Item& item, Value& own) const {
    if (kind == Kind::value) return &value;
    const Value* const found = find(item, attribute);
    if (kind == Kind::attribute || found == nullptr) return found;
    if (!found->size) return nullptr;
    own = scalar_value("N", std::to_string(*found->size));
    return &own;
  }
};

// `relation` is an operator or a function of two operands.
bool is_related(const Value& one, const std::string& relation,
                const Value& other) {
  if (relation == "=") return one == other;
  if (relation == "<>") return !(one == other);
  if (relation == "attribute_type") return other.text == one.type;
  // Values of different types have no order.
  if (one.type != other.type || !is_scalar(one.type)) return false;
  if (relation == "begins_with") {
    return one.type != "N" &&
           one.text.compare(0, other.text.size(), other.text) == 0;
  }
  const int order = compare(one, other);
  if (order == 0) return relation == "<=" || relation == ">=";
  return relation[0] == (order < 0 ? '<' : '>');
}

// An attribute that is not there differs from all others.
Holds related(const Operand& one, const std::string& relation,
              const Operand& other) {
  return [=](const Item& item) {
    Value own, others_own;
    const Value* const first = one.in(item, own);
    const Value* const second = other.in(item, others_own);
    if (first == nullptr || second == nullptr) return relation == "<>";
    return is_related(*first, relation, *second);
  };
}

Holds both(Holds one, Holds other) {
  return [one = std::move(one), other = std::move(other)](const Item& item) {
    return one(item) && other(item);
  };
}

Holds either(Holds one, Holds other) {
  return [one = std::move(one), other = std::move(other)](const Item& item) {
    return one(item) || other(item);
  };
}

// --- The parser --------------------------------------------------------------

class Parser {
 public:
  Parser(std::string parameter, const std::string& text, Bindings& bindings)
      : parameter_(std::move(parameter)), bindings_(bindings), rest_(text) {
    if (text.size() > kMostBytes) fail("Expression size has exceeded 4096");
    next();
    if (token_.empty()) fail("The expression can not be empty");
  }

  Holds condition() {
    Holds condition = alternatives();
    expect("");
    return condition;
  }
  std::vector<Change> update() {
    std::vector<Change> changes;
    while (!token_.empty()) section(changes);
    return changes;
  }
  std::vector<std::string> projection() {
    std::vector<std::string> names;
    do {
      names.push_back(new_attribute());
    } while (take(","));
    expect("");
    return names;
  }
  KeyCondition key_condition() {
    std::string name = attribute();
    if (!take("=")) not_simulated("such a key condition");
    KeyCondition condition{std::move(name), value()};
    if (!token_.empty()) not_simulated("conditions of sort keys");
    return condition;
  }
  std::set<std::string> attributes() const { return attributes_; }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    invalid("Invalid " + parameter_ + ": " + what);
  }
  [[noreturn]] void syntax_error() const { fail("Syntax error at: " + token_); }

  // --- Tokens: words, placeholders with their marks, and operators

  // The last one is empty.
  void next() {
    skip_blanks();
    std::size_t size = std::min<std::size_t>(rest_.size(), 1);
    const std::string_view two = rest_.substr(0, 2);
    if (two == "<>" || two == "<=" || two == ">=") {
      size = 2;
    } else if (size > 0 &&
               (is_of_word(rest_[0]) || rest_[0] == '#' || rest_[0] == ':')) {
      while (size < rest_.size() && is_of_word(rest_[size])) ++size;
    }
    token_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
    skip_blanks();
    if (token_ == "." || token_ == "[") not_simulated("paths into values");
    if (token_ == "+" || token_ == "-") not_simulated("sums in updates");
  }
  void skip_blanks() {
    rest_.remove_prefix(
        std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }
  bool is_name() const {
    return !token_.empty() && is_of_word(token_[0]) && !is_digit(token_[0]);
  }
  bool is_function() const { return is_name() && rest_.substr(0, 1) == "("; }
  bool is_placeholder(char mark) const {
    return token_.size() > 1 && token_[0] == mark;
  }
  bool take(std::string_view token) {
    if (token_ != token) return false;
    next();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) syntax_error();
  }
  // Whatever the case of its letters.
  bool take_word(std::string_view upper) {
    std::string word = token_;
    std::transform(word.begin(), word.end(), word.begin(), to_upper);
    if (word != upper) return false;
    next();
    return true;
  }
  // It bounds the recursion too.
  void count_operator() {
    if (++operators_ > kMostOperators) fail("too many operators");
  }

  // --- Operands

  std::string attribute() {
    std::string name = token_;
    if (is_placeholder('#')) {
      const Value* const bound = bindings_.name(token_);
      if (bound == nullptr) fail("attribute name not defined: " + token_);
      name = bound->text;
    } else if (!is_name()) {
      syntax_error();
    }
    next();
    attributes_.insert(name);
    return name;
  }
  std::string new_attribute() {
    const std::size_t before = attributes_.size();
    std::string name = attribute();
    if (attributes_.size() == before) fail("Two document paths overlap");
    return name;
  }
  Value value() {
    if (!is_placeholder(':')) syntax_error();
    const Value* const bound = bindings_.value(token_);
    if (bound == nullptr) fail("attribute value not defined: " + token_);
    next();
    return *bound;
  }
  Operand operand() {
    using Kind = Operand::Kind;
    if (is_placeholder(':')) return {Kind::value, "", value()};
    if (!is_function()) return {Kind::attribute, attribute()};
    if (token_ != "size") not_simulated("such a use of " + token_);
    count_operator();
    next();
    expect("(");
    Operand size{Kind::size_of_attribute, attribute()};
    expect(")");
    return size;
  }
  std::vector<Operand> operands() {
    std::vector<Operand> operands;
    expect("(");
    do {
      operands.push_back(operand());
    } while (take(","));
    expect(")");
    return operands;
  }

  // --- Conditions

  Holds alternatives() {
    Holds condition = conjunction();
    while (take_word("OR")) {
      count_operator();
      condition = either(std::move(condition), conjunction());
      in_brackets_ = false;
    }
    return condition;
  }
  Holds conjunction() {
    Holds condition = negation();
    while (take_word("AND")) {
      count_operator();
      condition = both(std::move(condition), negation());
      in_brackets_ = false;
    }
    return condition;
  }
  Holds negation() {
    if (!take_word("NOT")) return primary();
    count_operator();
    Holds condition = negation();
    in_brackets_ = false;
    return std::not_fn(std::move(condition));
  }
  Holds primary() {
    count_operator();
    if (take("(")) {
      Holds condition = alternatives();
      expect(")");
      if (in_brackets_) fail("The expression has redundant parentheses");
      in_brackets_ = true;
      return condition;
    }
    in_brackets_ = false;
    return is_function() && token_ != "size" ? function() : comparison();
  }
  Holds function() {
    const std::string name = token_;
    const bool exists = name == "attribute_exists";
    const bool of_one = exists || name == "attribute_not_exists";
    if (!of_one && name != "attribute_type" && name != "begins_with") {
      not_simulated("function " + name);
    }
    next();
    const std::vector<Operand> all = operands();
    if (all.size() != (of_one ? 1 : 2)) fail("number of operands of " + name);
    if (!of_one) return function(name, all[0], all[1]);
    if (all[0].kind != Operand::Kind::attribute) fail(name + " of no path");
    return [exists, attribute = all[0].attribute](const Item& item) {
      return (find(item, attribute) != nullptr) == exists;
    };
  }
  Holds function(const std::string& name, const Operand& one,
                 const Operand& other) {
    if (name == "begins_with") {
      check_text(one);
      check_text(other);
    } else if (other.value.type != "S" || !is_type(other.value.text)) {
      fail("Invalid attribute type name");
    }
    return compared(one, name, other);
  }
  // Refuses what cannot begin with anything.
  void check_text(const Operand& one) const {
    const bool is_text = one.value.type == "S" || one.value.type == "B";
    if (one.kind == Operand::Kind::size_of_attribute ||
        (one.kind == Operand::Kind::value && !is_text)) {
      fail("Incorrect operand type for begins_with");
    }
  }
  Holds comparison() {
    const Operand first = operand();
    if (take_word("BETWEEN")) return between(first);
    if (take_word("IN")) return in(first);
    const std::string relation = token_;
    for (const char* one : {"=", "<>", "<", "<=", ">", ">="}) {
      if (take(one)) return compared(first, relation, operand());
    }
    syntax_error();
  }
  Holds compared(const Operand& one, const std::string& relation,
                 const Operand& other) {
    const auto path = Operand::Kind::attribute;
    if (one.kind == path && other.kind == path &&
        one.attribute == other.attribute) {
      fail("The first operand must be distinct from the remaining operands");
    }
    return related(one, relation, other);
  }
  Holds between(const Operand& one) {
    const Operand lower = operand();
    if (!take_word("AND")) syntax_error();
    const Operand upper = operand();
    const auto value = Operand::Kind::value;
    if (lower.kind == value && upper.kind == value &&
        (lower.value.type != upper.value.type ||
         is_related(lower.value, ">", upper.value))) {
      fail("The BETWEEN operator requires ordered bounds of the same type");
    }
    return both(related(one, ">=", lower), related(one, "<=", upper));
  }
  Holds in(const Operand& one) {
    const std::vector<Operand> list = operands();
    if (list.size() > kMostInList) fail("too many operands of IN");
    Holds condition = related(one, "=", list[0]);
    for (std::size_t i = 1; i < list.size(); ++i) {
      condition = either(std::move(condition), related(one, "=", list[i]));
    }
    return condition;
  }

  // --- Updates

  void section(std::vector<Change>& changes) {
    using Kind = Change::Kind;
    if (take_word("SET")) {
      section(Kind::set, changes);
    } else if (take_word("REMOVE")) {
      section(Kind::remove, changes);
    } else if (take_word("ADD")) {
      section(Kind::add, changes);
    } else if (take_word("DELETE")) {
      not_simulated("DELETE in updates");
    } else {
      syntax_error();
    }
  }
  void section(Change::Kind kind, std::vector<Change>& changes) {
    using Kind = Change::Kind;
    if (!sections_.insert(kind).second) fail("one section is used twice");
    do {
      count_operator();
      Change change{kind, new_attribute()};
      if (kind == Kind::set) {
        expect("=");
        const bool is_copy = is_name() || is_placeholder('#');
        if (is_copy) not_simulated("copies in updates");
      }
      if (kind != Kind::remove) change.value = value();
      const std::string& type = change.value.type;
      if (kind == Kind::add && is_set(type)) not_simulated("ADD of a set");
      if (kind == Kind::add && type != "N") {
        fail("Incorrect operand type for ADD");
      }
      changes.push_back(std::move(change));
    } while (take(","));
  }

  const std::string parameter_;
  Bindings& bindings_;
  std::string_view rest_;
  std::string token_;
  std::set<std::string> attributes_;
  int operators_ = 0;
  bool in_brackets_ = false;  // What primary() has just parsed was.
  std::set<Change::Kind> sections_;
};

}  // namespace

// --- Bindings ----------------------------------------------------------------

Bindings::Bindings(Members& request) {
  if (const Json* names = request.find("ExpressionAttributeNames")) {
    Members in(*names);
    for (const auto& [mark, name] : names->GetObject()) {
      const auto attribute = in.text(mark.GetString());
      if (!attribute || attribute->empty()) invalid("Empty attribute name");
      names_[mark.GetString()] = scalar_value("S", *attribute);
    }
    check_placeholders(names_, '#');
  }
  if (const auto values = request.item("ExpressionAttributeValues")) {
    values_ = *values;
    check_placeholders(values_, ':');
  }
}

const Value* Bindings::bound(const Item& all, const std::string& mark) {
  used_.insert(mark);
  return find(all, mark);
}

void Bindings::check_all_used() const {
  for (const Item* all : {&names_, &values_}) {
    for (const auto& [mark, value] : *all) {
      if (used_.count(mark) == 0) invalid("unused in expressions: " + mark);
    }
  }
}

// --- What is parsed ----------------------------------------------------------

char to_upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

bool is_of_word(char c) {
  return (to_upper(c) >= 'A' && to_upper(c) <= 'Z') || is_digit(c) || c == '_';
}

Condition parse_condition(const char* parameter, const std::string& text,
                          Bindings& bindings) {
  Parser parser(parameter, text, bindings);
  Holds holds = parser.condition();
  return {std::move(holds), parser.attributes()};
}

std::vector<Change> parse_update(const std::string& text, Bindings& bindings) {
  return Parser("UpdateExpression", text, bindings).update();
}

void make_changes(const std::vector<Change>& update, Item& item) {
  for (const auto& [kind, attribute, value] : update) {
    const Value* const before = find(item, attribute);
    if (kind == Change::Kind::remove) {
      item.erase(attribute);
    } else if (kind == Change::Kind::set || before == nullptr) {
      item[attribute] = value;
    } else if (before->type == "N") {
      item[attribute] = scalar_value("N", sum(before->text, value.text));
    } else {
      invalid("An operand in the update expression has an incorrect data type");
    }
  }
}

std::vector<std::string> parse_projection(const std::string& text,
                                          Bindings& bindings) {
  return Parser("ProjectionExpression", text, bindings).projection();
}

KeyCondition parse_key_condition(const std::string& text, Bindings& bindings) {
  return Parser("KeyConditionExpression", text, bindings).key_condition();
}

}  // namespace world::dynamodb
