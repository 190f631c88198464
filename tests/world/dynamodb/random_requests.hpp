// Requests drawn from a seed, for a comparison of the simulated DynamoDB with
// an engine: those of the library's and other clients' forms on rows of any
// content, those of any form, and such as have a fault.
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_RANDOM_REQUESTS_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_RANDOM_REQUESTS_HPP

#include <cstddef>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace world {
namespace dynamodb {

struct RandomRequest {
  std::string operation;  // "PutItem"
  std::string body;
};

// Of the tables "locks", whose key is `name`, and "sorted", whose sort key is
// `part`; and of "nowhere", which is not there.
class RandomRequests {
 public:
  explicit RandomRequests(unsigned seed) : random_(seed) {}

  RandomRequest next();
  // From now on, transactions have tokens that none before had.
  void use_new_tokens() { ++token_series_; }

 private:
  using Texts = std::vector<const char*>;

  std::size_t below(std::size_t count) { return random_() % count; }
  bool one_in(std::size_t count) { return below(count) == 0; }
  const char* any(const Texts& texts) { return texts[below(texts.size())]; }

  std::string name(const std::string& attribute);  // Or its placeholder.
  std::string value(const std::string& json);      // Its placeholder.
  std::string bindings() const;

  std::string attribute();
  std::string path();
  std::string target();  // Of an update.
  std::string number();
  std::string typed(int depth);
  std::string key();
  std::string item();
  std::string table();

  std::string operand();
  std::string test();
  std::string condition(int depth);
  std::string library_condition();
  std::string update();
  std::string library_update();
  std::string projection();
  std::string returning(const Texts& values);

  RandomRequest get();
  RandomRequest put();
  RandomRequest change();
  RandomRequest removal();
  RandomRequest scan();
  RandomRequest query();
  RandomRequest transaction();
  std::string part();
  void spoil(std::string& body);

  std::mt19937 random_;
  std::string place_;  // The key of the request, without brackets.
  bool is_sorted_ = false;
  int token_series_ = 0;
  std::size_t key_count_ = 3;  // Of those from which it is drawn.
  std::map<std::string, std::string> names_, values_;  // By placeholder.
};

}  // namespace dynamodb
}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_RANDOM_REQUESTS_HPP
