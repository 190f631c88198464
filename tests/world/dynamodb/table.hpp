// A table of the simulated DynamoDB.
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_TABLE_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_TABLE_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/world/dynamodb/value.hpp"

namespace world {
namespace dynamodb {

struct KeyPart {
  std::string name;
  Type type = Type::string;
};

// Where an item is among the others.  As in DynamoDB, those with one partition
// key are together, in the order of their sort keys; the partitions are in the
// order of a hash.
struct Place {
  std::uint64_t hash = 0;
  Value partition;
  std::optional<Value> sort{};  // None: before all that have one.
};
bool operator<(const Place& one, const Place& other);
Place place_of(const Value& partition, const Value* sort);

struct Page {
  std::vector<const Item*> items;
  std::size_t scanned = 0;
  std::optional<Item> last_key;  // If there may be more.
};

class Table {
 public:
  explicit Table(std::vector<KeyPart> key) : key_(std::move(key)) {}

  const std::vector<KeyPart>& key() const { return key_; }
  bool is_of_key(const std::string& attribute) const;

  // These refuse a wrong key.
  Place place_of_key(const Item& key) const;    // Of a request's Key.
  Place place_of_item(const Item& item) const;  // Of an item to be put.

  const Item* find(const Place& place) const;
  void put(const Place& place, Item item);
  void erase(const Place& place) { items_.erase(place); }
  std::size_t size() const { return items_.size(); }
  std::vector<const Item*> items() const;

  // One page of all items, or of a partition: those behind `start` for which
  // both predicates hold; only the second one's are counted as scanned.
  struct Search {
    std::optional<Place> partition{};
    std::optional<Place> start{};
    std::size_t most = 0;  // To be scanned.
    std::function<bool(const Item&)> is_wanted;
    std::function<bool(const Item&)> is_in_range;
  };
  Page page(const Search& search) const;

 private:
  using Items = std::map<Place, Item>;

  Items::const_iterator begin_of(const Search& search) const;
  Item key_of(const Item& item) const;

  std::vector<KeyPart> key_;
  Items items_;
};

}  // namespace dynamodb
}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_TABLE_HPP
