// Requests as JSON.
//
//   write_request(target, request, body);
//   client.begin(pending, action_of(request.verb, target.policy), body);
//
// A layout writes the expressions with a RequestBody, and binds their values
// next to them:
//
//   body.update("SET #expires = :expires").bind(":expires", end);
//   body.condition("#uuid = :uuid").bind(":uuid", request.uuid);
//
// "#expires" stands for the attribute that the layout calls so, "#key" for the
// partition key and "#data" for the user's `data`.
#ifndef DDBMUTEX_REQUESTS_HPP
#define DDBMUTEX_REQUESTS_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../../sigv4/text.hpp"
#include "../dynamodb/answer.hpp"
#include "../dynamodb/item.hpp"
#include "row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// Appends the body of the request.
void write_request(const RowTarget& target, const Request& request,
                   sigv4::Text& body);
// The action that the body is for.
dynamodb::Action action_of(Request::Verb verb, const RowPolicy& policy);

// What the words of expressions stand for, as the members of a JSON object.
// Each is there once, because DynamoDB refuses repetitions.
class Placeholders {
 public:
  explicit Placeholders(char mark);

  // Begins the member of that word, whose value is to be appended to `json`.
  // Returns false if it is there already.  REQUIRES: the word is of a literal.
  bool begin(std::string_view word);
  // The same for a word with a number behind it, which is always new.
  void begin(std::string_view word, std::size_t number);

  sigv4::Text json;  // Without the last brace.

 private:
  void begin_member(std::string_view word);

  const char mark_;
  std::vector<std::string_view> words_;
};

// The body of a request, as it grows.  DynamoDB refuses names and values that
// no expression uses, so each call that adds to an expression adds its names
// too, and bind() follows it with its values.
class RequestBody {
 public:
  // It is appended to `text`.
  RequestBody(const RowTarget& target, sigv4::Text& text);

  void key();

  // --- First the item that is put, or the update

  // The one of them by which a take writes its record.
  void begin_record(const RowPolicy& policy);
  void item();
  RequestBody& update(std::string_view expression = "");
  // Gives an attribute its value, as a member of the item or as an assignment
  // "#word = :word" of the update.
  void set(std::string_view word, std::string_view text);
  void set(std::string_view word, std::int64_t number);
  void set(const dynamodb::Item& attributes);
  // What the user sets and removes; behind all other assignments.
  void change(const ChangesPtr& changes);

  // --- Then the condition

  RequestBody& condition(std::string_view expression);

  // --- In either

  // Appends to the expression.
  RequestBody& add(std::string_view expression);
  // Gives the value of a word such as ":uuid".  If it has one already it must
  // be the same.
  RequestBody& bind(std::string_view word, std::string_view text);
  RequestBody& bind(std::string_view word, std::int64_t number);
  // Appends an element of a list: ":own0", and then ", :own1".
  void element(std::string_view text);
  void element(std::int64_t number);

  // --- At last

  // Ends the expressions and adds what their words stand for.
  void end_expressions();
  // ,"name":value
  void option(std::string_view name, std::string_view json);
  void end() { text_ += '}'; }

 private:
  enum class Part { none, item, update, condition };

  void begin(Part part, std::string_view json);
  void end_part();
  void key_members();
  void add_name(std::string_view word);
  sigv4::Text& begin_set(std::string_view word);
  sigv4::Text& begin_element();

  const RowTarget& target_;
  sigv4::Text& text_;
  Part part_ = Part::none;
  bool is_empty_ = true;  // Nothing of the expression is there yet.
  std::size_t elements_ = 0;
  Placeholders names_{'#'}, values_{':'};
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_REQUESTS_HPP
