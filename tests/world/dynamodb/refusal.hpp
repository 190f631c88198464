// A request that the simulated DynamoDB refuses: thrown where that is noticed,
// caught by Service::call().
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_REFUSAL_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_REFUSAL_HPP

#include <string>

namespace world::dynamodb {

struct Refusal {
  std::string type;     // "ResourceNotFoundException"
  std::string message;  // Empty: the answer has none.
  // Further members of the answer as JSON, such as "Item":{...}
  std::string more{};
};

[[noreturn]] inline void invalid(const std::string& message) {
  throw Refusal{"ValidationException", message};
}

// Something that DynamoDB may know, but that none of the simulated clients
// sends.
[[noreturn]] inline void not_simulated(const std::string& what) {
  throw Refusal{"NotSimulated", "the simulated DynamoDB has no " + what};
}

}  // namespace world::dynamodb

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_REFUSAL_HPP
