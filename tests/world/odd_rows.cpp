#include "tests/world/odd_rows.hpp"

#include <iterator>

#include "tests/support/layouts.hpp"

namespace world {
namespace {

using tests::Layout;

// A good row, whose lease has long been over, with one thing wrong.
struct Odd {
  const char* without;  // The attribute that is left out; "all": all of them.
  const char* with;     // What is there instead.
  enum class Who { all, who_keeps, who_deletes } who = Who::all;
};
using Who = Odd::Who;

struct Attribute {
  const char* name;
  const char* json;
};

std::string row_with(const Attribute (&good)[4], const Odd& odd) {
  std::string row = odd.with;
  if (std::string(odd.without) == "all") return row;
  for (const Attribute& one : good) {
    if (std::string(one.name) == odd.without) continue;
    row +=
        std::string(row.empty() ? "" : ",") + '"' + one.name + "\":" + one.json;
  }
  return row;
}

template <std::size_t size>
std::string draw(Random& random, const Attribute (&good)[4],
                 const Odd (&all)[size], bool keeps) {
  const Who wanted = keeps ? Who::who_keeps : Who::who_deletes;
  const Odd* odd = nullptr;
  do {
    odd = &all[random.below(size)];
  } while (odd->who != Who::all && odd->who != wanted);
  return row_with(good, *odd);
}

constexpr const char* kFraction = R"("token":{"N":"1.5"})";
constexpr const char* kUuid = R"({"S":"0123456789abcdef0123456789abcdef"})";
constexpr const char* kOver = R"({"N":"1700000000000000000"})";
constexpr const char* kName = R"({"S":"somebody"})";

constexpr Attribute kGood[] = {{"uuid", kUuid},
                               {"expires", kOver},
                               {"lease", R"({"N":"500"})"},
                               {"owner", kName}};
constexpr Odd kOdd[] = {
    {"uuid", R"("uuid":{"N":"7"})"},
    {"uuid", R"("uuid":{"S":"%"})"},  // Too long.
    {"expires", R"("expires":{"N":"-1"})"},
    {"expires", R"("expires":{"N":"99999999999999999999"})"},
    {"expires", R"("expires":{"S":"1700000000000000000"})"},
    {"expires", ""},
    {"lease", R"("lease":{"N":"31622400001"})"},
    {"lease", R"("lease":{"N":"0"})"},
    {"lease", R"("lease":{"S":"500"})"},
    {"", kFraction},
    {"", R"("token":{"N":"-1"})"},
    {"", R"("token":{"S":"3"})"},
    {"", R"("token":{"N":"9000000000000000001"})"},
    {"all", R"("shoe":{"N":"38"},"owner":{"S":"me"})", Who::who_keeps},
    {"all", R"("shoe":{"N":"38"},"lease":{"N":"500"})", Who::who_keeps},
    {"all", R"("shoe":{"N":"38"},"ttl":{"N":"1700000000"})", Who::who_keeps},
    {"all", R"("shoe":{"N":"38"})", Who::who_deletes},
    {"all", R"("token":{"N":"5"})", Who::who_deletes},
    {"", R"("token":{"N":"5"})", Who::who_deletes},
    {"expires", R"("expires":{"N":"0"},"token":{"N":"5"})", Who::who_deletes},
};

constexpr Attribute kGoodLockclient[] = {{"identifier", kUuid},
                                         {"expiry", kOver},
                                         {"lease", R"({"N":"500"})"},
                                         {"owner", kName}};
constexpr Odd kOddLockclient[] = {
    {"identifier", R"("identifier":{"N":"7"})"},
    {"identifier", ""},
    {"expiry", R"("expiry":{"N":"-1"})"},
    {"expiry", R"("expiry":{"S":"1700000000"})"},
    {"lease", R"("lease":{"N":"31622400001"})"},
};

constexpr Attribute kGoodLease[] = {{"ProcessID", kUuid},
                                    {"LeaseUntil", kOver},
                                    {"work", kName},
                                    {"more", kName}};
constexpr Odd kOddLease[] = {
    {"LeaseUntil", ""},
    {"LeaseUntil", R"("LeaseUntil":{"N":"-1"})"},
    {"LeaseUntil", R"("LeaseUntil":{"S":"0"})"},
    {"ProcessID", R"("ProcessID":{"N":"7"})"},
};

constexpr Attribute kGoodVersion[] = {{"recordVersionNumber", kUuid},
                                      {"ownerName", kName},
                                      {"leaseDuration", R"({"S":"1s"})"},
                                      {"isReleased", R"({"S":"1"})"}};
constexpr Odd kOddVersion[] = {
    {"recordVersionNumber", R"("recordVersionNumber":{"N":"7"})"},
    {"ownerName", ""},
    {"ownerName", R"("ownerName":{"N":"7"})"},
    {"leaseDuration", R"("leaseDuration":{"N":"20000"})"},
    {"isReleased", R"("isReleased":{"N":"1"})"},
    {"", R"("isNonAcquirable":{"S":"1"})"},
    {"", R"("data":{"S":"text"})"},
};
// Nobody can tell when their leases are over.
constexpr Odd kOddLeases[] = {
    {"isReleased", R"("leaseDuration":{"S":"20"})"},
    {"isReleased", R"("leaseDuration":{"S":"soon"})"},
    {"isReleased", R"("leaseDuration":{"S":""})"},
};

}  // namespace

bool may_be_counted(const std::string& row) {
  return row.find(kFraction) != row.npos;
}

std::string draw_odd_row(Random& random, Layout layout, bool keeps) {
  std::string row;
  switch (layout) {
    case Layout::ddblock:
      row = draw(random, kGood, kOdd, keeps);
      break;
    case Layout::lockclient:
      row = draw(random, kGoodLockclient, kOddLockclient, keeps);
      break;
    case Layout::lease:
      row = draw(random, kGoodLease, kOddLease, keeps);
      break;
    default:
      if (random.chance(0.7)) {
        row = draw(random, kGoodVersion, kOddVersion, keeps);
      } else {
        const Odd& odd = kOddLeases[random.below(std::size(kOddLeases))];
        row = std::string(odd.with) +
              R"(,"ownerName":{"S":"somebody"},"recordVersionNumber":)" + kUuid;
      }
  }
  const std::size_t at = row.find('%');
  if (at != row.npos) row.replace(at, 1, std::string(1025, 'u'));
  return row;
}

}  // namespace world
