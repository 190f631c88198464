#include "request_body.hpp"

#include "item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::append_string;
using sigv4::Digits;
using sigv4::Text;

namespace {

// Of most requests.
constexpr std::size_t kUsualBytes = 1000;

// Takes the lowest away.
std::size_t next_of(unsigned& bits) {
  const int bit = __builtin_ctz(bits);
  bits &= bits - 1;
  return static_cast<std::size_t>(bit);
}

}  // namespace

void append_text(Text& to, std::string_view text) {
  to += "{\"S\":";
  append_string(to, text);
  to += '}';
}

void append_number(Text& to, std::int64_t number) {
  to += R"({"N":")";
  to += Digits(number);
  to += "\"}";
}

RequestBody::RequestBody(const Place& place, const Request& request, Text& text)
    : place_(place), request_(request), text_(text) {
  text_.reserve(kUsualBytes);
  text_ += R"({"TableName":)";
  append_string(text_, place.table);
}

void RequestBody::key() {
  text_ += R"(,"Key":{)";
  key_members();
  text_ += '}';
}

void RequestBody::key_members() {
  append_string(text_, place_.key_name);
  text_ += ':';
  append_text(text_, place_.key);
  if (place_.sort_name.empty()) return;
  text_ += ',';
  append_string(text_, place_.sort_name);
  text_ += ':';
  append_text(text_, place_.sort_value);
}

void RequestBody::item(const RequestPart& record) {
  text_ += R"(,"Item":{)";
  key_members();
  for (unsigned bits = record.values; bits != 0;) {
    const char word = kLetters[next_of(bits)];
    text_ += ',';
    text_.quote(name_of(word, place_.layout->names));
    text_ += ':';
    value(word, request_.stamp);
  }
  if (kStoresMore) {
    if (!place_.attributes.empty()) text_ += ',';
    dynamodb::append_members(text_, place_.attributes);
  }
  text_ += '}';
}

void RequestBody::update(const RequestPart& part) {
  text_ += R"(,"UpdateExpression":")";
  *this += part;
}

void RequestBody::condition(const RequestPart& part) {
  const bool updates = names_ != 0;
  if (updates) text_ += '"';
  text_ += R"(,"ConditionExpression":")";
  *this += part;
}

void RequestBody::operator+=(const RequestPart& part) {
  text_ += part.text();
  names_ |= part.names;
  values_ |= part.values;
}

void RequestBody::own_list(const RequestPart& in) {
  *this += in;
  for (; own_ < request_.own.size(); ++own_) {
    text_ += own_ == 0 ? ":" : ", :";
    text_ += Digits(own_);
  }
  text_ += ')';
}

void RequestBody::assignments() {
  for (; kStoresMore && set_ < set().size(); ++set_) {
    const Digits number(set_);
    text_ += ", #set";
    text_ += number;
    text_ += " = :set";
    text_ += number;
  }
}

// What the user changes; behind the other assignments.
void RequestBody::changes() {
  if (!request_.changes) return;
  assignments();
  for (; gone_ < request_.changes->remove.size(); ++gone_) {
    text_ += gone_ == 0 ? " REMOVE #gone" : ", #gone";
    text_ += Digits(gone_);
  }
}

void RequestBody::words() {
  text_ += R"(","ExpressionAttributeNames":)";
  words('#', names_);
  text_ += R"(,"ExpressionAttributeValues":)";
  words(':', values_);
}

// {"#u":"uuid"} or {":u":{"S":"..."}}.  There is no condition without words.
void RequestBody::words(char mark, unsigned bits) {
  const bool names = mark == '#';
  const std::size_t begin = text_.size();
  const auto next_numbered = [&](const char* word, std::size_t number) {
    text_ += ",\"";
    text_ += mark;
    text_ += word;
    text_ += Digits(number);
    text_ += "\":";
  };
  while (bits != 0) {
    const char word = kLetters[next_of(bits)];
    const char member[] = {',', '"', mark, word, '"', ':'};
    text_ += {member, sizeof member};
    if (!names) {
      value(word, request_.stamp);
    } else if (word == 'n') {
      append_string(text_, place_.key_name);
    } else {
      text_.quote(name_of(word, place_.layout->names));
    }
  }
  for (std::size_t i = 0; kStoresMore && i < set_; ++i) {
    next_numbered("set", i);
    if (names) {
      append_string(text_, set()[i].name);
    } else {
      dynamodb::append_value(text_, set()[i]);
    }
  }
  for (std::size_t i = 0; kStoresMore && names && i < gone_; ++i) {
    next_numbered("gone", i);
    append_string(text_, request_.changes->remove[i]);
  }
  for (std::size_t i = 0; !names && i < own_; ++i) {
    next_numbered("", i);
    value(place_.layout->version, request_.own[i]);
  }
  text_[begin] = '{';  // Before the first, in the place of its comma.
  text_ += '}';
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
