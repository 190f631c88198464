// What the library tells a logger of what it does, and that no logger harms it.
#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/agent.hpp"
#include "tests/support/failure_kit.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/stage.hpp"

using namespace std::chrono_literals;
using ddbmutex::DdbMutex;
using ddbmutex::LogLevel;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using tests::eventually;
using tests::Front;
using tests::has;
using tests::on_table;

namespace {

// What a logger was told.
class Lines {
 public:
  std::function<void(LogLevel, const std::string&)> logger() const {
    return [told = told_](LogLevel level, const std::string& text) {
      const std::lock_guard<std::mutex> guard(told->mutex);
      told->lines.push_back(std::string(name_of(level)) + ": " + text);
    };
  }
  std::vector<std::string> all() const {
    const std::lock_guard<std::mutex> guard(told_->mutex);
    return told_->lines;
  }
  std::string text() const {
    std::string text;
    for (const std::string& line : all()) text += line + "\n";
    return text;
  }

 private:
  struct All {
    std::mutex mutex;
    std::vector<std::string> lines;  // GUARDED_BY(mutex)
  };
  std::shared_ptr<All> told_ = std::make_shared<All>();
};

// The lease is long, and renewals come soon all the same.
ddbmutex::Options renewed_soon(const std::shared_ptr<Table>& table) {
  ddbmutex::Options options = on_table(table);
  options.renew_after = 200ms;
  return options;
}

// A lease that is soon over, and long in danger before: a machine that stands
// still in that time takes nothing away.
ddbmutex::Options soon_over(const std::shared_ptr<Table>& table) {
  ddbmutex::Options options = on_table(table, 4s);
  options.safe_time = 1900ms;
  options.request_timeout = 1900ms;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(diagnosis)

// --- The logger --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(source_of_keys_that_throws_cannot_forge_a_line) {
  const Front front;
  const Lines lines;
  TableOptions options = front.table_options();
  options.logger = lines.logger();
  options.credentials = {};
  options.credentials_source = []() -> std::optional<ddbmutex::Credentials> {
    throw std::runtime_error("no\nsuch \x1bkeys");
  };
  Table table(options);
  const std::string shown = R"(threw: no\nsuch \x1bkeys)";
  const auto error = tests::error_of([&] { table.inspect("x"); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST(has(error->what(), shown), error->what());
  BOOST_TEST(eventually([&] { return has(lines.text(), shown); }));
  for (const std::string& line : lines.all()) {
    BOOST_TEST(line.find_first_of("\n\x1b") == line.npos, line);
  }
}

BOOST_AUTO_TEST_CASE(logger_that_hangs_delays_neither_losses_nor_renewals) {
  const auto go_on = std::make_shared<tests::Event>();
  const Front front;
  TableOptions place = front.table_options();
  place.logger = [go_on](LogLevel, const std::string&) { go_on->wait(); };
  const auto table = tests::with_clock(std::make_shared<Table>(place));
  tests::Told told;
  ddbmutex::Options options = soon_over(table);
  options.renew_after = 200ms;
  options.on_danger = [&] { told.add("danger"); };
  options.on_lost = [&](ddbmutex::Loss loss) { told.add(name_of(loss)); };
  DdbMutex mutex(tests::fresh_name(), options);
  mutex.lock();
  front.gateway.fault("UpdateItem", "500", 2);
  const auto before = table->stats().update_item;
  BOOST_TEST(eventually([&] {
    return table->stats().update_item >= before + 4 && mutex.owns_lock();
  }));
  front.gateway.mode("hang");
  // While the logger has still not returned.
  BOOST_TEST(eventually([&] { return has(told.text(), "danger expired"); }),
             told.text());
  front.gateway.mode("open");
  go_on->set();
}

// What a logger refers to may go with the table.
BOOST_AUTO_TEST_CASE(nothing_is_told_once_the_table_is_gone) {
  Front front;
  Lines lines;
  TableOptions options = front.table_options();
  options.logger = lines.logger();
  auto table = tests::with_clock(std::make_shared<Table>(options));
  auto held =
      std::make_unique<DdbMutex>(tests::fresh_name(), renewed_soon(table));
  auto waited =
      std::make_unique<DdbMutex>(tests::fresh_name(), renewed_soon(table));
  held->lock();
  front.gateway.mode("hang");
  tests::Aside waiting([&waited] { waited->lock(); });
  BOOST_TEST(
      eventually([&] { return front.gateway.counts().under_way() >= 2; }));
  waited.reset();
  BOOST_TEST(waiting.ends());
  held.reset();
  table.reset();
  const std::string told = lines.text();
  front.gateway.mode("open");
  front.gateway.wait_until_quiet();
  tests::pause(100ms);  // No stall makes it more.
  BOOST_TEST(lines.text() == told);
}

BOOST_AUTO_TEST_SUITE_END()
