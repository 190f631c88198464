#include "tests/support/check.hpp"

#include <boost/test/unit_test.hpp>
#include <sstream>
#include <string>

namespace tests {
namespace checks {

namespace tools = boost::test_tools::tt_detail;

namespace {

template <class T>
void print(std::ostream& out, const void* value) {
  tools::print_log_value<T>()(out, *static_cast<const T*>(value));
}

void print_text(std::ostream& out, const void* text) {
  tools::print_log_value<const char*>()(out, static_cast<const char*>(text));
}

// Nothing, if it was a bool: that says it all.
std::string why_not(const Verdict& verdict) {
  std::ostringstream out;
  if (verdict.unlike != nullptr) {
    verdict.left(out);
    out << verdict.unlike;
    verdict.right(out);
  } else if (verdict.left.is_there()) {
    out << "'";
    verdict.left(out);
    out << "' evaluates to false";
  }
  return out.str();
}

}  // namespace

Shown::Shown(const bool& value) : value_(&value), show_(print<bool>) {}
Shown::Shown(const char& value) : value_(&value), show_(print<char>) {}
Shown::Shown(const int& value) : value_(&value), show_(print<int>) {}
Shown::Shown(const unsigned& value) : value_(&value), show_(print<unsigned>) {}
Shown::Shown(const long& value) : value_(&value), show_(print<long>) {}
Shown::Shown(const unsigned long& value)
    : value_(&value), show_(print<unsigned long>) {}
Shown::Shown(const double& value) : value_(&value), show_(print<double>) {}
Shown::Shown(const char* text) : value_(text), show_(print_text) {}
Shown::Shown(const std::nullptr_t& value)
    : value_(&value), show_(print<std::nullptr_t>) {}
Shown::Shown(const std::string& value)
    : value_(&value), show_(print<std::string>) {}
Shown::Shown(const std::string_view& value)
    : value_(&value), show_(print<std::string_view>) {}

boost::unit_test::test_case* test_case(void (*body)(), const char* name,
                                       const char* file, std::size_t line) {
  return boost::unit_test::make_test_case(body, name, file, line);
}

void begin(const char* file, std::size_t line) {
  boost::unit_test::unit_test_log.set_checkpoint(file, line);
}

void end(const Verdict& verdict, const char* text, const char* file,
         std::size_t line, tools::tool_level level) {
  boost::test_tools::assertion_result result(verdict.good);
  if (!verdict.good) {
    result = tools::format_assertion_result(why_not(verdict), "");
  }
  tools::report_assertion(result, BOOST_TEST_LAZY_MSG(text), file, line, level,
                          tools::CHECK_BUILT_ASSERTION, 0);
}

}  // namespace checks
}  // namespace tests
