// The JSON that keys come in, and the keys in it.
#include <pthread.h>

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sigv4/keys/from_json.hpp"
#include "tests/support/asking.hpp"
#include "tests/support/home.hpp"

namespace {

using namespace ddbmutex;
using namespace ddbmutex::sigv4;
using namespace std::string_view_literals;
using tests::said;

bool is_object(std::string_view text) {
  return parse_json(text).root().is_object();
}

Document parsed(std::string_view text) {
  BOOST_TEST_REQUIRE(is_object(text), text);
  return parse_json(text);
}

// Nested so many times, an array in an array.
std::string nested(std::size_t depth) {
  return R"({"a":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
}

void on_small_stack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  BOOST_TEST_REQUIRE(pthread_attr_init(&attributes) == 0);
  pthread_attr_setstacksize(&attributes, 128 * 1024);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  BOOST_TEST_REQUIRE(
      pthread_create(&thread, &attributes, run,
                     const_cast<std::function<void()>*>(&work)) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

KeyOutcome keys_in(std::string_view json) {
  return sigv4::keys_in(parsed(json), {}, KeyForm(), "the place", 1000000000);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(chain_json)

BOOST_AUTO_TEST_CASE(text_that_is_no_object_is_refused) {
  constexpr const char* kTexts[] = {"",
                                    "[]",
                                    "\"a\"",
                                    "null",
                                    "{",
                                    "{} {}",
                                    "{}x",
                                    "{\"a\":1,}",
                                    "{a:1}",
                                    "{\"a\":01}",
                                    "{\"a\":1.}",
                                    "{\"a\":1e+}",
                                    "{\"a\":[1,]}",
                                    "{\"a\":[1 2]}",
                                    "{\"a\":{]}",
                                    "{\"a\":1 \"b\":2}",
                                    "{\"a\":NaN}",
                                    "{\"a\":\"\n\"}",
                                    "{\"a\":\"\\x\"}",
                                    "{\"a\":\"\\u12g4\"}",
                                    "{/**/}",
                                    "\xEF\xBB\xBF{}",
                                    "\xEF{}",
                                    "{\"\xE5",
                                    "{\"a\":\"\\ud800\"}",
                                    "{\"a\":\"\\udc00\"}",
                                    "{\"a\":\"\\ud83d\\ud83d\"}",
                                    "{\"\\udc00\":1}"};
  for (const char* text : kTexts) {
    BOOST_TEST(!is_object(text), text);
  }
  BOOST_TEST(!is_object("{\"a\":\"\0\"}"sv));
  BOOST_TEST(!is_object("{}\0{}"sv));
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_utf8_are_refused) {
  for (const char* bytes :
       {"\xff\xc3", "\xed\xa0\x80", "\xc0\x80", "\xf0\x9f"}) {
    const std::string text = std::string("{\"a\":\"") + bytes;
    BOOST_TEST(!is_object(text + "\"}"));
    BOOST_TEST(!is_object(text));  // Nothing is behind a part of a character.
    BOOST_TEST(parse_json(text + "\"}").error_offset() == 6u);
  }
  BOOST_TEST(is_object("{\"a\":\"\xed\x9f\xbf\xee\x80\x80\"}"));
}

// On the smallest stack that a thread of a program may well have.
BOOST_AUTO_TEST_CASE(depth_is_bounded_and_costs_no_stack) {
  const auto objects = [](std::size_t depth) {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i) text += R"({"a":)";
    return text + "1" + std::string(depth, '}');
  };
  struct {
    std::vector<std::string> texts;
    std::vector<bool> parsed;
  } work = {{nested(999), objects(1000), nested(1000), objects(1001),
             nested(kMaxJsonBytes / 2 - 10), std::string(kMaxJsonBytes, '[')},
            {}};
  on_small_stack([&work] {
    for (const std::string& text : work.texts) {
      work.parsed.push_back(is_object(text));
    }
  });
  BOOST_TEST((work.parsed ==
              std::vector<bool>{true, true, false, false, false, false}));
}

BOOST_AUTO_TEST_CASE(document_that_lacks_what_keys_need_is_broken) {
  const struct {
    const char* json;
    const char* reason;
  } cases[] = {
      {R"({})", "no AccessKeyId in the place"},
      {R"({"AccessKeyId":"i","SecretAccessKey":"s"})", "no Token in the place"},
      {R"({"AccessKeyId":"i","SecretAccessKey":"s","Token":"t"})",
       "no Expiration in the place"},
      {R"({"AccessKeyId":"","SecretAccessKey":"s"})",
       "AccessKeyId is empty in the place"},
      {R"({"AccessKeyId":"i","SecretAccessKey":5})",
       "SecretAccessKey is not a string in the place"},
      {R"({"AccessKeyId":"i","SecretAccessKey":"s","Token":"a\nb",)"
       R"("Expiration":"2001-09-09T02:46:40Z"})",
       "Token in the place has a line break"},
      {R"({"AccessKeyId":"i","SecretAccessKey":"a\u0000b","Token":"t",)"
       R"("Expiration":"2001-09-09T02:46:40Z"})",
       "SecretAccessKey in the place has a character that is not visible "
       "ASCII"},
      {R"({"AccessKeyId":"i","SecretAccessKey":"s","Token":"t",)"
       R"("Expiration":"2001-09-09T02:46:40"})",
       "Expiration is not an ISO 8601 time with a zone in the place"},
      {R"({"AccessKeyId":"i","SecretAccessKey":"s","Token":"t",)"
       R"("Expiration":true})",
       "Expiration is not an ISO 8601 time with a zone in the place"},
  };
  for (const auto& c : cases) {
    BOOST_TEST(said(keys_in(c.json)) == std::string("broken: ") + c.reason);
  }
}

BOOST_AUTO_TEST_SUITE_END()
