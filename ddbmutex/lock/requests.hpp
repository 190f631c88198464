// Requests as JSON.
//
//   write_request(target, request, body);
//   client.begin(pending, action_of(request.verb, target.policy), body);
//
// RequestBody has a function for each verb, for all layouts.  The expressions
// are the layout's (layouts.hpp).
#ifndef DDBMUTEX_REQUESTS_HPP
#define DDBMUTEX_REQUESTS_HPP

#include <cstddef>
#include <string_view>
#include <vector>

#include "../../sigv4/text.hpp"
#include "../dynamodb/answer.hpp"
#include "../dynamodb/item.hpp"
#include "layouts.hpp"
#include "row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// Appends the body of the request.
void write_request(const RowTarget& target, const Request& request,
                   sigv4::Text& body);
// The action that the body is for.
dynamodb::Action action_of(Request::Verb verb, const RowPolicy& policy);

// Builds the body of a request.  DynamoDB refuses names and values that no
// expression uses, so add() defines those that its expression uses.
class RequestBody {
 public:
  // `text`: the body is appended to it.
  RequestBody(const RowTarget& target, const Request& request,
              sigv4::Text& text);

  void write();

  // Appends to the update or the condition.  REQUIRES: a string literal,
  // because its words are not copied.
  void add(std::string_view expression);

 private:
  void take();
  void renew();
  void release();
  void force();
  void check();

  void add_key();
  void put_record();
  void update_record();
  void begin_update(std::string_view expression);
  void set(const dynamodb::Item& attributes);
  void add_changes();
  // Ends the item or the update, if there is one, and begins the condition.
  void begin_condition(std::string_view expression);
  // Appends a list of placeholders: ":own0, :own1".
  void add_own_versions();
  // Defines a word of an expression, such as "#uuid" or ":uuid".
  void define(std::string_view word);
  // Begins the definition of a word.  Its value must be appended to the result.
  sigv4::Text& begin_definition(std::string_view word, std::string_view number);
  void end_expressions();
  void add_option(std::string_view name, std::string_view json);

  const RowTarget& target_;
  const Request& request_;
  const dynamodb::Action action_;
  const Layout& layout_;
  const Expressions& expressions_;
  sigv4::Text& text_;
  // The definitions: JSON objects without their last braces.
  sigv4::Text names_, values_;
  // The words that are defined.  DynamoDB refuses repetitions.
  std::vector<std::string_view> words_;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_REQUESTS_HPP
