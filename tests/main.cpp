// Entry of the Boost.Test programs.  Counts test cases for the tests' runner:
// with DDBMUTEX_TEST_COUNTS set, "PASSED FAILED" is written to that file.
#include <boost/test/results_collector.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>

namespace {

class Counter : public boost::unit_test::test_observer {
 public:
  void test_unit_finish(const boost::unit_test::test_unit& unit,
                        unsigned long) override {
    if (unit.p_type != boost::unit_test::TUT_CASE) return;
    const auto& results =
        boost::unit_test::results_collector.results(unit.p_id);
    ++(results.passed() ? passed_ : failed_);
  }

  void test_finish() override {
    const char* path = std::getenv("DDBMUTEX_TEST_COUNTS");
    if (path != nullptr)
      std::ofstream(path) << passed_ << " " << failed_ << "\n";
  }

  // After results_collector, which must have judged the case before us.
  int priority() override { return 5; }

 private:
  int passed_ = 0;
  int failed_ = 0;
};

Counter& counter() {
  static Counter instance;
  return instance;
}

struct Registration {
  Registration() { boost::unit_test::framework::register_observer(counter()); }
  ~Registration() {
    boost::unit_test::framework::deregister_observer(counter());
  }
};
BOOST_GLOBAL_FIXTURE(Registration);

}  // namespace

// Asked for by Boost.Test's own main().
boost::unit_test::test_suite* init_unit_test_suite(int, char**) {
  boost::unit_test::framework::master_test_suite().p_name.value = "ddbmutex";
  return nullptr;
}
