// The tables of a simulated DynamoDB, and what its operations share.
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_TABLES_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_TABLES_HPP

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "tests/world/dynamodb/expression.hpp"
#include "tests/world/dynamodb/json.hpp"
#include "tests/world/dynamodb/refusal.hpp"
#include "tests/world/dynamodb/table.hpp"

namespace world {
namespace dynamodb {

// A write of which all has been checked that can be without its table.
struct Write {
  Request request;
  ExpressionPointer condition{}, update{};  // Either may be null.
  Table* table = nullptr;                   // Set by locate(),
  Place place{};                            // and this.
};

// The body of an answer, or a refusal.  What is refused every day, for a lock
// is held, is returned, and all else is thrown: that takes longer.
using Outcome = std::variant<std::string, Refusal>;

// Each of the operations returns its outcome, or throws a Refusal.
class Tables {
 public:
  Outcome get_item(const Json& body);
  Outcome put_item(const Json& body);
  Outcome update_item(const Json& body);
  Outcome delete_item(const Json& body);
  Outcome scan(const Json& body);
  Outcome query(const Json& body);
  Outcome transact_write_items(const Json& body);
  Outcome create_table(const Json& body);
  Outcome delete_table(const Json& body);
  Outcome describe_table(const Json& body);
  Outcome update_time_to_live(const Json& body);
  Outcome describe_time_to_live(const Json& body);

  Table& create(const std::string& name, std::vector<KeyPart> key);
  Table* find(const std::string& name);  // Null if there is none.
  void set_time(std::chrono::seconds now) { now_ = now; }

 private:
  struct Entry {
    Table table;
    std::string id;
    std::string clean_up_attribute{};  // Empty: there is no clean-up.
  };
  struct Transaction {
    std::string parts;  // As JSON.
    std::chrono::seconds time;
  };
  struct Part;  // Of a transaction.

  Table& existing(const Request& request);
  Entry& entry_of(const std::string& name);
  std::string description(const std::string& name, const Entry& entry,
                          const char* status) const;

  ExpressionPointer parsed(const char* parameter,
                           const std::optional<std::string>& text,
                           const Bindings& bindings);
  // What must be known of a write before anything is done.
  Write prepared(Request request);
  Write prepared(const Json& body, std::string_view members,
                 std::string_view return_values);
  // Refuses a table that is not there, and a wrong key.
  void locate(Write& write);
  void read_part(const Json& json, Reader& reader, std::vector<Part>& parts);
  std::string page(const Json& body, bool is_query);
  // Refuses the same token with something else.
  bool is_repeated(const std::string& token, const Json& parts);
  void remember(const std::string& token, const Json& parts);

  std::map<std::string, Entry> entries_;
  ExpressionCache expressions_;
  int tables_made_ = 0;
  std::chrono::seconds now_{};
  std::map<std::string, Transaction> transactions_;  // By their tokens.
};

bool condition_holds(const Write& write, const Item* found);
// The item that an update leaves; refuses one that cannot be made.
Item updated_by(const Write& write, const Item* found);

// Refuses a value that is not among those allowed, each with a blank around it.
void check_choice(const std::string& value, std::string_view allowed);

}  // namespace dynamodb
}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_TABLES_HPP
