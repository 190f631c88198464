// Parses expressions by recursive descent, after the grammar of the developer
// guide ("Condition and filter expressions, operators, and functions in
// DynamoDB", "Using update expressions in DynamoDB").
#include <algorithm>
#include <optional>

#include "tests/world/dynamodb/expression.hpp"
#include "tests/world/dynamodb/refusal.hpp"

namespace world {
namespace dynamodb {
namespace {

// From the developer guide ("Quotas in Amazon DynamoDB", "Expressions").
constexpr std::size_t kMostBytes = 4096;
constexpr int kMostOperators = 300;
constexpr std::size_t kMostInList = 100;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool equal_in_any_case(std::string_view one, std::string_view upper) {
  return std::equal(one.begin(), one.end(), upper.begin(), upper.end(),
                    [](char a, char b) {
                      return (a >= 'a' && a <= 'z' ? a - 'a' + 'A' : a) == b;
                    });
}

// --- Tokens ------------------------------------------------------------------

// A word, a placeholder with its mark, a number or an operator; empty at the
// end.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) { next(); }

  std::string_view now() const { return now_; }
  bool is(std::string_view token) const { return now_ == token; }
  bool is_word(std::string_view upper) const {
    return equal_in_any_case(now_, upper);
  }
  bool is_name() const { return !now_.empty() && is_letter(now_[0]); }
  bool is_placeholder(char mark) const {
    return now_.size() > 1 && now_[0] == mark;
  }
  // The first character of the token behind now().
  char peek() const {
    const std::size_t at = rest_.find_first_not_of(" \t\r\n");
    return at == rest_.npos ? '\0' : rest_[at];
  }
  void next();

 private:
  std::size_t size_of_next() const;

  std::string_view rest_, now_;
};

std::size_t Tokens::size_of_next() const {
  std::size_t size = 1;
  const char first = rest_[0];
  if (is_letter(first) || first == '#' || first == ':') {
    while (size < rest_.size() &&
           (is_letter(rest_[size]) || is_digit(rest_[size]))) {
      ++size;
    }
  } else if (is_digit(first)) {
    while (size < rest_.size() && is_digit(rest_[size])) ++size;
  } else if (rest_.substr(0, 2) == "<>" || rest_.substr(0, 2) == "<=" ||
             rest_.substr(0, 2) == ">=") {
    size = 2;
  }
  return size;
}

void Tokens::next() {
  rest_.remove_prefix(
      std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  const std::size_t size = rest_.empty() ? 0 : size_of_next();
  now_ = rest_.substr(0, size);
  rest_.remove_prefix(size);
}

// --- The parser --------------------------------------------------------------

using Test = Condition::Kind;
using Term = Operand::Kind;

struct Comparator {
  const char* token;
  Test kind;
};
constexpr Comparator kComparators[] = {
    {"=", Test::equal},   {"<>", Test::not_equal},
    {"<", Test::less},    {"<=", Test::less_or_equal},
    {">", Test::greater}, {">=", Test::greater_or_equal},
};

template <typename Kind>
struct Function {
  const char* name;
  Kind kind;
  std::size_t operands;
  bool of_path;  // The first operand has to be a path.
};
constexpr Function<Test> kTests[] = {
    {"attribute_exists", Test::attribute_exists, 1, true},
    {"attribute_not_exists", Test::attribute_not_exists, 1, true},
    {"attribute_type", Test::attribute_type, 2, false},
    {"begins_with", Test::begins_with, 2, false},
    {"contains", Test::contains, 2, false},
};
constexpr Function<Term> kUpdateFunctions[] = {
    {"if_not_exists", Term::if_not_exists, 2, true},
    {"list_append", Term::list_append, 2, false},
};
constexpr Function<Term> kSize = {"size", Term::size, 1, false};

class Parser {
 public:
  Parser(Expression& expression, std::string_view text)
      : expression_(expression), tokens_(text) {}

  void parse();

 private:
  [[noreturn]] void fail(const std::string& what) const {
    invalid("Invalid " + expression_.parameter + ": " + what);
  }
  [[noreturn]] void syntax_error() const {
    fail("Syntax error; token: \"" + std::string(tokens_.now()) + "\"");
  }
  bool take(std::string_view token);
  void expect(std::string_view token) {
    if (!take(token)) syntax_error();
  }
  bool take_word(std::string_view upper);
  std::string take_placeholder();
  void count_operator();

  Condition any();
  Condition all();
  Condition negation();
  Condition primary();
  Condition group();
  Condition comparison();
  Condition test(const Function<Test>& function);
  std::vector<Operand> list();

  Path path();
  Step step();
  Operand operand();
  Operand simple_operand();
  // Behind its name.
  template <typename Kind>
  std::vector<Operand> arguments(const Function<Kind>& function);

  void update();
  bool section();
  template <typename One>
  void section(Change::Kind kind, const char* name, One one);
  Change assignment();
  Change removal();
  Change set_change(Change::Kind kind);
  Operand set_value();
  Operand set_operand();

  Expression& expression_;
  Tokens tokens_;
  int operators_ = 0;
  bool in_brackets_ = false;  // What primary() has just parsed was.
  std::vector<Change::Kind> sections_;
};

bool Parser::take(std::string_view token) {
  if (!tokens_.is(token)) return false;
  tokens_.next();
  return true;
}

bool Parser::take_word(std::string_view upper) {
  if (!tokens_.is_word(upper)) return false;
  tokens_.next();
  return true;
}

std::string Parser::take_placeholder() {
  std::string placeholder(tokens_.now());
  expression_.placeholders.push_back(placeholder);
  tokens_.next();
  return placeholder;
}

// It bounds the recursion too.
void Parser::count_operator() {
  if (++operators_ > kMostOperators) {
    fail("The expression contains too many operators; operator count: " +
         std::to_string(operators_));
  }
}

// --- Paths and operands

Step Parser::step() {
  if (tokens_.is_placeholder('#')) return {take_placeholder()};
  if (!tokens_.is_name()) syntax_error();
  const std::string name(tokens_.now());
  if (is_reserved(name)) {
    fail("Attribute name is a reserved keyword; reserved keyword: " + name);
  }
  tokens_.next();
  return {name};
}

Path Parser::path() {
  Path path = {step()};
  while (true) {
    if (take(".")) {
      path.push_back(step());
    } else if (take("[")) {
      const std::string index(tokens_.now());
      if (index.empty() || !is_digit(index[0]) || index.size() > 9) {
        syntax_error();
      }
      tokens_.next();
      expect("]");
      path.push_back({"", std::stoul(index)});
    } else {
      return path;
    }
  }
}

Operand Parser::simple_operand() {
  Operand operand;
  if (tokens_.is_placeholder(':')) {
    operand.kind = Term::value;
    operand.value = take_placeholder();
  } else {
    operand.path = path();
  }
  return operand;
}

template <typename Kind>
std::vector<Operand> Parser::arguments(const Function<Kind>& function) {
  const std::string name = function.name;
  tokens_.next();
  expect("(");
  count_operator();
  std::vector<Operand> operands;
  const bool is_test = std::is_same<Kind, Test>::value || name == "size";
  do {
    operands.push_back(is_test ? operand() : set_operand());
  } while (take(","));
  expect(")");
  if (operands.size() != function.operands) {
    fail(
        "Incorrect number of operands for operator or function; operator or "
        "function: " +
        name + ", number of operands: " + std::to_string(operands.size()));
  }
  if (function.of_path && operands[0].kind != Term::path) {
    fail(
        "Operator or function requires a document path; operator or "
        "function: " +
        name);
  }
  return operands;
}

// Of a condition.
Operand Parser::operand() {
  if (!tokens_.is_name() || tokens_.peek() != '(') return simple_operand();
  if (!tokens_.is(kSize.name)) {
    fail(
        "The function is not allowed to be used this way in an expression; "
        "function: " +
        std::string(tokens_.now()));
  }
  Operand operand;
  operand.kind = Term::size;
  operand.parts = arguments(kSize);
  return operand;
}

// --- Conditions

Condition Parser::any() {
  Condition first = all();
  if (!tokens_.is_word("OR")) return first;
  Condition any{Test::any, {std::move(first)}};
  while (take_word("OR")) {
    count_operator();
    any.parts.push_back(all());
  }
  in_brackets_ = false;
  return any;
}

Condition Parser::all() {
  Condition first = negation();
  if (!tokens_.is_word("AND")) return first;
  Condition all{Test::all, {std::move(first)}};
  while (take_word("AND")) {
    count_operator();
    all.parts.push_back(negation());
  }
  in_brackets_ = false;
  return all;
}

Condition Parser::negation() {
  if (!take_word("NOT")) return primary();
  count_operator();
  Condition condition{Test::negation, {negation()}};
  in_brackets_ = false;
  return condition;
}

Condition Parser::primary() {
  if (tokens_.is("(")) return group();
  in_brackets_ = false;
  for (const Function<Test>& function : kTests) {
    if (tokens_.is(function.name) && tokens_.peek() == '(') {
      return test(function);
    }
  }
  if (tokens_.is_name() && tokens_.peek() == '(' && !tokens_.is(kSize.name)) {
    fail("Invalid function name; function: " + std::string(tokens_.now()));
  }
  return comparison();
}

Condition Parser::group() {
  tokens_.next();
  count_operator();
  Condition condition = any();
  expect(")");
  if (in_brackets_) fail("The expression has redundant parentheses;");
  in_brackets_ = true;
  return condition;
}

Condition Parser::test(const Function<Test>& function) {
  Condition condition;
  condition.kind = function.kind;
  condition.operands = arguments(function);
  return condition;
}

std::vector<Operand> Parser::list() {
  std::vector<Operand> operands;
  expect("(");
  do {
    operands.push_back(operand());
  } while (take(","));
  expect(")");
  if (operands.size() > kMostInList) {
    fail(
        "The IN operator is provided with too many operands; number of "
        "operands: " +
        std::to_string(operands.size()));
  }
  return operands;
}

Condition Parser::comparison() {
  Condition condition;
  condition.operands.push_back(operand());
  count_operator();
  if (take_word("BETWEEN")) {
    condition.kind = Test::between;
    condition.operands.push_back(operand());
    if (!take_word("AND")) syntax_error();
    condition.operands.push_back(operand());
    return condition;
  }
  if (take_word("IN")) {
    condition.kind = Test::in;
    for (Operand& one : list()) condition.operands.push_back(std::move(one));
    return condition;
  }
  for (const Comparator& comparator : kComparators) {
    if (!take(comparator.token)) continue;
    condition.kind = comparator.kind;
    condition.operands.push_back(operand());
    return condition;
  }
  syntax_error();
}

// --- Updates

// A path, a value or a function.
Operand Parser::set_operand() {
  if (!tokens_.is_name() || tokens_.peek() != '(') return simple_operand();
  for (const Function<Term>& function : kUpdateFunctions) {
    if (!tokens_.is(function.name)) continue;
    Operand operand;
    operand.kind = function.kind;
    operand.parts = arguments(function);
    return operand;
  }
  fail("Invalid function name; function: " + std::string(tokens_.now()));
}

Operand Parser::set_value() {
  Operand first = set_operand();
  const bool plus = tokens_.is("+");
  if (!plus && !tokens_.is("-")) return first;
  tokens_.next();
  count_operator();
  Operand sum;
  sum.kind = plus ? Term::plus : Term::minus;
  sum.parts.push_back(std::move(first));
  sum.parts.push_back(set_operand());
  return sum;
}

Change Parser::assignment() {
  Change change;
  change.path = path();
  expect("=");
  change.operand = set_value();
  return change;
}

Change Parser::removal() {
  Change change;
  change.kind = Change::Kind::remove;
  change.path = path();
  return change;
}

Change Parser::set_change(Change::Kind kind) {
  Change change;
  change.kind = kind;
  change.path = path();
  if (!tokens_.is_placeholder(':')) syntax_error();
  change.operand = simple_operand();
  return change;
}

template <typename One>
void Parser::section(Change::Kind kind, const char* name, One one) {
  if (std::count(sections_.begin(), sections_.end(), kind) > 0) {
    fail("The \"" + std::string(name) +
         "\" section can only be used once in an update expression;");
  }
  sections_.push_back(kind);
  do {
    count_operator();
    expression_.update.push_back(one());
  } while (take(","));
}

bool Parser::section() {
  using Kind = Change::Kind;
  if (take_word("SET")) {
    section(Kind::set, "SET", [this] { return assignment(); });
  } else if (take_word("REMOVE")) {
    section(Kind::remove, "REMOVE", [this] { return removal(); });
  } else if (take_word("ADD")) {
    section(Kind::add, "ADD", [this] { return set_change(Kind::add); });
  } else if (take_word("DELETE")) {
    section(Kind::take_out, "DELETE",
            [this] { return set_change(Kind::take_out); });
  } else {
    return false;
  }
  return true;
}

void Parser::update() {
  if (!section()) syntax_error();
  while (section()) {
  }
}

void Parser::parse() {
  const std::string& parameter = expression_.parameter;
  if (tokens_.now().empty()) fail("The expression can not be empty;");
  if (parameter == "UpdateExpression") {
    update();
  } else if (parameter == "ProjectionExpression") {
    do {
      expression_.projection.push_back(path());
    } while (take(","));
  } else {
    expression_.condition = any();
  }
  if (!tokens_.now().empty()) syntax_error();
}

// How many parsed expressions are kept.
constexpr std::size_t kMostParsed = 10'000;

}  // namespace

const std::string* Bindings::name(std::string_view placeholder) const {
  for (const auto& [mark, name] : names) {
    if (mark == placeholder) return &name;
  }
  return nullptr;
}

ExpressionPointer parse(std::string_view parameter, std::string_view text) {
  auto expression = std::make_shared<Expression>();
  expression->parameter = parameter;
  if (text.size() > kMostBytes) {
    invalid("Invalid " + expression->parameter +
            ": Expression size has exceeded the maximum allowed size; "
            "expression size: " +
            std::to_string(text.size()));
  }
  Parser(*expression, text).parse();
  return expression;
}

ExpressionPointer ExpressionCache::get(std::string_view parameter,
                                       const std::string& text) {
  std::string key(parameter);
  key += '\n';
  key += text;
  const auto known = parsed_.find(key);
  if (known != parsed_.end()) return known->second;
  ExpressionPointer fresh = parse(parameter, text);
  if (parsed_.size() >= kMostParsed) parsed_.clear();
  parsed_.emplace(std::move(key), fresh);
  return fresh;
}

}  // namespace dynamodb
}  // namespace world
