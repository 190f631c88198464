#include "tests/world/dynamodb/table.hpp"

#include <utility>

#include "tests/world/dynamodb/refusal.hpp"

namespace world {
namespace dynamodb {
namespace {

// From the developer guide ("Quotas in Amazon DynamoDB").
constexpr std::size_t kMostOfPartitionKey = 2048;
constexpr std::size_t kMostOfSortKey = 1024;
constexpr std::size_t kPageBytes = 1024 * 1024;

// FNV-1a.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return hash;
}

[[noreturn]] void wrong_parameter(const std::string& why) {
  invalid("One or more parameter values were invalid: " + why);
}

// Of an attribute of the key, whose type is right.
void check_key_value(const KeyPart& part, const Value& value, bool first) {
  if (value.text.empty()) {
    wrong_parameter(
        "The AttributeValue for a key attribute cannot contain an empty string "
        "value. Key: " +
        part.name);
  }
  const std::size_t most = first ? kMostOfPartitionKey : kMostOfSortKey;
  if (size_of(value) > most) {
    wrong_parameter("Size of " + std::string(first ? "hashkey" : "rangekey") +
                    " has exceeded the maximum size limit of" +
                    std::to_string(most) + " bytes");
  }
}

}  // namespace

bool operator<(const Place& one, const Place& other) {
  if (one.hash != other.hash) return one.hash < other.hash;
  const int partitions = compare(one.partition, other.partition);
  if (partitions != 0) return partitions < 0;
  if (!one.sort || !other.sort) return !one.sort && other.sort;
  return compare(*one.sort, *other.sort) < 0;
}

Place place_of(const Value& partition, const Value* sort) {
  Place place{hash_of(partition.text), partition};
  if (sort != nullptr) place.sort = *sort;
  return place;
}

bool Table::is_of_key(const std::string& attribute) const {
  for (const KeyPart& part : key_) {
    if (part.name == attribute) return true;
  }
  return false;
}

Place Table::place_of_key(const Item& key) const {
  for (const KeyPart& part : key_) {
    const Value* value = key.find(part.name);
    if (key.size() != key_.size() || value == nullptr ||
        value->type != part.type) {
      invalid("The provided key element does not match the schema");
    }
  }
  return place_of_item(key);
}

Place Table::place_of_item(const Item& item) const {
  for (const KeyPart& part : key_) {
    const Value* value = item.find(part.name);
    if (value == nullptr) {
      wrong_parameter("Missing the key " + part.name + " in the item");
    }
    if (value->type != part.type) {
      wrong_parameter("Type mismatch for key " + part.name + " expected: " +
                      tag_of(part.type) + " actual: " + tag_of(value->type));
    }
    check_key_value(part, *value, &part == &key_.front());
  }
  return place_of(*item.find(key_[0].name),
                  key_.size() > 1 ? item.find(key_[1].name) : nullptr);
}

const Item* Table::find(const Place& place) const {
  const auto found = items_.find(place);
  return found != items_.end() ? &found->second : nullptr;
}

void Table::put(const Place& place, Item item) {
  items_.insert_or_assign(place, std::move(item));
}

std::vector<const Item*> Table::items() const {
  std::vector<const Item*> all;
  for (const auto& [place, item] : items_) all.push_back(&item);
  return all;
}

Item Table::key_of(const Item& item) const {
  Item key;
  for (const KeyPart& part : key_) key.set(part.name, *item.find(part.name));
  return key;
}

Table::Items::const_iterator Table::begin_of(const Search& search) const {
  if (search.start) return items_.upper_bound(*search.start);
  return search.partition ? items_.lower_bound(*search.partition)
                          : items_.begin();
}

Page Table::page(const Search& search) const {
  Page page;
  std::size_t bytes = 0;
  const Item* last = nullptr;
  for (auto at = begin_of(search); at != items_.end(); ++at) {
    const auto& [place, item] = *at;
    const bool is_beyond =
        search.partition && !(place.partition == search.partition->partition);
    if (is_beyond) break;
    if (!search.is_in_range(item)) continue;
    bytes += size_of(item);
    if (bytes > kPageBytes && last != nullptr) {
      page.last_key = key_of(*last);
      break;
    }
    last = &item;
    if (search.is_wanted(item)) page.items.push_back(last);
    if (++page.scanned < search.most) continue;
    page.last_key = key_of(item);
    break;
  }
  return page;
}

}  // namespace dynamodb
}  // namespace world
