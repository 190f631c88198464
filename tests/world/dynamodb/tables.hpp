// The tables of a simulated DynamoDB, and its operations.
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_TABLES_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_TABLES_HPP

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/world/dynamodb/json.hpp"
#include "tests/world/dynamodb/value.hpp"

namespace world::dynamodb {

// Where an item is among the others: a hash of its partition key, that key, and
// its sort key or "".  As in DynamoDB, partitions are in the order of the hash,
// and the items of a partition are in the order of their sort keys.
using Place = std::tuple<std::uint64_t, std::string, std::string>;
Place place_of(const std::string& partition, const std::string& sort);

struct Table {
  std::vector<std::string> key;  // Of one or two attributes, both strings.
  std::string id;
  std::map<Place, Item> items{};

  bool is_of_key(const std::string& attribute) const;
  const Item* find(const Place& place) const;  // Null if there is none.
  // These refuse a wrong key.
  Place place_of_key(const Item& key) const;    // Of a request's Key.
  Place place_of_item(const Item& item) const;  // Of an item to be put.
};

enum class WriteKind { put, update, remove, check };

// Each of the operations returns the body of its answer, or throws a Refusal.
class Tables {
 public:
  std::string get_item(const Json& body);
  std::string put_item(const Json& body);
  std::string update_item(const Json& body);
  std::string delete_item(const Json& body);
  std::string scan(const Json& body) { return page(body, false); }
  std::string query(const Json& body) { return page(body, true); }
  std::string transact_write_items(const Json& body);
  std::string describe_table(const Json& body);

  void create(const std::string& name, std::vector<std::string> key);
  Table* find(const std::string& name);      // Null if there is none.
  Table& existing(const std::string& name);  // Refuses one that is not there.
  void set_time(std::chrono::seconds now) { now_ = now; }

 private:
  struct Transaction {
    std::string parts;  // As JSON.
    std::chrono::seconds time;
  };

  std::string page(const Json& body, bool is_query);
  std::string write(WriteKind kind, const Json& body);
  // Refuses a token that came with another transaction.
  bool is_repeated(const std::string& token, const std::string& parts) const;

  std::map<std::string, Table> tables_;
  int tables_made_ = 0;
  std::chrono::seconds now_{};
  std::map<std::string, Transaction> transactions_;  // By their tokens.
};

}  // namespace world::dynamodb

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_TABLES_HPP
