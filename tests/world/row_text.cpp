
#include "tests/world/row_text.hpp"

#include <string>
#include <string_view>

#include "tests/support/layouts.hpp"

namespace world {

using tests::Layout;

std::string value_after(std::string_view text, const std::string& before) {
  const auto at = text.find(before);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + before.size());
  return std::string(rest.substr(0, rest.find('"')));
}

std::int64_t number_in(const std::string& item, const std::string& name) {
  const std::string digits = value_after(item, '"' + name + R"(":{"N":")");
  const bool is_whole = !digits.empty() && digits.size() < 20 &&
                        digits.find_first_not_of("0123456789") == digits.npos;
  return is_whole ? std::stoll(digits) : 0;
}

Names names_of(Layout layout) {
  switch (layout) {
    case Layout::lockclient:
      return {"identifier", "expiry"};
    case Layout::lease:
      return {"ProcessID", "LeaseUntil"};
    case Layout::dynamolock:
    case Layout::awslabs:
      return {"recordVersionNumber", "isReleased"};
    default:
      return {"uuid", "expires"};
  }
}

std::string proof_in(const std::string& item, Layout layout) {
  const std::string name = names_of(layout).proof;
  const std::string proof = value_after(item, '"' + name + R"(":{"S":")");
  return proof.substr(0, proof.find(':'));
}

bool is_free(const std::string& item, Layout layout) {
  if (proof_in(item, layout).empty()) return true;
  const std::string end = '"' + std::string(names_of(layout).end) + '"';
  if (layout == Layout::dynamolock || layout == Layout::awslabs) {
    return item.find(end) != std::string::npos;
  }
  return item.find(end + R"(:{"N":"0"})") != std::string::npos;
}

}  // namespace world
