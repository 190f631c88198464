// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Requests as JSON.
//
//   write_request(target, request, body);
//   client.begin(pending, action_of(request.verb, target.policy), body);
//
// RequestBody has a function for each verb, for all layouts.  The expressions
// are the layout's (row_format.hpp).
#ifndef DDBMUTEX_REQUESTS_HPP
#define DDBMUTEX_REQUESTS_HPP

#include <string>
#include <string_view>
#include <vector>

#include "../../sigv4/text.hpp"
#include "../dynamodb/answer.hpp"
#include "../dynamodb/item.hpp"
#include "row.hpp"
#include "row_format.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// Appends the body of the request.
void write_request(const RowTarget& target, const Request& request,
                   sigv4::Text& body);
// The action that the body is for.
dynamodb::Action action_of(Request::Verb verb, const RowPolicy& policy);

// Writes the body of a request.  DynamoDB refuses names and values that no
// expression uses, or that are repeated, so add() notes which words its
// expression uses.
class RequestBody {
 public:
  // `text`: the body is appended to it.
  RequestBody(const RowTarget& target, const Request& request,
              sigv4::Text& text);

  void write();

  // Appends to the update or the condition, whichever was begun.  REQUIRES: a
  // string literal, because its words are not copied.
  void add(std::string_view expression);

 private:
  void take();
  void renew();
  void release();
  void check();
  void wait();

  void put_record();
  void update_record();
  void set(const dynamodb::Item& attributes);
  void add_changes(std::string_view end);
  void begin(const char* expression) { json_.name(expression).begin_text(); }
  void end_expression() { json_.end_text(); }
  void add_numbered(std::string_view word, std::size_t number);

  void write_key();
  void write_returned();
  void write_names();
  void write_values();

  const RowTarget& target_;
  const Request& request_;
  const dynamodb::Action action_;
  const RowFormat& format_;
  const Expressions& expressions_;
  dynamodb::JsonWriter json_;
  // The words of all expressions, such as "#uuid" and ":uuid", each once.
  std::vector<std::string_view> names_, values_;
  // What an update sets and removes beside the record: "#set0 = :set0",
  // "#removed0".  Null: nothing.
  const dynamodb::Item* set_ = nullptr;
  const std::vector<std::string>* removed_ = nullptr;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_REQUESTS_HPP
