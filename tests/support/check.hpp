// BOOST_TEST(a == b) by a few functions that are compiled once, in place of
// Boost's templates, which each file instantiates anew for each pair of types:
// a third of the time that compiling the tests takes.  It says what Boost's
// says.  With a second argument (a message, per_element(), tolerance()) it is
// Boost's.
#ifndef DDBMUTEX_TESTS_SUPPORT_CHECK_HPP
#define DDBMUTEX_TESTS_SUPPORT_CHECK_HPP

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>

// What is compared may differ in sign, as with Boost's, whose headers no
// compiler warns of either.
#pragma GCC system_header
// And clang++ takes the << below for a mistake.
#ifdef __clang__
#pragma clang diagnostic ignored "-Woverloaded-shift-op-parentheses"
#endif

namespace tests {
namespace checks {

// A value, and how it is shown if it comes to that.
class Shown {
 public:
  Shown() = default;
  Shown(const bool& value);
  Shown(const char& value);
  Shown(const int& value);
  Shown(const unsigned& value);
  Shown(const long& value);
  Shown(const unsigned long& value);
  Shown(const double& value);
  Shown(const char* text);
  Shown(const std::nullptr_t& value);
  Shown(const std::string& value);
  Shown(const std::string_view& value);
  template <class T>
  Shown(const T& value) : value_(&value), show_(show<T>) {}

  bool is_there() const { return show_ != nullptr; }
  void operator()(std::ostream& out) const { show_(out, value_); }

 private:
  template <class T>
  static void show(std::ostream& out, const void* value) {
    out << *static_cast<const T*>(value);
  }

  const void* value_ = nullptr;
  void (*show_)(std::ostream&, const void*) = nullptr;
};

// What a check came to, and what it was about: a comparison, or a value alone.
struct Verdict {
  bool good;
  const char* unlike;  // How the two relate if it failed; null if there is one.
  Shown left, right;
};

// What is on the left of a comparison, or stands alone.
template <class L>
struct Left {
  const L& value;

  operator Verdict() const {
    if constexpr (std::is_same_v<L, bool>) {
      return {value, nullptr, Shown(), Shown()};
    } else {
      return {static_cast<bool>(value), nullptr, value, Shown()};
    }
  }
};

template <>
struct Left<const char*> {
  const char* value;
};

// Whatever precedes ==, and nothing else, is on the left.
struct Start {
  template <class L>
  Left<L> operator<<(const L& value) const {
    return {value};
  }
  Left<const char*> operator<<(const char* value) const { return {value}; }
  Left<const char*> operator<<(char* const& value) const { return {value}; }
};

// Texts are compared by what they say, wherever they are.
#define DDBMUTEX_TESTS_COMPARE(OP, UNLIKE)                                     \
  template <class L, class R>                                                  \
  Verdict operator OP(const Left<L>& left, const R& right) {                   \
    return {left.value OP right, UNLIKE, left.value, right};                   \
  }                                                                            \
  template <class L>                                                           \
  Verdict operator OP(const Left<L>& left, const char* const& right) {         \
    return {left.value OP right, UNLIKE, left.value, right};                   \
  }                                                                            \
  inline Verdict operator OP(const Left<const char*>& left,                    \
                             const char* const& right) {                       \
    return {std::string_view(left.value) OP right, UNLIKE, left.value, right}; \
  }                                                                            \
  template <class L>                                                           \
  Verdict operator OP(const Left<L>& left, char* const& right) {               \
    return left OP static_cast<const char*>(right);                            \
  }
DDBMUTEX_TESTS_COMPARE(==, " != ")
DDBMUTEX_TESTS_COMPARE(!=, " == ")
DDBMUTEX_TESTS_COMPARE(<, " >= ")
DDBMUTEX_TESTS_COMPARE(<=, " > ")
DDBMUTEX_TESTS_COMPARE(>, " <= ")
DDBMUTEX_TESTS_COMPARE(>=, " < ")
#undef DDBMUTEX_TESTS_COMPARE

boost::unit_test::test_case* test_case(void (*body)(), const char* name,
                                       const char* file, std::size_t line);

// That we came there, and then what was found.
void begin(const char* file, std::size_t line);
void end(const Verdict& verdict, const char* text, const char* file,
         std::size_t line, boost::test_tools::tt_detail::tool_level level);

}  // namespace checks
}  // namespace tests

#undef BOOST_TEST_TOOL_ET_IMPL
#define BOOST_TEST_TOOL_ET_IMPL(P, level)                                   \
  do {                                                                      \
    ::tests::checks::begin(__FILE__, __LINE__);                             \
    ::tests::checks::end(::tests::checks::Start() << P, BOOST_STRINGIZE(P), \
                         __FILE__, __LINE__,                                \
                         ::boost::test_tools::tt_detail::level);            \
  } while (::boost::test_tools::tt_detail::dummy_cond())

// A test without Boost's word for each of five steps about its body, which are
// half of the time that compiling a test without a body takes: where it begins
// is enough.
#undef BOOST_FIXTURE_TEST_CASE_WITH_DECOR
#define BOOST_FIXTURE_TEST_CASE_WITH_DECOR(test_name, F, decorators)         \
  struct test_name : public F {                                              \
    void test_method();                                                      \
  };                                                                         \
  static void BOOST_AUTO_TC_INVOKER(test_name)() {                           \
    ::tests::checks::begin(__FILE__, __LINE__);                              \
    test_name().test_method();                                               \
  }                                                                          \
  BOOST_AUTO_TU_REGISTRAR(test_name)                                         \
  (::tests::checks::test_case(&BOOST_AUTO_TC_INVOKER(test_name), #test_name, \
                              __FILE__, __LINE__),                           \
   decorators);                                                              \
  void test_name::test_method()

#endif
