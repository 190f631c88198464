// A request that the simulated DynamoDB refuses: thrown where that is noticed,
// caught by Service::call().
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_REFUSAL_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_REFUSAL_HPP

#include <string>
#include <utility>

namespace world {
namespace dynamodb {

struct Refusal {
  std::string type;     // "ResourceNotFoundException"
  std::string message;  // Empty: the answer has none.
  // Further members of the answer as JSON, such as "Item":{...}
  std::string more{};
};

[[noreturn]] inline void refuse(std::string type, std::string message) {
  throw Refusal{std::move(type), std::move(message)};
}

[[noreturn]] inline void invalid(std::string message) {
  refuse("ValidationException", std::move(message));
}

}  // namespace dynamodb
}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_REFUSAL_HPP
