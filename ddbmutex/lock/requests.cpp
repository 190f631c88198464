// Writes requests: what all layouts have in common, and the builder with which
// they write their expressions.
#include "requests.hpp"

#include <algorithm>

#include "layouts.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Action;
using dynamodb::append_string;
using sigv4::Digits;
using sigv4::Text;
using Verb = Request::Verb;

namespace {

// Enough for most requests.
constexpr std::size_t kUsualBytes = 2000;
constexpr std::size_t kUsualMembers = 600;
constexpr std::size_t kUsualWords = 16;

// {"S":"..."}
void append_text(Text& to, std::string_view text) {
  to += R"({"S":)";
  append_string(to, text);
  to += '}';
}

// {"N":"5"}
void append_number(Text& to, std::int64_t number) {
  to += R"({"N":")";
  to += Digits(number);
  to += R"("})";
}

// The word that the text begins with: letters and '_'.
std::string_view first_word(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() &&
         (text[size] == '_' || (text[size] >= 'a' && text[size] <= 'z'))) {
    ++size;
  }
  return text.substr(0, size);
}

void write_expressions(const RowTarget& target, const Request& request,
                       RequestBody& body) {
  const Layout& layout = *target.layout;
  switch (request.verb) {
    case Verb::take:
      return layout.take(target, request, body);
    case Verb::renew:
      return layout.renew(target, request, body);
    case Verb::release:
      return layout.release(target, request, body);
    case Verb::force:
      return layout.force(target, request, body);
    case Verb::check:
      return layout.check(target, request, body);
    case Verb::look:
      break;
  }
}

}  // namespace

Action action_of(Verb verb, const RowPolicy& policy) {
  switch (verb) {
    case Verb::take:
      return policy.takes_by_update() ? Action::update_item : Action::put_item;
    case Verb::renew:
      return Action::update_item;
    case Verb::release:
    case Verb::force:
      return policy.keep ? Action::update_item : Action::delete_item;
    case Verb::check:
      return Action::transact_write_items;
    case Verb::look:
      break;
  }
  return Action::get_item;
}

void write_request(const RowTarget& target, const Request& request,
                   Text& text) {
  const Action action = action_of(request.verb, target.policy);
  RequestBody body(target, text);
  if (action != Action::put_item) body.key();
  if (action == Action::get_item) {
    body.option("ConsistentRead", request.consistent ? "true" : "false");
    return body.end();
  }
  write_expressions(target, request, body);
  body.end_expressions();
  if (request.verb != Verb::check) {
    const bool updates =
        request.verb == Verb::take && action == Action::update_item;
    if (updates || request.tell) body.option("ReturnValues", R"("ALL_NEW")");
    body.option("ReturnValuesOnConditionCheckFailure", R"("ALL_OLD")");
  }
  body.end();
}

// --- Placeholders ------------------------------------------------------------

Placeholders::Placeholders(char mark) : json(kUsualMembers), mark_(mark) {
  words_.reserve(kUsualWords);
}

bool Placeholders::begin(std::string_view word) {
  if (std::find(words_.begin(), words_.end(), word) != words_.end()) {
    return false;
  }
  words_.push_back(word);
  begin_member(word);
  json += "\":";
  return true;
}

void Placeholders::begin(std::string_view word, std::size_t number) {
  begin_member(word);
  json += Digits(number);
  json += "\":";
}

void Placeholders::begin_member(std::string_view word) {
  json += json.size() == 0 ? "{\"" : ",\"";
  json += mark_;
  json += word;
}

// --- The body ----------------------------------------------------------------

RequestBody::RequestBody(const RowTarget& target, Text& text)
    : target_(target), text_(text) {
  text_.reserve(kUsualBytes);
  text_ += R"({"TableName":)";
  append_string(text_, target.table);
}

void RequestBody::key() {
  text_ += R"(,"Key":{)";
  key_members();
  text_ += '}';
}

void RequestBody::key_members() {
  append_string(text_, target_.key_name);
  text_ += ':';
  append_text(text_, target_.key);
  if (target_.sort_name.empty()) return;
  text_ += ',';
  append_string(text_, target_.sort_name);
  text_ += ':';
  append_text(text_, target_.sort_value);
}

void RequestBody::begin(Part part, std::string_view json) {
  end_part();
  text_ += json;
  part_ = part;
  is_empty_ = true;
}

void RequestBody::end_part() {
  if (part_ != Part::none) text_ += part_ == Part::item ? '}' : '"';
  part_ = Part::none;
}

void RequestBody::begin_record(const RowPolicy& policy) {
  if (policy.takes_by_update()) {
    update();
  } else {
    item();
  }
}

void RequestBody::item() {
  begin(Part::item, R"(,"Item":{)");
  key_members();
}

RequestBody& RequestBody::update(std::string_view expression) {
  begin(Part::update, R"(,"UpdateExpression":")");
  return add(expression);
}

RequestBody& RequestBody::condition(std::string_view expression) {
  begin(Part::condition, R"(,"ConditionExpression":")");
  return add(expression);
}

RequestBody& RequestBody::add(std::string_view expression) {
  text_ += expression;
  is_empty_ = is_empty_ && expression.empty();
  for (std::size_t at = expression.find('#'); at != expression.npos;
       at = expression.find('#', at + 1)) {
    add_name(first_word(expression.substr(at + 1)));
  }
  return *this;
}

void RequestBody::add_name(std::string_view word) {
  if (!names_.begin(word)) return;
  const bool is_key = word == "key";
  append_string(names_.json, is_key ? std::string_view(target_.key_name)
                                    : target_.layout->attribute(word));
}

RequestBody& RequestBody::bind(std::string_view word, std::string_view text) {
  if (values_.begin(word.substr(1))) append_text(values_.json, text);
  return *this;
}

RequestBody& RequestBody::bind(std::string_view word, std::int64_t number) {
  if (values_.begin(word.substr(1))) append_number(values_.json, number);
  return *this;
}

void RequestBody::set(std::string_view word, std::string_view text) {
  append_text(begin_set(word), text);
}

void RequestBody::set(std::string_view word, std::int64_t number) {
  append_number(begin_set(word), number);
}

// Returns where the value is to be written.
Text& RequestBody::begin_set(std::string_view word) {
  if (part_ == Part::item) {
    text_ += ',';
    append_string(text_, target_.layout->attribute(word));
    text_ += ':';
    return text_;
  }
  text_ += is_empty_ ? "SET #" : ", #";
  text_ += word;
  text_ += " = :";
  text_ += word;
  is_empty_ = false;
  add_name(word);
  values_.begin(word);
  return values_.json;
}

void RequestBody::set(const dynamodb::Item& attributes) {
  if (part_ == Part::item) {
    if (!attributes.empty()) text_ += ',';
    return dynamodb::append_members(text_, attributes);
  }
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const Digits number(i);
    text_ += ", #set";
    text_ += number;
    text_ += " = :set";
    text_ += number;
    names_.begin("set", i);
    append_string(names_.json, attributes[i].name);
    values_.begin("set", i);
    dynamodb::append_value(values_.json, attributes[i]);
  }
}

void RequestBody::change(const ChangesPtr& changes) {
  if (!changes) return;
  set(changes->set);
  for (std::size_t i = 0; i < changes->remove.size(); ++i) {
    text_ += i == 0 ? " REMOVE #removed" : ", #removed";
    text_ += Digits(i);
    names_.begin("removed", i);
    append_string(names_.json, changes->remove[i]);
  }
}

void RequestBody::element(std::string_view text) {
  append_text(begin_element(), text);
}

void RequestBody::element(std::int64_t number) {
  append_number(begin_element(), number);
}

Text& RequestBody::begin_element() {
  text_ += elements_ == 0 ? ":own" : ", :own";
  text_ += Digits(elements_);
  values_.begin("own", elements_++);
  return values_.json;
}

void RequestBody::end_expressions() {
  end_part();
  text_ += R"(,"ExpressionAttributeNames":)";
  text_ += names_.json;
  text_ += R"(},"ExpressionAttributeValues":)";
  text_ += values_.json;
  text_ += '}';
}

void RequestBody::option(std::string_view name, std::string_view json) {
  text_ += ',';
  text_.quote(name);
  text_ += ':';
  text_ += json;
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
