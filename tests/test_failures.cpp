// Failures of the service and on the wire: answers that are lost, services that
// fail, hang, refuse or tell another time.  With real engines behind the
// gateway, which checks each signature, and through the public class alone.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/failure_kit.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using std::chrono::seconds;

BOOST_AUTO_TEST_SUITE(failure_table)

// --- Applied, but the answer is lost -----------------------------------------

BOOST_DATA_TEST_CASE(take_applied_and_unanswered_is_one_acquisition,
                     boost::unit_test::data::make(lost_answers()), loss) {
  Front front;
  Watched x(front, 1min);
  x.options.request_timeout = time_for(loss);
  x.make();
  front.gateway.add(losing("PutItem", loss));
  // The lease would be waited out for longer.
  BOOST_TEST(x.mutex->try_lock_for(kPlenty));
  BOOST_TEST(x.mutex->owns_lock());
  BOOST_TEST(front.gateway.counts().faults(loss) == 1);
  // What was said amiss has not been believed, though it was so.
  BOOST_TEST(front.gateway.counts().requests("PutItem") >= 2);
  DdbMutex rival(x.name, unhurried(table_at(front.engine)));
  BOOST_TEST(!rival.try_lock());
  BOOST_TEST(thrown_by([&] { x.mutex->unlock(); }) == "none");
  front.let_go();
  BOOST_TEST(eventually([&] { return front.is_free(x.name); }));
  BOOST_TEST(x.told.text() == "");
}

// --- Another time ------------------------------------------------------------

BOOST_DATA_TEST_CASE(clock_too_far_out_is_corrected_and_asked_again_once,
                     boost::unit_test::data::make({-11 * 3600, 400}), offset) {
  Front front;
  front.gateway.clock_offset(seconds(offset));
  Watched x(front, 1min);
  Watched other(front.table(), 1min, x.name);
  x.lock();
  const Gateway::Counts counts = front.gateway.counts();
  BOOST_TEST(counts.bad_signatures() == 0);
  BOOST_TEST(counts.early_signatures() == (offset > 0 ? 1 : 0));
  BOOST_TEST(counts.late_signatures() == (offset < 0 ? 1 : 0));
  BOOST_TEST(counts.good_signatures() >= 1);
  other.make();
  BOOST_TEST(!other.mutex->try_lock());
  BOOST_TEST(x.released() == "none");
}

BOOST_AUTO_TEST_CASE(clock_too_far_out_without_a_date_is_an_error_at_once) {
  Front front;
  front.gateway.clock_offset(3h);
  front.gateway.dates(false);
  Watched x(front, 1min);
  x.make();
  BOOST_TEST(thrown_by([&] { x.mutex->lock(); }) == words(Errc::bad_keys));
  BOOST_TEST(front.gateway.counts().early_signatures() == 1);
  BOOST_TEST(!x.mutex->owns_lock());
}

// --- Refused -----------------------------------------------------------------

namespace {

struct Mistake {
  const char* what;
  Errc code;
  int requests;
  std::function<void(TableOptions&)> make;
};
std::ostream& operator<<(std::ostream& out, const Mistake& mistake) {
  return out << mistake.what;
}

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> kAll = {
      {"wrong secret", Errc::bad_keys, 1,
       [](TableOptions& options) {
         options.credentials.secret_access_key += "x";
       }},
      {"unknown keys", Errc::bad_keys, 1,
       [](TableOptions& options) {
         options.credentials.access_key_id = "AKIDNOBODY";
       }},
      {"a token that is none", Errc::bad_keys, 1,
       [](TableOptions& options) {
         options.credentials.session_token = "token";
       }},
      {"no keys", Errc::no_keys, 0,
       [](TableOptions& options) {
         options.credentials_source = [] { return std::nullopt; };
       }},
      {"no such table", Errc::no_table, 1,
       [](TableOptions& options) { options.name = "no-such-table"; }}};
  return kAll;
}

}  // namespace

BOOST_DATA_TEST_CASE(mistake_is_told_at_once_and_is_no_lock,
                     boost::unit_test::data::make(mistakes()), mistake) {
  Front front;
  TableOptions options = front.table_options();
  mistake.make(options);
  Watched x(std::make_shared<Table>(options), 1min);
  x.make();
  BOOST_TEST(thrown_by([&] { x.mutex->lock(); }) == words(mistake.code));
  BOOST_TEST(front.gateway.counts().all_requests() == mistake.requests);
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(front.is_free(x.name));
  BOOST_TEST(thrown_by([&] { BOOST_TEST(!x.mutex->try_lock()); }) ==
             words(mistake.code));
}

BOOST_AUTO_TEST_SUITE_END()
