// Writes requests.  Each verb has a function that adds the layout's
// expressions; add() looks for their words, and adds what they stand for to the
// request.
#include "requests.hpp"

#include "layouts.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Action;
using dynamodb::append_form;
using dynamodb::append_string;
using dynamodb::append_value;
using sigv4::Digits;
using sigv4::Text;
using Verb = Request::Verb;

namespace {

// Enough for most requests.
constexpr std::size_t kUsualBytes = 2000;
constexpr std::size_t kUsualDefinitions = 600;

// The word that the text begins with: letters and '_'.
std::string_view first_word(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() &&
         (text[size] == '_' || (text[size] >= 'a' && text[size] <= 'z'))) {
    ++size;
  }
  return text.substr(0, size);
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
  RequestBody(target, request, text).write();
}

// --- Values ------------------------------------------------------------------

void Layout::write_version(std::string_view, ServiceTime expires,
                           Text& json) const {
  append_value(json, expires.count());
}

// The words that mean the same in all layouts.
void Layout::write_value(std::string_view word, const RowTarget& target,
                         const Request& request, Text& json) const {
  using std::chrono::milliseconds;
  if (word == "uuid") return append_value(json, request.uuid);
  if (word == "expires") return append_value(json, request.stamp.count());
  if (word == "lease") return append_value(json, request.lease.count());
  if (word == "owner") return append_value(json, target.owner);
  if (word == "seen_uuid") return append_value(json, request.seen->uuid);
  if (word == "seen_expires") {
    return append_value(json, request.seen->expires.count());
  }
  if (word == "earliest") return append_value(json, request.earliest.count());
  if (word == "released") return append_value(json, 0);
  if (word == "string") return append_value(json, "S");
  if (word == "longest_uuid") return append_value(json, kLongestId);
  if (word == "shortest_lease") {
    return append_value(json, kShortestLease.count());
  }
  if (word == "longest_lease") {
    return append_value(json, milliseconds(kLongestLease).count());
  }
}

// --- The verbs ---------------------------------------------------------------

void RequestBody::write() {
  switch (request_.verb) {
    case Verb::look:
      add_option("ConsistentRead", request_.consistent ? "true" : "false");
      text_ += '}';
      return;
    case Verb::take:
      take();
      break;
    case Verb::renew:
      renew();
      break;
    case Verb::release:
      release();
      break;
    case Verb::force:
      force();
      break;
    case Verb::check:
      check();
      break;
  }
  end_expressions();
  if (request_.verb != Verb::check) {
    const bool updates =
        request_.verb == Verb::take && action_ == Action::update_item;
    if (updates || request_.tell) add_option("ReturnValues", R"("ALL_NEW")");
    add_option("ReturnValuesOnConditionCheckFailure", R"("ALL_OLD")");
  }
  text_ += '}';
}

void RequestBody::take() {
  if (action_ == Action::put_item) {
    put_record();
  } else {
    update_record();
  }
  begin_condition("");
  layout_.add_is_free(target_.policy, *this);
  if (request_.seen) add(expressions_.or_stale);
  if (request_.own.empty()) return;
  add(" OR (");
  add(expressions_.is_own);
  add(")");
}

void RequestBody::renew() {
  begin_update(expressions_.renew);
  add_changes();
  begin_condition(expressions_.is_own);
  if (request_.changes) add(expressions_.and_change);
}

void RequestBody::release() {
  if (target_.policy.keep) {
    begin_update(expressions_.release);
    add_changes();
  }
  begin_condition(expressions_.is_ours);
  if (request_.changes) add(expressions_.and_change);
}

void RequestBody::force() {
  if (target_.policy.keep) begin_update(expressions_.release);
  begin_condition(expressions_.is_seen);
}

void RequestBody::check() {
  begin_condition(expressions_.is_ours);
  add(expressions_.and_held);
}

// --- The body ----------------------------------------------------------------

RequestBody::RequestBody(const RowTarget& target, const Request& request,
                         Text& text)
    : target_(target),
      request_(request),
      action_(action_of(request.verb, target.policy)),
      layout_(*target.layout),
      expressions_(layout_.expressions(target.policy)),
      text_(text) {
  text_.reserve(kUsualBytes);
  names_.reserve(kUsualDefinitions);
  values_.reserve(kUsualDefinitions);
  append_form(text_, R"({"TableName":$)", {target.table});
  if (action_ == Action::put_item) return;
  text_ += R"(,"Key":{)";
  add_key();
  text_ += '}';
}

void RequestBody::add_key() {
  append_form(text_, R"($:{"S":$})", {target_.key_name, target_.key});
  if (target_.sort_name.empty()) return;
  append_form(text_, R"(,$:{"S":$})", {target_.sort_name, target_.sort_value});
}

// The item has the attributes that the update would set.
void RequestBody::put_record() {
  text_ += R"(,"Item":{)";
  add_key();
  std::string_view rest = expressions_.record;
  for (sigv4::cut(rest, '#'); !rest.empty(); sigv4::cut(rest, '#')) {
    const std::string_view word = first_word(rest);
    append_form(text_, ",$:", {layout_.attribute(word)});
    layout_.write_value(word, target_, request_, text_);
  }
  if (!target_.attributes.empty()) text_ += ',';
  dynamodb::append_members(text_, target_.attributes);
}

void RequestBody::update_record() {
  const std::string_view end = expressions_.take_end;
  begin_update(expressions_.record);
  set(target_.attributes);
  add(end);
  // `data` stays, or the take sets it, or it goes.
  if (target_.policy.keep_data ||
      dynamodb::find(target_.attributes, kDataAttribute) != nullptr) {
    return;
  }
  add(end.empty() ? " REMOVE #data" : ", #data");
}

void RequestBody::begin_update(std::string_view expression) {
  text_ += R"(,"UpdateExpression":")";
  add(expression);
}

void RequestBody::set(const dynamodb::Item& attributes) {
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const Digits number(i);
    append_form(text_, ", #set% = :set%", {number, number});
    append_string(begin_definition("#set", number), attributes[i].name);
    append_value(begin_definition(":set", number), attributes[i]);
  }
}

// What the user sets and removes.
void RequestBody::add_changes() {
  if (!request_.changes) return;
  set(request_.changes->set);
  const std::vector<std::string>& removed = request_.changes->remove;
  for (std::size_t i = 0; i < removed.size(); ++i) {
    const Digits number(i);
    append_form(text_, i == 0 ? " REMOVE #removed%" : ", #removed%", {number});
    append_string(begin_definition("#removed", number), removed[i]);
  }
}

void RequestBody::begin_condition(std::string_view expression) {
  if (action_ == Action::put_item) text_ += '}';
  if (action_ == Action::update_item) text_ += '"';
  text_ += R"(,"ConditionExpression":")";
  add(expression);
}

void RequestBody::add(std::string_view expression) {
  std::size_t done = 0;
  for (std::size_t at = 0; at < expression.size(); ++at) {
    if (expression[at] != '#' && expression[at] != ':') continue;
    text_ += expression.substr(done, at - done);
    const std::size_t size = first_word(expression.substr(at + 1)).size();
    const std::string_view word = expression.substr(at, 1 + size);
    done = at + word.size();
    if (word == ":own") {
      add_own_versions();
    } else {
      text_ += word;
      define(word);
    }
  }
  text_ += expression.substr(done);
}

void RequestBody::add_own_versions() {
  for (std::size_t i = 0; i < request_.own.size(); ++i) {
    const Digits number(i);
    append_form(text_, i == 0 ? ":own%" : ", :own%", {number});
    layout_.write_version(request_.uuid, request_.own[i],
                          begin_definition(":own", number));
  }
}

void RequestBody::define(std::string_view word) {
  for (const std::string_view defined : words_) {
    if (word == defined) return;
  }
  words_.push_back(word);
  Text& json = begin_definition(word, "");
  const std::string_view name = word.substr(1);
  if (word[0] == ':') {
    layout_.write_value(name, target_, request_, json);
  } else {
    append_string(json,
                  name == "key" ? target_.key_name : layout_.attribute(name));
  }
}

Text& RequestBody::begin_definition(std::string_view word,
                                    std::string_view number) {
  Text& json = word[0] == '#' ? names_ : values_;
  append_form(json, json.size() == 0 ? R"({"%%":)" : R"(,"%%":)",
              {word, number});
  return json;
}

void RequestBody::end_expressions() {
  append_form(text_,
              R"(","ExpressionAttributeNames":%})"
              R"(,"ExpressionAttributeValues":%})",
              {names_, values_});
}

void RequestBody::add_option(std::string_view name, std::string_view json) {
  append_form(text_, ",$:%", {name, json});
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
