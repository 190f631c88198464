#include "transact.hpp"

#include "../sigv4/text.hpp"
#include "json.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

namespace {

// Of the parts of a transaction, without ours.
constexpr std::size_t kMostWrites = 99;

// What stands between the outermost brackets.
std::string_view inside(std::string_view array) {
  const std::size_t begin = array.find('[') + 1;
  return array.substr(begin, array.rfind(']') - begin);
}

}  // namespace

std::string problem_of_writes(std::string_view writes) {
  const Document document{std::string(writes)};
  const Value list = document.root();
  if (!document.is_json()) {
    return sigv4::join({"not JSON at byte ", sigv4::Digits(document.bad_at())});
  }
  if (!list.is_list()) return "not an array";
  std::size_t count = 0;
  for (Elements each(list); each.next(); ++count) {
    if (!each.value.is_object()) return "an element is not an object";
  }
  if (count == 0) return "no elements";
  return count > kMostWrites ? "more than 99 elements" : "";
}

std::string write_transaction(std::string_view check, std::string_view writes,
                              std::string_view token) {
  return sigv4::join({R"({"TransactItems":[{"ConditionCheck":)", check, "},",
                      inside(writes), R"(],"ClientRequestToken":")", token,
                      "\"}"});
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
