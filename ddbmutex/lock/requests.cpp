// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Writes the body of each request.  A function per verb writes the layout's
// expressions.  add() collects their words ("#uuid", ":uuid"), which
// write_names() and write_values() define at the end.
#include "requests.hpp"

#include <algorithm>
#include <cassert>

#include "row_format.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Action;
using dynamodb::JsonWriter;
using dynamodb::write_number;
using dynamodb::write_text;
using sigv4::Digits;
using sigv4::Text;
using Verb = Request::Verb;

namespace {

// Enough for most requests.
constexpr std::size_t kUsualBytes = 2000;
constexpr std::size_t kUsualWords = 16;

// Stands in an expression for the list of our own versions.
constexpr std::string_view kOwnVersions = "(:own)";
constexpr std::string_view kOwnWord = kOwnVersions.substr(1, 4);

// The lowercase letters and '_' that the text begins with.
std::string_view first_word(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() &&
         (text[size] == '_' || (text[size] >= 'a' && text[size] <= 'z'))) {
    ++size;
  }
  return text.substr(0, size);
}

// Adds the expression's words that begin with `mark`, each once.
void add_words(std::string_view expression, char mark,
               std::vector<std::string_view>& words) {
  for (std::size_t at = expression.find(mark); at != expression.npos;
       at = expression.find(mark, at + 1)) {
    const std::size_t size = first_word(expression.substr(at + 1)).size();
    const std::string_view word = expression.substr(at, 1 + size);
    const auto times = std::count(words.begin(), words.end(), word);
    if (times == 0) words.push_back(word);
  }
}

std::string numbered(std::string_view word, std::size_t number) {
  return sigv4::join({word, Digits(number)});
}

}  // namespace

Action action_of(Verb verb, const RowPolicy& policy) {
  switch (verb) {
    case Verb::take:
      return policy.takes_by_update() ? Action::update_item : Action::put_item;
    case Verb::renew:
    case Verb::wait:
      return Action::update_item;
    case Verb::release:
    case Verb::force:
      return policy.keeps_row ? Action::update_item : Action::delete_item;
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

void RowFormat::write_version(std::string_view, ServiceTime expires,
                              JsonWriter& json) const {
  write_number(json, expires.count());
}

// Values of the words that all layouts share.  Layouts override this for their
// own.
void RowFormat::write_value(std::string_view word, const RowTarget& target,
                            const Request& request, JsonWriter& json) const {
  using std::chrono::milliseconds;
  if (word == "uuid") return write_text(json, request.uuid);
  if (word == "expires") return write_number(json, request.stamp.count());
  if (word == "lease") return write_number(json, request.lease.count());
  if (word == "owner") return write_text(json, target.owner);
  if (word == "seen_uuid") return write_text(json, request.seen->uuid);
  if (word == "seen_expires") {
    return write_number(json, request.seen->expires.count());
  }
  if (word == "earliest") return write_number(json, request.earliest.count());
  if (word == "released") return write_number(json, 0);
  if (word == "string") return write_text(json, "S");
  if (word == "longest_uuid") return write_number(json, kLongestId);
  if (word == "shortest_lease") {
    return write_number(json, kShortestLease.count());
  }
  if (word == "longest_lease") {
    return write_number(json, milliseconds(kLongestLease).count());
  }
  assert(false);  // No other word has a value.
}

// --- The verbs ---------------------------------------------------------------

void RequestBody::write() {
  json_.begin_object();
  json_.name("TableName").text(target_.table);
  if (action_ != Action::put_item) {
    json_.name("Key").begin_object();
    write_key();
    json_.end_object();
  }
  switch (request_.verb) {
    case Verb::look:
      json_.name("ConsistentRead").boolean(request_.consistent);
      break;
    case Verb::take:
      take();
      break;
    case Verb::renew:
      renew();
      break;
    case Verb::release:
    case Verb::force:
      release();
      break;
    case Verb::check:
      check();
      break;
    case Verb::wait:
      wait();
      break;
  }
  if (request_.verb != Verb::look) {
    write_names();
    write_values();
    write_returned();
  }
  json_.end_object();
}

void RequestBody::take() {
  if (action_ == Action::put_item) {
    put_record();
  } else {
    update_record();
  }
  begin("ConditionExpression");
  format_.add_is_free(target_.policy, *this);
  if (request_.seen) add(expressions_.or_stale);
  if (!request_.own.empty()) {
    add(" OR (");
    add(expressions_.has_own_version);
    add(")");
  }
  end_expression();
}

void RequestBody::renew() {
  begin("UpdateExpression");
  add(expressions_.renew);
  add_changes("");
  end_expression();
  begin("ConditionExpression");
  add(expressions_.has_own_version);
  if (request_.changes) add(expressions_.and_change);
  end_expression();
}

void RequestBody::release() {
  if (target_.policy.keeps_row) {
    begin("UpdateExpression");
    add(expressions_.release);
    add_changes(expressions_.release_end);
    end_expression();
  }
  begin("ConditionExpression");
  add(request_.verb == Verb::force ? expressions_.is_seen
                                   : expressions_.is_ours);
  if (request_.changes) add(expressions_.and_change);
  end_expression();
}

void RequestBody::check() {
  begin("ConditionExpression");
  add(expressions_.is_ours);
  add(expressions_.and_held);
  end_expression();
}

void RequestBody::wait() {
  begin("UpdateExpression");
  add(expressions_.wait);
  end_expression();
  begin("ConditionExpression");
  add(expressions_.may_wait);
  end_expression();
}

// --- Items and expressions ---------------------------------------------------

RequestBody::RequestBody(const RowTarget& target, const Request& request,
                         Text& text)
    : target_(target),
      request_(request),
      action_(action_of(request.verb, target.policy)),
      format_(*target.format),
      expressions_(format_.expressions(target.policy)),
      json_(text) {
  text.reserve(kUsualBytes);
  if (request.verb == Verb::look) return;
  names_.reserve(kUsualWords);
  values_.reserve(kUsualWords);
}

// Writes what the SET clause of `record` would store, as an item.  The clause
// sets each attribute "#word" to the value ":word".
void RequestBody::put_record() {
  json_.name("Item").begin_object();
  write_key();
  const std::string_view record = expressions_.record;
  for (std::size_t at = record.find('#'); at != record.npos;
       at = record.find('#', at + 1)) {
    const std::string_view word = first_word(record.substr(at + 1));
    json_.name(format_.attribute(word));
    format_.write_value(word, target_, request_, json_);
  }
  dynamodb::write_members(json_, target_.attributes);
  json_.end_object();
}

void RequestBody::update_record() {
  const std::string_view take_end = expressions_.take_end;
  begin("UpdateExpression");
  add(expressions_.record);
  set(target_.attributes);
  add(take_end);
  // A take removes `data`, unless it sets it or the policy keeps it.
  if (!target_.policy.keep_data &&
      dynamodb::find(target_.attributes, kDataAttribute) == nullptr) {
    add(take_end.empty() ? " REMOVE #data" : ", #data");
  }
  end_expression();
}

// Extends the SET clause of the update.
void RequestBody::set(const dynamodb::Item& attributes) {
  set_ = &attributes;
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    add_numbered(", #set", i);
    add_numbered(" = :set", i);
  }
}

// Adds the user's changes to the update, and `end`, which may be a REMOVE.
void RequestBody::add_changes(std::string_view end) {
  if (request_.changes) set(request_.changes->set);
  add(end);
  if (!request_.changes) return;
  removed_ = &request_.changes->remove;
  for (std::size_t i = 0; i < removed_->size(); ++i) {
    const bool begins = i == 0 && end.empty();
    add_numbered(begins ? " REMOVE #removed" : ", #removed", i);
  }
}

void RequestBody::add(std::string_view expression) {
  add_words(expression, '#', names_);
  add_words(expression, ':', values_);
  const std::size_t own = expression.find(kOwnVersions);
  json_.add_plain(expression.substr(0, own));
  if (own == expression.npos) return;
  // Lists placeholders: "(:own0, :own1)".
  for (std::size_t i = 0; i < request_.own.size(); ++i) {
    add_numbered(i == 0 ? "(:own" : ", :own", i);
  }
  json_.add_plain(")");
  json_.add_plain(expression.substr(own + kOwnVersions.size()));
}

// Adds a numbered placeholder such as "#set7".  add() would note the word
// "#set", which nothing defines.
void RequestBody::add_numbered(std::string_view word, std::size_t number) {
  json_.add_plain(word);
  json_.add_plain(Digits(number));
}

// --- JSON --------------------------------------------------------------------

void RequestBody::write_key() {
  json_.name(target_.key_name);
  write_text(json_, target_.key);
  if (target_.sort_name.empty()) return;
  json_.name(target_.sort_name);
  write_text(json_, target_.sort_value);
}

// Says which values the answer must include.
void RequestBody::write_returned() {
  if (request_.verb == Verb::check) return;
  const bool updates = action_ == Action::update_item;
  const bool takes = request_.verb == Verb::take && updates;
  // The old values say whether a host waits.
  const bool asks_who_waits =
      request_.verb == Verb::release && *expressions_.wait != '\0';
  if (takes || request_.wants_row) json_.name("ReturnValues").text("ALL_NEW");
  if (asks_who_waits) {
    json_.name("ReturnValues").text(updates ? "UPDATED_OLD" : "ALL_OLD");
  }
  json_.name("ReturnValuesOnConditionCheckFailure").text("ALL_OLD");
}

void RequestBody::write_names() {
  json_.name("ExpressionAttributeNames").begin_object();
  for (const std::string_view word : names_) {
    json_.name(word).text(word == "#key" ? target_.key_name
                                         : format_.attribute(word.substr(1)));
  }
  for (std::size_t i = 0; set_ != nullptr && i < set_->size(); ++i) {
    json_.name(numbered("#set", i)).text((*set_)[i].name);
  }
  for (std::size_t i = 0; removed_ != nullptr && i < removed_->size(); ++i) {
    json_.name(numbered("#removed", i)).text((*removed_)[i]);
  }
  json_.end_object();
}

void RequestBody::write_values() {
  json_.name("ExpressionAttributeValues").begin_object();
  for (const std::string_view word : values_) {
    if (word != kOwnWord) {
      json_.name(word);
      format_.write_value(word.substr(1), target_, request_, json_);
      continue;
    }
    for (std::size_t i = 0; i < request_.own.size(); ++i) {
      json_.name(numbered(":own", i));
      format_.write_version(request_.uuid, request_.own[i], json_);
    }
  }
  for (std::size_t i = 0; set_ != nullptr && i < set_->size(); ++i) {
    json_.name(numbered(":set", i));
    dynamodb::write_value(json_, (*set_)[i]);
  }
  json_.end_object();
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
