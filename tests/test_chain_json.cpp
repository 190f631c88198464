// The JSON that keys come in, and the keys in it.
#include <pthread.h>

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sigv4/keys/from_json.hpp"
#include "tests/support/asking.hpp"
#include "tests/support/home.hpp"
#include "tests/support/json_string.hpp"

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

std::string text(Value object, const char* name) {
  return std::string(object[name].text().value_or("(none)"));
}

constexpr KeyForm kProgram = {
    {"AccessKeyId", "SecretAccessKey", "SessionToken"}, "Expiration", false, 1};

KeyOutcome keys_in(std::string_view json, const KeyForm& form = KeyForm(),
                   std::int64_t now = 1000000000) {
  return sigv4::keys_in(parsed(json), {}, form, "the place", now);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(chain_json)

BOOST_AUTO_TEST_CASE(members_are_found_by_name_and_kind) {
  const Document document = parsed(
      R"( {"text":"a\u00e9\n\ud83d\ude00","empty":"","number":-7,"yes":true,)"
      R"("null":null,"list":[1],"inner":{"text":"b","deeper":{"n":1}}} )");
  const Value object = document.root();
  BOOST_TEST(text(object, "text") == "a\xC3\xA9\n\xF0\x9F\x98\x80");
  BOOST_TEST(text(object, "empty") == "");
  BOOST_TEST(text(object, "number") == "(none)");
  BOOST_TEST(text(object, "Text") == "(none)");
  BOOST_TEST(text(object, "tex") == "(none)");
  BOOST_TEST(*object["number"].number() == -7);
  BOOST_TEST(!object["text"].number());
  BOOST_TEST(!object["yes"].number());
  BOOST_TEST(!object["list"].is_object());
  BOOST_TEST(!object["nothing"].is_object());
  BOOST_TEST(!!object["list"]);
  BOOST_TEST(!object["null"]);
  BOOST_TEST(!object["nothing"]);
  BOOST_TEST(text(object["inner"], "text") == "b");
  BOOST_TEST(*object["inner"]["deeper"]["n"].number() == 1);
}

BOOST_AUTO_TEST_CASE(of_equal_names_the_last_counts) {
  const Document document =
      parsed(R"({"a":"first","b":1,"a":2,"a":"last","b":null})");
  const Value object = document.root();
  BOOST_TEST(text(object, "a") == "last");
  BOOST_TEST(!object["b"]);
}

BOOST_AUTO_TEST_CASE(numbers_are_taken_up_to_the_point_however_written) {
  const struct {
    const char* written;
    std::optional<std::int64_t> number;
  } cases[] = {
      {"0", 0},
      {"-0", 0},
      {"1", 1},
      {"-12", -12},
      {"1.0", 1},
      {"1.9", 1},
      {"-1.9", -1},
      {"1e3", 1000},
      {"1E+3", 1000},
      {"1.663365338E9", 1663365338},
      {"1.6633653381E9", 1663365338},
      {"0e203", 0},
      {"0.00001e6", 10},
      {"1e-3", 0},
      {"17e11", 1700000000000},
      {"170000000000000e-2", 1700000000000},
      {"1700000000000", 1700000000000},
      {"1e18", 1000000000000000000},
      {"9223372036854775807", INT64_MAX},
      {"-9223372036854775807", -INT64_MAX},
      {"9007199254740993", 9007199254740993},
      {"9223372036854775808", std::nullopt},
      {"1e19", std::nullopt},
      {"1e300", std::nullopt},
      {R"("1")", std::nullopt},
      {"true", std::nullopt},
      {"null", std::nullopt},
      {"[1]", std::nullopt},
  };
  for (const auto& c : cases) {
    const std::string text = R"({"n":)" + std::string(c.written) + " }";
    BOOST_TEST((parsed(text).root()["n"].number() == c.number), c.written);
  }
}

BOOST_AUTO_TEST_CASE(text_that_is_no_object_is_refused) {
  for (const std::string_view text : {
           ""sv,
           " "sv,
           "[]"sv,
           "\"a\""sv,
           "1"sv,
           "null"sv,
           "{"sv,
           "}"sv,
           "{}}"sv,
           "{} {}"sv,
           "{}x"sv,
           "{},"sv,
           "{}\0"sv,
           "\0{}"sv,
           "{\"a\":\"\0\"}"sv,
           "{}\0{}"sv,
           "{\"a\"}"sv,
           "{\"a\":}"sv,
           "{\"a\":1,}"sv,
           "{,}"sv,
           "{a:1}"sv,
           "{'a':1}"sv,
           "{\"a\":01}"sv,
           "{\"a\":+1}"sv,
           "{\"a\":.5}"sv,
           "{\"a\":1.}"sv,
           "{\"a\":1e}"sv,
           "{\"a\":1e+}"sv,
           "{\"a\":-}"sv,
           "{\"a\":[1,]}"sv,
           "{\"a\":[,1]}"sv,
           "{\"a\":[1 2]}"sv,
           "{\"a\":[1}"sv,
           "{\"a\":{]}"sv,
           "{\"a\":1 \"b\":2}"sv,
           "{\"a\":nulll}"sv,
           "{\"a\":NaN}"sv,
           "{\"a\":True}"sv,
           "{\"a\":\"\n\"}"sv,
           "{\"a\":\"\t\"}"sv,
           "{\"a\":\"\\x\"}"sv,
           "{\"a\":\"\\u12g4\"}"sv,
           "{\"a\":\"\\u12\"}"sv,
           "{/**/}"sv,
           "{} // no"sv,
           "\xEF\xBB\xBF{}"sv,       // A byte order mark,
           "\xEF{}"sv,               // ... and a part of one.
           "{\"\xE5"sv,              // Ends in a name.
           "{\"a\":\"\\ud800\"}"sv,  // Half a pair, either half.
           "{\"a\":\"\\ud800x\"}"sv,
           "{\"a\":\"\\udc00\"}"sv,
           "{\"a\":\"\\ud83d\\ud83d\"}"sv,
           "{\"\\udc00\":1}"sv,
       }) {
    BOOST_TEST(!is_object(text), text);
  }
}

BOOST_AUTO_TEST_CASE(escaped_nul_is_a_character_of_its_text) {
  BOOST_TEST((parsed(R"({"a":"b\u0000c"})").root().text("a") == "b\0c"sv));
}

BOOST_AUTO_TEST_CASE(number_that_no_double_holds_is_refused) {
  BOOST_TEST(!is_object(R"({"n":1e999999999999})"));
  BOOST_TEST(!is_object(R"({"n":0e999999999999})"));
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_utf8_are_refused) {
  for (const char* bytes :
       {"\xff\xc3", "\xed\xa0\x80", "\xc0\x80", "\xf0\x9f"}) {
    const std::string text = std::string("{\"a\":\"") + bytes;
    BOOST_TEST(!is_object(text + "\"}"));
    BOOST_TEST(!is_object(text));  // Nothing is behind a part of a character.
    BOOST_TEST(parse_json(text + "\"}").bad_at() == 6u);
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

// A valid text has no more than a value for two of its bytes.  The others end
// the reading as soon as there are more.
BOOST_AUTO_TEST_CASE(unclosed_lists_take_no_more_memory_than_closed_ones) {
  for (std::size_t open = 1; open < 900; ++open) {
    BOOST_TEST_REQUIRE(!is_object(std::string(open, '[')));
    BOOST_TEST_REQUIRE(!is_object(std::string(open, '[') + "1"));
    BOOST_TEST_REQUIRE(!is_object("{\"\":" + std::string(open, '[') + "1"));
  }
}

BOOST_AUTO_TEST_CASE(densest_text_is_read) {
  const Document document = parsed(R"({"":[[],[[],1,2,3]],"a":{"":{"":1}}})");
  const Value list = document.root()[""];
  BOOST_TEST(list.size() == 2u);
  Elements each(list);
  BOOST_TEST_REQUIRE((each.next() && each.next()));
  BOOST_TEST(each.value.size() == 4u);
}

BOOST_AUTO_TEST_CASE(text_beyond_64_kib_is_refused) {
  std::string text = R"({"a":"b"})";
  text.resize(kMaxJsonBytes, ' ');
  parsed(text);
  text += ' ';
  BOOST_TEST(!is_object(text));
}

BOOST_AUTO_TEST_CASE(written_string_reads_as_it_was) {
  std::string all;
  for (int c = 0; c < 0x80; ++c) all += static_cast<char>(c);
  all += "\xC3\xA9\xF0\x9F\x98\x80";
  for (const std::string_view text :
       {""sv, "plain"sv, "\"\\/"sv, std::string_view(all)}) {
    const std::string json = "{\"a\":" + tests::json_string(text) + "}";
    BOOST_TEST((parsed(json).root().text("a") == text), text);
  }
}

BOOST_AUTO_TEST_CASE(keys_of_a_document_are_found) {
  const KeyOutcome outcome = keys_in(
      R"({"Code":"Success","AccessKeyId":"id","SecretAccessKey":"secret",)"
      R"("Token":"token","Expiration":"2001-09-09T02:46:40Z",)"
      R"("AccountId":"123456789012"})");
  BOOST_TEST(said(outcome) == "found: the place");
  BOOST_TEST(outcome.keys.access_key_id == "id");
  BOOST_TEST(outcome.keys.secret_access_key.str() == "secret");
  BOOST_TEST(outcome.keys.session_token.str() == "token");
  BOOST_TEST(outcome.keys.account_id == "123456789012");
  BOOST_TEST(tests::seconds_left(outcome) > 3500);
  BOOST_TEST(tests::seconds_left(outcome) <= 3600);
}

BOOST_AUTO_TEST_CASE(keys_that_need_not_end_are_found_without_token_and_end) {
  const KeyForm form = kProgram;
  const KeyOutcome outcome = keys_in(
      R"({"AccessKeyId":"id","SecretAccessKey":"secret","Token":"x"})", form);
  BOOST_TEST(said(outcome) == "found: the place");
  BOOST_TEST(outcome.keys.session_token.empty());
  BOOST_TEST((outcome.ends == BootTime::max()));
  BOOST_TEST(keys_in(R"({"AccessKeyId":"id","SecretAccessKey":"secret",)"
                     R"("SessionToken":"token"})",
                     form)
                 .keys.session_token.str() == "token");
}

BOOST_AUTO_TEST_CASE(document_that_lacks_what_keys_need_is_broken) {
  const struct {
    const char* json;
    const char* reason;
  } cases[] = {
      {R"({})", "no AccessKeyId in the place"},
      {R"({"AccessKeyId":"i"})", "no SecretAccessKey in the place"},
      {R"({"AccessKeyId":"i","SecretAccessKey":"s"})", "no Token in the place"},
      {R"({"AccessKeyId":"i","SecretAccessKey":"s","Token":"t"})",
       "no Expiration in the place"},
      {R"({"AccessKeyId":"","SecretAccessKey":"s"})",
       "AccessKeyId is empty in the place"},
      {R"({"AccessKeyId":"","SecretAccessKey":"","Token":"t"})",
       "AccessKeyId is empty in the place"},
      {R"({"AccessKeyId":"i","SecretAccessKey":5})",
       "SecretAccessKey is not a string in the place"},
      {R"({"AccessKeyId":"i","SecretAccessKey":null})",
       "no SecretAccessKey in the place"},
      {R"({"AccessKeyId":"i","SecretAccessKey":"s","Token":["t"]})",
       "Token is not a string in the place"},
      {R"({"AccessKeyId":"i","SecretAccessKey":"s","Token":""})",
       "Token is empty in the place"},
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

BOOST_AUTO_TEST_CASE(keys_whose_time_is_over_are_found_with_their_end) {
  const KeyOutcome outcome = keys_in(
      R"({"AccessKeyId":"id","SecretAccessKey":"secret","Token":"token",)"
      R"("Expiration":"2001-09-09T01:46:30Z"})");
  BOOST_TEST(said(outcome) == "found: the place");
  BOOST_TEST(tests::seconds_left(outcome) <= -10);
  BOOST_TEST(tests::seconds_left(outcome) > -100);
}

BOOST_AUTO_TEST_CASE(end_may_be_a_number_of_seconds_or_of_parts_of_them) {
  const std::string keys =
      R"({"AccessKeyId":"id","SecretAccessKey":"secret","Token":"token",)";
  KeyForm form;
  const auto left = [&](const std::string& end) {
    return tests::seconds_left(keys_in(keys + "\"Expiration\":" + end, form));
  };
  BOOST_TEST(left("1000003600}") > 3500);
  BOOST_TEST(left("1000003600}") <= 3600);
  BOOST_TEST(left("1.0000036E9}") > 3500);
  form.units = 1000;
  BOOST_TEST(left("1000003600000}") > 3500);
  BOOST_TEST(left("1000003600000}") <= 3600);
}

BOOST_AUTO_TEST_CASE(account_that_is_no_number_is_left_out_with_a_warning) {
  for (const char* account : {"", "12x", "1234 5678"}) {
    const KeyOutcome outcome = keys_in(
        R"({"AccessKeyId":"id","SecretAccessKey":"secret","AccountId":")" +
            std::string(account) + "\"}",
        kProgram);
    BOOST_TEST(said(outcome) == "found: the place");
    BOOST_TEST(outcome.keys.account_id == "");
    BOOST_TEST(tests::is_one_line(outcome.warnings));
  }
}

BOOST_AUTO_TEST_SUITE_END()
