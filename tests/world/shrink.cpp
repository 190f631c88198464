#include "tests/world/shrink.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace world {
namespace {

// Takes one complication out of a plan.
using Change = void (*)(Plan& plan);

// What can be switched off.
constexpr Change kSimpler[] = {
    [](Plan& plan) { plan.weather = {}; },
    [](Plan& plan) { plan.climate = {}; },
    [](Plan& plan) {
      for (HostPlan& host : plan.hosts) host.rate = 1;
    },
    [](Plan& plan) {
      for (HostPlan& host : plan.hosts) host.wall_offset = {};
    },
    [](Plan& plan) { plan.front_ends.ahead = {nanoseconds(0)}; },
    [](Plan& plan) { plan.front_ends.date = true; },
    [](Plan& plan) { plan.sort_key.clear(); },
    [](Plan& plan) { plan.odd_row.reset(); },
    [](Plan& plan) { plan.locks = 1; },
};

class Shrinker {
 public:
  Shrinker(Plan plan, const std::function<bool(const Plan&)>& fails, int lives)
      : plan_(std::move(plan)), fails_(fails), lives_(lives) {}

  Plan shrink() {
    // The largest parts come first.  It begins again as long as something was
    // left out, because more can then often be left out of the rest.
    do {
      smaller_ = false;
      leave_out([](Plan & plan) -> auto& { return plan.programs; });
      leave_out([](Plan & plan) -> auto& { return plan.faults; });
      for (const Change simpler : kSimpler) try_change(simpler);
      for (const WeatherKind& kind : kWeatherKinds) {
        try_change([&](Plan& plan) { plan.weather.*kind.chance = 0; });
      }
      for (std::size_t i = 0; i < plan_.programs.size(); ++i) {
        leave_out([i](Plan & plan) -> auto& { return plan.programs[i].steps; });
        try_change([i](Plan& plan) { plan.programs[i].threads = 1; });
        try_change([i](Plan& plan) { plan.programs[i].starts = {}; });
      }
    } while (smaller_ && lives_ > 0);
    return plan_;
  }

 private:
  template <class Changes>
  bool try_change(const Changes& change) {
    if (lives_ <= 0) return false;
    Plan changed = plan_;
    change(changed);
    if (is_same(changed)) return false;
    --lives_;
    if (!fails_(changed)) return false;
    plan_ = std::move(changed);
    smaller_ = true;
    return true;
  }

  bool is_same(const Plan& changed) const {
    const auto sizes = [](const Plan& plan) {
      std::vector<std::size_t> all{plan.programs.size(), plan.faults.size()};
      for (const ProgramPlan& own : plan.programs) {
        all.push_back(own.steps.size());
      }
      return all;
    };
    return sizes(changed) == sizes(plan_) &&
           description_of(changed) == description_of(plan_);
  }

  // Tries to leave out the whole list, halves, quarters, down to single
  // elements.
  template <class List>
  void leave_out(const List& list_of) {
    for (std::size_t size = list_of(plan_).size(); size > 0; size /= 2) {
      for (std::size_t begin = 0; begin < list_of(plan_).size();) {
        const bool left_out = try_change([&](Plan& plan) {
          auto& list = list_of(plan);
          const auto first = list.begin() + static_cast<std::ptrdiff_t>(begin);
          const std::size_t count = std::min(size, list.size() - begin);
          list.erase(first, first + static_cast<std::ptrdiff_t>(count));
        });
        if (!left_out) begin += size;
      }
    }
  }

  Plan plan_;
  const std::function<bool(const Plan&)>& fails_;
  int lives_;
  bool smaller_ = false;
};

}  // namespace

Plan shrink(const Plan& plan, const std::function<bool(const Plan&)>& fails,
            int lives) {
  return Shrinker(plan, fails, lives).shrink();
}

}  // namespace world
