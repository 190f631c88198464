// What DynamoDB's expressions say of an item, and do to it.
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_EVALUATION_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_EVALUATION_HPP

#include <vector>

#include "tests/world/dynamodb/expression.hpp"
#include "tests/world/dynamodb/value.hpp"

namespace world {
namespace dynamodb {

// Refuses placeholders that have no binding, values of types that no item could
// make right, and paths that overlap.  To be called before the others.
void check(const Expression& expression, const Bindings& bindings);

// Its placeholders replaced.
Path resolved(Path path, const Bindings& bindings);

bool holds(const Condition& condition, const Item& item,
           const Bindings& bindings);

// The item after the update; refuses what cannot be done to this one.
Item updated(const Item& item, const std::vector<Change>& update,
             const Bindings& bindings);

// The parts of the item to which the paths lead.
Item projected(const Item& item, const std::vector<Path>& resolved_paths);

}  // namespace dynamodb
}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_EVALUATION_HPP
