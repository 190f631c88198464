// What the library sends, reads and compares is the same whatever locale the
// program has chosen: a Turkish one, in which 'I' is no upper case of 'i', and
// a C++ one that groups digits.
#include <strings.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <clocale>
#include <string>

#include "ddbmutex.hpp"
#include "sigv4/http_answer.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/shell.hpp"

using namespace std::chrono_literals;
using namespace tests;
namespace sigv4 = ddbmutex::sigv4;

namespace {

// The C library's locale, made of the system's own description of it.
class TurkishLocale {
 public:
  TurkishLocale()
      : made_(shell("localedef -i tr_TR -f UTF-8 '" +
                    (home_.root / "tr_TR.UTF-8").string() + "'")),
        place_("LOCPATH", home_.root.c_str()) {
    BOOST_TEST_REQUIRE(setlocale(LC_ALL, "tr_TR.UTF-8") != nullptr, made_.said);
    setlocale(LC_TIME, "C");  // The scripted server writes a Date with it.
    // Else nothing here is tested.
    BOOST_TEST_REQUIRE(strcasecmp("I", "i") != 0);
  }
  ~TurkishLocale() { setlocale(LC_ALL, "C"); }

 private:
  Home home_;
  const Ran made_;
  const ProcessVariable place_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(locales)

BOOST_AUTO_TEST_CASE(headers_are_found_in_a_turkish_locale_in_any_case) {
  const TurkishLocale turkish;
  sigv4::HttpAnswer answer;
  answer.headers = "X-AMZN-REQUESTID: a\nI: b\n";
  BOOST_TEST(answer.header("x-amzn-requestid") == "a");
  BOOST_TEST(answer.header("i") == "b");
  // Through the whole of a call: the error names the request.
  ScriptedServer server([](const SeenRequest&) {
    Reply reply = failure(400, "AccessDeniedException");
    reply.headers = {{"x-amzn-RequestId", ""},
                     {"X-AMZN-REQUESTID", "this-one"}};
    return reply;
  });
  ddbmutex::DdbMutex mutex("x", unhurried(new_table_at(server)));
  const auto error = error_of([&] { mutex.lock(); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST(error->request_id() == "this-one");
}

BOOST_AUTO_TEST_SUITE_END()
