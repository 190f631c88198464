// A simulated DynamoDB: the tables of one region, which answer the requests
// that the library sends, and those of other libraries' clients, as the service
// does.
//
//   Service service;
//   service.create_table("locks", {"name", ""});
//   Reply reply = service.call("GetItem", R"({"TableName":"locks",...})");
//
// It does nothing by itself: only call() and the other functions of Service
// change its state.  Whatever DynamoDB knows but none of those clients sends is
// refused as NotSimulated.
//
//   number, value   what items are made of
//   json            requests and items as JSON
//   expression      what expressions say of an item, and do to it
//   tables, reads   tables, and what reads them
//   writes          what writes items, by itself or in a transaction
//   compare         sends random_requests to it and to an engine
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_SERVICE_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_SERVICE_HPP

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace world {

namespace dynamodb {
class Tables;
}

struct Reply {
  int status = 200;
  std::string body;  // JSON
};

// Calls must not overlap.
class Service {
 public:
  Service();
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // `operation`: "PutItem".  Atomic; throws nothing.
  Reply call(std::string_view operation, std::string_view body);

  // The names of the attributes; both are strings, and `sort` may be empty.
  struct Key {
    std::string partition, sort;
  };
  // It can be used at once.
  void create_table(const std::string& name, const Key& key);

  // Sets the service's clock.  It remembers the token of a transaction for ten
  // minutes.
  void set_time(std::chrono::seconds now);

  // For the judge, without a request.  Returns the item as DynamoDB's JSON;
  // empty if there is none.
  std::string item(const std::string& table, const std::string& partition,
                   const std::string& sort = {}) const;
  std::size_t size(const std::string& table) const;
  // Removes an item, as a person or DynamoDB's clean-up does.
  void remove(const std::string& table, const std::string& partition,
              const std::string& sort = {});

 private:
  const std::unique_ptr<dynamodb::Tables> tables_;
};

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_SERVICE_HPP
