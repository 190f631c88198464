// The default search for keys: the order of the sources, why each was passed
// over, and what is reported of profiles that are set up wrong.  Then the JSON
// and the shared files in which keys are found, and how texts from them are
// shown.  tests/witness compares what is found with AWS's own tools.
#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "extras/keys/profile_grammar.hpp"
#include "extras/parts.hpp"
#include "sigv4/keys/from_json.hpp"
#include "sigv4/parts.hpp"
#include "sigv4/profile.hpp"
#include "sigv4/secret.hpp"
#include "sigv4/text.hpp"
#include "tests/support/asking.hpp"
#include "tests/support/chain_kit.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
#include "tests/support/plain_profiles.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/waiting.hpp"

namespace fs = std::filesystem;
using namespace ddbmutex::sigv4;
using namespace std::chrono_literals;
using namespace std::string_view_literals;
using tests::asked;
using tests::Aws;
using tests::has;
using tests::Home;
using tests::key_of;
using tests::Nest;
using tests::pair_of;
using tests::said;
using tests::Site;
using tests::texts_of;

BOOST_AUTO_TEST_SUITE(chain)

namespace {

constexpr char kLocker[] = "arn:aws:iam::123456789012:role/locker";
constexpr char kMiddle[] = "arn:aws:iam::123456789012:role/middle";
constexpr char kTokenText[] = "web-identity-token-of-some-length";

std::string with_role(const std::string& arn, const std::string& rest) {
  return "role_arn = " + arn + "\n" + rest + "\n";
}

Aws& aws() {
  static Aws services;
  static const bool told = [] {
    services.user({"base-id", "base-secret"});
    services.role({kLocker});
    services.role({kMiddle});
    services.web_identity(kTokenText, 1h);
    return true;
  }();
  BOOST_TEST_REQUIRE(told);
  services.clear();
  services.forget();
  return services;
}

// An environment in which every source has keys.
struct Full : Site {
  explicit Full(Aws& services) : Site(services) {
    options.keys = {"given-id", "given-secret"};
    variables["AWS_ACCESS_KEY_ID"] = "env-id";
    variables["AWS_SECRET_ACCESS_KEY"] = "env-secret";
    variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = write("token", kTokenText, 0644);
    variables["AWS_ROLE_ARN"] = kLocker;
    variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] =
        services.plain_url("container") + "/v2/credentials/task";
    variables.erase("AWS_EC2_METADATA_DISABLED");
    variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = services.url("imds");
    variables["AWS_METADATA_SERVICE_TIMEOUT"] = "20";  // However slow it is.
    write(".aws/credentials",
          "[base]\n" + pair_of("base") + "[default]\n" + pair_of("k"));
    const std::string text =
        "#!/bin/sh\necho '{\"Version\": 1, \"AccessKeyId\": \"p-id\","
        " \"SecretAccessKey\": \"p-secret\"}'\n";
    const std::string program = write("program", text, 0700);
    write("bin/aws", text, 0700);
    lines = {"role_arn = " + std::string(kLocker) + "\nsource_profile = base\n",
             "sso_account_id = 123456789012\nsso_role_name = r\n"
             "sso_region = eu-west-1\nsso_start_url = u\n",
             "login_session = alice\n",
             "credential_process = " + program + "\n", pair_of("c")};
  }

  std::string source() const {
    std::string config = "[default]\n";
    for (const std::string& some : lines) config += some;
    write(".aws/config", config);
    const KeyOutcome outcome = asked(chain(options));
    // Not even of the token's file, which everybody may read in Kubernetes.
    BOOST_TEST(outcome.warnings == "");
    return said(outcome);
  }

  const tests::ProcessVariable path{
      "PATH", ((root / "bin").string() + ":/usr/bin:/bin").c_str()};
  ChainOptions options;
  // The default profile's lines in the config file, one entry for each source.
  std::vector<std::string> lines;
};

}  // namespace

// Or the core would sign with keys of a source that is asked later with extras.
BOOST_AUTO_TEST_CASE(sources_of_the_core_have_the_same_order_with_extras) {
  const auto sources_of = [](const Parts& parts) {
    std::vector<KeyOutcome (*)(Search&)> all;
    for (std::size_t i = 0; i < parts.source_count; ++i) {
      all.push_back(parts.sources[i].keys_of);
    }
    return all;
  };
  const auto all = sources_of(all_parts());
  std::size_t found = 0;
  auto last = all.begin();
  for (const auto source : sources_of(core_parts())) {
    if (std::find(all.begin(), all.end(), source) == all.end()) continue;
    last = std::find(last, all.end(), source);
    BOOST_TEST((last != all.end()));
    ++found;
  }
  BOOST_TEST(found == 9u);
}

// Each step removes the source that was found before.
BOOST_AUTO_TEST_CASE(order_of_the_sources_is_botocores) {
  Full all(aws());
  BOOST_TEST(all.source() == "found: the options");
  all.options.keys = {};
  BOOST_TEST(all.source() == "found: the environment");
  all.variables.erase("AWS_ACCESS_KEY_ID");
  all.variables.erase("AWS_SECRET_ACCESS_KEY");
  BOOST_TEST(has(all.source(), ", from profile \"base\" in "));
  all.lines.erase(all.lines.begin());
  BOOST_TEST(has(all.source(), "by web identity of AWS_WEB_IDENTITY_TOKEN_"));
  all.variables.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  BOOST_TEST(has(all.source(), "found: sso_account_id of profile \"default\""));
  all.lines.erase(all.lines.begin());
  BOOST_TEST(all.source() ==
             "found: profile \"default\" in " + all.quoted(".aws/credentials"));
  all.write(".aws/credentials", "[base]\n" + pair_of("base"));
  BOOST_TEST(has(all.source(), "found: login_session of profile "));
  all.lines.erase(all.lines.begin());
  BOOST_TEST(has(all.source(), "found: credential_process of profile "));
  all.lines.erase(all.lines.begin());
  BOOST_TEST(all.source() ==
             "found: profile \"default\" in " + all.quoted(".aws/config"));
  all.lines.clear();
  BOOST_TEST(has(all.source(), "found: the container's agent ("));
  all.variables.erase("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  BOOST_TEST(has(all.source(), "found: EC2"));
  all.variables["AWS_EC2_METADATA_DISABLED"] = "true";
  BOOST_TEST(has(all.source(), "none: "));
}

// The CLI is told which files we read.  All else in its environment is ours.
BOOST_AUTO_TEST_CASE(cli_reads_the_files_that_we_read) {
  Full all(aws());
  const tests::ProcessVariable other("AWS_CONFIG_FILE", "/nonexistent");
  all.options.keys = {};
  all.options.profile = "signed-on";
  const std::string config = all.write(
      "config", "[profile signed-on]\nsso_account_id = 123456789012\n");
  all.variables["AWS_CONFIG_FILE"] = config;
  all.write("bin/aws",
            "#!/bin/sh\n[ \"$AWS_CONFIG_FILE\" = '" + config +
                "' ] && [ \"$AWS_SHARED_CREDENTIALS_FILE\" = '" +
                (all.root / ".aws/credentials").string() + "' ] && '" +
                (all.root / "program").string() + "'\n",
            0700);
  const KeyOutcome outcome = asked(all.chain(all.options));
  BOOST_TEST(key_of(outcome) == "p-id");
  BOOST_TEST(outcome.keys.account_id == "123456789012");
}

BOOST_AUTO_TEST_CASE(no_text_of_any_source_shows_a_secret) {
  Full all(aws());
  for (const char* service : {"sts", "container", "imds"}) {
    tests::AwsFault fault{service, "*", "refuse", 0};
    fault.message = "base-secret " + std::string(kTokenText);
    aws().fault(fault);
  }
  const auto check = [&] {
    const std::string config = all.source();
    const std::string texts = texts_of(asked(all.chain(all.options)));
    for (const char* secret :
         {"given-secret", "env-secret", "base-secret", "k-secret", "p-secret",
          "c-secret", kTokenText}) {
      BOOST_TEST(!has(texts + config, secret), texts);
    }
  };
  check();
  all.options.keys = {};
  check();
  all.variables.erase("AWS_SECRET_ACCESS_KEY");
  check();
  all.variables.erase("AWS_ACCESS_KEY_ID");
  check();
  all.lines.erase(all.lines.begin());
  check();
  all.variables.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  for (; !all.lines.empty(); all.lines.erase(all.lines.begin())) check();
  all.write(".aws/credentials", "");
  check();
  all.variables.erase("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  check();
  aws().clear();
}

// --- Keys ------------------------------------------------------------------

// A line break in a key would begin another header.
BOOST_AUTO_TEST_CASE(key_of_other_than_visible_ascii_is_broken) {
  Nest nest;
  const auto given = [&](const KeyTexts& keys) {
    ChainOptions options;
    options.keys = keys;
    return said(asked(nest.chain(options)));
  };
  for (const char* bad :
       {"a\nX-Evil: 1", "a\r", " a", "a\t", "\x7F", "\xC3\xA4"}) {
    const bool breaks = has(bad, "\n") || has(bad, "\r");
    const std::string wrong =
        std::string(" in the options has ") +
        (breaks ? "a line break" : "a character that is not visible ASCII");
    BOOST_TEST(given({bad, "b", "c"}) == "broken: access_key_id" + wrong);
    BOOST_TEST(given({"a", bad, "c"}) == "broken: secret_access_key" + wrong);
    BOOST_TEST(given({"a", "b", bad}) == "broken: session_token" + wrong);
  }
  BOOST_TEST(given({"!", "~", ""}) == "found: the options");
  nest.write(".aws/credentials", "[default]\n" + pair_of("a") +
                                     "aws_session_token = t\n X-Evil: 1");
  BOOST_TEST(
      has(said(asked(nest.chain())), "broken: aws_session_token in profile "));
}

// --- Profiles --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(chain_of_thousands_of_profiles_is_refused) {
  Nest nest;
  std::string text;
  for (int i = 0; i < 6000; ++i) {
    text += "[profile p" + std::to_string(i) + "]\n" +
            with_role(kLocker, "source_profile = p" + std::to_string(i + 1));
  }
  nest.write(".aws/config", text);
  ChainOptions options;
  options.profile = "p0";
  BOOST_TEST(said(asked(nest.chain(options))) ==
             "broken: more than 200 profiles in a row get their keys from "
             "another one, from profile \"p0\" on");
}

// If the search went on, requests would be signed with the container's keys.
BOOST_AUTO_TEST_CASE(property_that_names_a_part_of_a_way_ends_the_search) {
  const std::vector<std::pair<std::string, std::string>> parts = {
      {"sso_session = corp", "sso_account_id and sso_role_name"},
      {"sso_start_url = u", "sso_account_id and sso_role_name"},
      {"sso_region = eu-west-1", "sso_account_id and sso_role_name"},
  };
  for (const auto& [line, needed] : parts) {
    Site site(aws());
    site.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] =
        aws().plain_url("container") + "/v2/credentials/task";
    site.write(".aws/config", "[default]\nregion = eu-west-1\n" + line + "\n");
    const std::string property = line.substr(0, line.find(' '));
    BOOST_TEST(said(asked(site.chain())) ==
               "broken: " + property + " of profile \"default\" in " +
                   site.quoted(".aws/config") + " gives no keys without " +
                   needed);
    BOOST_TEST(aws().log().count("container") == 0);
    // With another way to get keys, it does not matter.
    site.write(".aws/config", "[default]\n" + line + "\n" + pair_of("c"));
    BOOST_TEST(key_of(asked(site.chain())) == "c-id");
  }
}

BOOST_AUTO_TEST_CASE(keys_are_replaced_although_sts_has_no_address_any_more) {
  Full all(aws());
  all.options.keys = {};
  all.variables.erase("AWS_ACCESS_KEY_ID");
  all.variables.erase("AWS_SECRET_ACCESS_KEY");
  std::string url = aws().plain_url("sts");
  url.replace(url.find("127.0.0.1"), 9, "sts.test");
  all.variables["AWS_ENDPOINT_URL_STS"] = url;
  std::optional<tests::FakeNames> names(std::in_place,
                                        std::vector<std::string>{"127.0.0.1"});
  const auto source = all.chain(all.options);
  BOOST_TEST(has(said(asked(source)), "by web identity of "));
  names.reset();
  names.emplace(std::vector<std::string>{});
  BOOST_TEST(has(said(asked(source)), "by web identity of "));
  BOOST_TEST(has(said(asked(all.chain(all.options))),
                 "Could not resolve host: sts.test"));
}

// As with botocore and AWS's SDK for JavaScript.
BOOST_AUTO_TEST_CASE(source_without_a_role_does_not_end_the_search) {
  for (const std::string line :
       {"source_profile = base", "credential_source = Environment",
        "source_profile = nobody\ncredential_source = Moon"}) {
    Site site(aws());
    site.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] =
        aws().plain_url("container") + "/v2/credentials/task";
    site.write(".aws/config", "[default]\nregion = eu-west-1\n" + line + "\n");
    BOOST_TEST(has(said(asked(site.chain())), "found: the container's agent"),
               line);
    aws().forget();
    site.variables.erase("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    site.variables["AWS_EC2_METADATA_DISABLED"] = "true";
    BOOST_TEST(has(said(asked(site.chain())), "count with a role_arn only"));
  }
}

BOOST_AUTO_TEST_CASE(error_of_a_missing_profile_hints_at_its_heading) {
  const struct {
    const char *profile, *config, *credentials, *hint;
  } cases[] = {
      {"dev", "[dev]\nregion = eu-west-1\n", "",
       "has no such profile (its [dev] lacks the prefix: [profile dev])"},
      {"dev", "", "[profile dev]\naws_access_key_id = a\n",
       "has no such profile (its [profile dev] should have no prefix: [dev])"},
      {"a", "[profile a]\nrole_arn = x\nsource_profile = dev\n[dev]\n", "",
       "has no such profile (its [dev] lacks the prefix: [profile dev])"},
      {"dev", "[Profile dev]\n[devel]\n", "[dev2]\n", "has no such profile, "},
  };
  for (const auto& one : cases) {
    Site site(aws());
    site.write(".aws/config", one.config);
    site.write(".aws/credentials", one.credentials);
    ChainOptions options;
    options.profile = one.profile;
    const std::string text = said(asked(site.chain(options)));
    BOOST_TEST(has(text, one.hint), text);
  }
}

// What a comment behind a value has made unusable.
BOOST_AUTO_TEST_CASE(
    error_of_a_value_with_a_comment_says_where_comments_stand) {
  const std::string hint = "(a comment needs a line of its own)";
  for (const std::string line :
       {"source_profile = base # mine\nrole_arn = a", "sso_session = a ; mine",
        "role_arn = a\nsource_profile = base\nduration_seconds = 900 # mine",
        "aws_access_key_id = a # mine\naws_secret_access_key = b",
        "metadata_service_timeout = 2 # mine"}) {
    Site site(aws());
    site.variables["AWS_EC2_METADATA_DISABLED"] = "false";
    site.write(".aws/config", "[default]\n" + line + "\n");
    const std::string text = said(asked(site.chain()));
    BOOST_TEST(has(text, hint), line << ": " << text);
  }
}

// As in a file made from a template with a variable that was not set.
BOOST_AUTO_TEST_CASE(way_without_a_value_ends_the_search) {
  for (const std::string way :
       {"role_arn", "web_identity_token_file", "sso_account_id",
        "sso_role_name", "aws_access_key_id", "aws_secret_access_key",
        "credential_process", "login_session"}) {
    for (const char* file : {".aws/config", ".aws/credentials"}) {
      Site site(aws());
      site.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] =
          aws().plain_url("container") + "/v2/credentials/task";
      site.write(file, "[default]\n" + way + " =\n");
      BOOST_TEST(said(asked(site.chain())) ==
                 "broken: " + way + " of profile \"default\" in " +
                     site.quoted(file) + " has no value");
      BOOST_TEST(aws().log().count("container") == 0);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- The JSON that keys come in ----------------------------------------------

BOOST_AUTO_TEST_SUITE(chain_json)

namespace {

bool is_object(std::string_view text) {
  return parse_json(text).root().is_object();
}

Document parsed(std::string_view text) {
  BOOST_TEST_REQUIRE(is_object(text), text);
  return parse_json(text);
}

// An array in an array, so many times.
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
  return ddbmutex::sigv4::keys_in(parsed(json), {}, KeyForm(), "the place",
                                  1000000000);
}

}  // namespace

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
    BOOST_TEST(!is_object(text));  // The text ends within a character.
    BOOST_TEST(parse_json(text + "\"}").error_offset() == 6u);
  }
  BOOST_TEST(is_object("{\"a\":\"\xed\x9f\xbf\xee\x80\x80\"}"));
}

// The stack is as small as a program's threads may have it.
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
      {R"({"AccessKeyId":"i","SecretAccessKey":"s","Token":5})",
       "Token is not a string in the place"},
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
  const KeyOutcome found =
      keys_in(R"({"AccessKeyId":"i","SecretAccessKey":"s","Token":"",)"
              R"("Expiration":"2099-01-01T00:00:00Z"})");
  BOOST_TEST(key_of(found) == "i");
  BOOST_TEST(found.keys.session_token.empty());
}

BOOST_AUTO_TEST_SUITE_END()

// --- The shared config and credentials files ---------------------------------

// The cases that AWS gives to the authors of its SDKs, and some that those
// leave open.
BOOST_AUTO_TEST_SUITE(profile_grammar)

namespace {

// A text, and what the parser makes of it.
struct ParsedFile {
  ParsedFile(std::string_view the_text, FileKind kind) : text(the_text) {
    error = parse_profiles(text, kind, entries);
  }
  ParsedFile(const ParsedFile&) = delete;
  ParsedFile& operator=(const ParsedFile&) = delete;

  std::string text;
  Entries entries;
  std::string error;
};

// The sections of a kind by their names, as one line.
std::string shown(const ParsedFile& file, std::string_view kind) {
  std::map<std::string_view, std::map<std::string_view, std::string_view>>
      sections;
  for (const Entry& entry : file.entries) {
    if (entry.kind != kind) continue;
    auto& all = sections[entry.section];
    if (!entry.property.empty()) all[entry.property] = entry.value;
  }
  std::string text;
  for (const auto& [name, properties] : sections) {
    append(text, {text.empty() ? "" : " ", name, "{"});
    for (const auto& [property, value] : properties) {
      append(text, {"<", property, "=", value, ">"});
    }
    text += "}";
  }
  return text;
}

// The profiles of a text as one line, "bar{} foo{<name=value>}", or the error.
std::string profiles(std::string_view text, FileKind kind) {
  const ParsedFile parsed(text, kind);
  if (!parsed.error.empty()) {
    BOOST_TEST(parsed.entries.empty());
    return parsed.error;
  }
  return shown(parsed, "profile");
}

std::string config(std::string_view text) {
  return profiles(text, FileKind::config);
}

std::string credentials(std::string_view text) {
  return profiles(text, FileKind::credentials);
}

// The profiles of a config file that has these lines in profile foo.
std::string in_foo(const std::string& lines) {
  return config("[profile foo]\n" + lines);
}

struct Read {
  const char* text;
  const char* profiles;
};

// What the SDKs make of a config file.  tests/witness compares more of it with
// AWS's own tools.
constexpr Read kConfigs[] = {
    {"", ""},
    {"[profile foo]\n[profile bar]", "bar{} foo{}"},
    {"[profile in valid]\nx = 1\n y\nz\n[profile bar]\nx = 2", "bar{<x=2>}"},
    {"[profile ]\nx = 1\n[]\nx = 2\n[ ]\nx = 3", ""},
    {"[   profile \tfoo \t]\nx = 1", "foo{<x=1>}"},
    {"[profile My\\ MacBook]\n[profile a' 'b\" c\"]", "My MacBook{} a b c{}"},
    {"[profile \"]\n[profile \"\"]\n[profile \"a']\n[profile \"a\" b]", ""},
    {"[foo]\nx = 1\n[profilefoo]\nx = 2\n[Profile foo]\n[Default]", ""},
    {"[profile a]\nx=1\n[profile A]\nx=2", "A{<x=2>} a{<x=1>}"},
    {"[profile foo]; c\n[profile bar] junk", "bar{} foo{}"},
    {"\xEF\xBB\xBF[profile foo]\r\nx = 1\r\n\r\n more\r\n", "foo{<x=1\nmore>}"},
    {"[profile foo]\nx = a=b", "foo{<x=a=b>}"},
    {"[profile foo]\nx = \xF0\x9F\x98\x82\xFF",
     "foo{<x=\xF0\x9F\x98\x82\xFF>}"},
    {"[profile foo]\nx \t=  \ta b \t\ny =", "foo{<x=a b><y=>}"},
    {"[profile foo]\nin valid = 1\n -continued\nx = 1", "foo{<x=1>}"},
    {"[profile foo]\nNAME_9 = 1\nname_9 = 2", "foo{<name_9=2>}"},
    // A comment has a line of its own, or the one of a heading.
    {"# c\n[profile foo] # c\nx = 1 ; c # d\ny = # c",
     "foo{<x=1 ; c # d><y=# c>}"},
    {"[profile foo]\ncredential_process = helper --arg \"team #1\" --vault #42",
     "foo{<credential_process=helper --arg \"team #1\" --vault #42>}"},
    {"[profile foo]\nsource_profile = team #1\n[profile 'team #1']",
     "foo{<source_profile=team #1>} team #1{}"},
    {"[profile foo]\nx = 1; a\ny = 1# b\nz =#c", "foo{<x=1; a><y=1# b><z=#c>}"},
    {"[profile foo]\nx = 1\n  # c\n\t; d\ny = 2", "foo{<x=1><y=2>}"},
    {"[profile foo]\nx = 1\n -a # c\n\n\t[b] \t ", "foo{<x=1\n-a # c\n[b]>}"},
    {"[profile foo]\n  a = 1\n b = 2\nc = 3", "foo{<a=1><b=2><c=3>}"},
    {"[profile foo]\n  s3 =\n    x = 1\n  b = 2", "foo{<b=2><s3=\nx = 1>}"},
    {"  [profile foo]\n  a = 1\n  [profile bar]", "bar{} foo{<a=1>}"},
    {"[profile foo]\nx = 1\n[profile foo]\ny = 2", "foo{<x=1><y=2>}"},
    {"[profile default]\nx = 1\n[default]\ny = 2", "default{<x=1>}"},
    {"[default]\ny = 2\n[profile default]\nx = 1", "default{<x=1>}"},
    {"[profile foo", "line 1: a section without its ']'"},
    {"\n# c\n -x\n[profile x]", "line 3: a line before the first section"},
    {"[profile foo]\n= value", "line 2: a property without a name"},
    {"[profile foo]\na = 1\njunk", "line 3: a property without '='"},
    {"[profile foo]\n -continued", "line 2: a property without '='"},
    {"[profile foo]\ns3 =\n junk", "line 3: a sub-property without '='"},
    {"[profile foo]\ns3 =\n = v", "line 3: a sub-property without a name"},
};

// The credentials file has names without quotes: there, quotes are a part of
// the name.
constexpr Read kCredentials[] = {
    {"[My MacBook]\nx = 1\n[ f\xC3\xB6! ]", "My MacBook{<x=1>} f\xC3\xB6!{}"},
    {"[]\nx = 1\n[ ]\nx = 2\n[a\x01z]\nx = 3", ""},
    {"[\"a\"]\nx = 1\n[b\\ c]", "\"a\"{<x=1>} b\\ c{}"},
    {"[profile foo]\nx = 1\n[sso-session a]",
     "profile foo{<x=1>} sso-session a{}"},
    {"[a]\nx=1\n[", "line 3: a section without its ']'"},
};

}  // namespace

BOOST_AUTO_TEST_CASE(profiles_are_read_as_awss_tools_read_them) {
  for (const auto& [text, expected] : kConfigs) {
    BOOST_TEST(config(text) == expected, text);
  }
  for (const auto& [text, expected] : kCredentials) {
    BOOST_TEST(credentials(text) == expected, text);
  }
  const std::string zero("[profile foo]\nx = a\0b", 21);
  BOOST_TEST(config(zero) == "foo{<x=" + std::string("a\0b", 3) + ">}");
}

// --- The core's parser, beside the full grammar
// --------------------------------

namespace {

// Texts of these lines, chosen at random.
constexpr const char* kLines[] = {
    "[default]",
    "[default] # c",
    "[profile a]",
    "[ profile a ]",
    "[a]",
    "[profile default]",
    "[profile \"a\"]",
    "[profile a]b]",
    "[services s]",
    "[profile 'default']",
    "[profile]",
    "[]",
    "[sso-session a]",
    "[a b]",
    "[profile a\tb]",
    "[profile\ta]",
    "[profile a] ; ]",
    "[profile a];]",
    "[",
    "[services \"s\"]",
    "[profile a\\]",
    "[profile a\\ b]",
    "[services]",
    "region = x",
    "Region=y",
    "region: x",
    "region : a = b",
    "a:b = c",
    "= x",
    "  region = z",
    " more",
    "    more = deep",
    "\tx = y",
    "x y = z",
    "junk",
    "s3 =",
    "dynamodb =",
    "  endpoint_url = u",
    " endpoint_url: u = v",
    "  # c",
    "; c",
    "",
    " ",
    "\r",
    "region = a # b",
    "k = v\r",
    "role_arn =",
    ":",
    "[x",
};

std::string random_text(std::minstd_rand& random) {
  std::string text = random() % 8 == 0 ? "\xEF\xBB\xBF" : "";
  for (auto left = 1 + random() % 6; left > 0; --left) {
    append(text, {kLines[random() % std::size(kLines)], "\n"});
  }
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(plain_parser_reads_the_same_values_or_none) {
  for (const FileKind kind : {FileKind::config, FileKind::credentials}) {
    for (const auto& rows :
         {std::pair(std::begin(kConfigs), std::end(kConfigs)),
          std::pair(std::begin(kCredentials), std::end(kCredentials))}) {
      for (auto row = rows.first; row != rows.second; ++row) {
        BOOST_TEST(tests::difference(row->text, kind) == "", row->text);
      }
    }
    std::minstd_rand random(7);
    for (int i = 0; i < 50000; ++i) {
      const std::string text = random_text(random);
      const std::string found = tests::difference(text, kind);
      if (!found.empty()) BOOST_ERROR(found + " in " + in_quotes(text));
    }
  }
}

// "[a]b]" is a profile of that name, not "a", which might have other keys.
BOOST_AUTO_TEST_CASE(name_ends_at_the_last_bracket) {
  BOOST_TEST(credentials("[a]b]\nx = 1\n[c]]\n[d ;e] # [f]\n[g #h]") ==
             "a]b{<x=1>} c]{} d ;e{} g #h{}");
  BOOST_TEST(config("[profile a]b] # c\n[profile \"c]\"]\n[profile x] [y]") ==
             "a]b{} c]{}");
}

BOOST_AUTO_TEST_CASE(colon_after_a_setting_is_an_error_with_name_and_line) {
  BOOST_TEST(in_foo("a = 1\nregion: sEcReT") ==
             "line 3: region is followed by ':', not by '='");
  BOOST_TEST(in_foo("AWS_Secret_Access_Key : sEcReT") ==
             "line 2: aws_secret_access_key is followed by ':', not by '='");
  // Else its name would be taken for "aws_secret_access_key: sEcReT".
  BOOST_TEST(in_foo("aws_secret_access_key: sEcReT==") ==
             "line 2: aws_secret_access_key is followed by ':', not by '='");
  BOOST_TEST(in_foo("dynamodb =\n endpoint_url: http://h/?a=b") ==
             "line 3: endpoint_url is followed by ':', not by '='");
  // A colon elsewhere is no error.
  BOOST_TEST(in_foo("a:b = c\nregion = x:y\nx y: = z") ==
             "foo{<a:b=c><region=x:y>}");
  BOOST_TEST(config("[profile in valid]\nregion: x") == "");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(profile_files)

namespace {

Profile load(const Home& home) {
  return Profile(locate_profile({}, home.environment()), all_parts());
}

}  // namespace

BOOST_AUTO_TEST_CASE(file_that_cannot_be_read_counts_as_empty) {
  Home home;
  const std::string absent = (home.root / "absent").string();
  const std::string below = home.write("file", "") + "/below";
  const std::string loop = (home.root / "loop").string();
  fs::create_symlink(loop, loop);
  const std::map<std::string, std::string> reasons = {
      {absent, "does not exist"},
      {below, "cannot be read (Not a directory)"},
      {loop, "cannot be read (Too many levels of symbolic links)"},
      {home.root.string(), "is not a regular file"},
      {"/dev/zero", "is not a regular file"},
  };
  for (const auto& [path, reason] : reasons) {
    home.variables["AWS_CONFIG_FILE"] = path;
    home.variables["AWS_SHARED_CREDENTIALS_FILE"] = path;
    const Profile profile = load(home);
    BOOST_TEST(profile.error == "");
    BOOST_TEST(profile.config.absence() == reason);
    BOOST_TEST(profile.credentials.absence() == reason);
  }
}

BOOST_AUTO_TEST_CASE(credentials_file_of_loose_mode_is_warned_about) {
  Home home;
  const std::string path = home.write(".aws/credentials", "[default]\nx = 1\n");
  for (const auto& [mode, digits] :
       {std::pair(0640u, "0640"), std::pair(0602u, "0602")}) {
    BOOST_TEST_REQUIRE(chmod(path.c_str(), mode) == 0);
    const std::string warning = load(home).credentials.warning();
    BOOST_TEST(warning ==
               in_quotes(path) +
                   " may be read or written by others than its owner (mode " +
                   digits + ", should be 0600)");
  }
  for (const unsigned mode : {0600u, 0400u, 0700u, 0711u}) {
    BOOST_TEST_REQUIRE(chmod(path.c_str(), mode) == 0);
    BOOST_TEST(load(home).credentials.warning() == "");
  }
}

BOOST_AUTO_TEST_CASE(
    fifo_without_a_writer_does_not_hang,
    *boost::unit_test::timeout(static_cast<unsigned>(tests::kPlenty.count()))) {
  Home home;
  const std::string path = (home.root / ".aws/config").string();
  BOOST_TEST_REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const Profile profile = load(home);
  BOOST_TEST(profile.error == "");
  BOOST_TEST(profile.config.absence() == "is not a regular file");
}

BOOST_AUTO_TEST_SUITE_END()

// --- How texts from files are shown ------------------------------------------

BOOST_AUTO_TEST_SUITE(shown_texts)

BOOST_AUTO_TEST_CASE(quoted_text_is_short_and_visible) {
  BOOST_TEST(in_quotes("a b") == "\"a b\"");
  BOOST_TEST(in_quotes("a\n\x1B\xFF") == R"("a\n\x1b\xff")");
  BOOST_TEST(in_quotes("say \"a\\b\"") == R"("say \"a\\b\"")");
  BOOST_TEST(in_quotes("Gr\xc3\xb6\xc3\x9f"
                       "e") ==
             "\"Gr\xc3\xb6\xc3\x9f"
             "e\"");
  const std::string locks = "\xf0\x9f\x94\x92";  // Of four bytes.
  BOOST_TEST(in_quotes(std::string(198, 'x') + locks) ==
             "\"" + std::string(198, 'x') + "...\"");
  BOOST_TEST(in_quotes(std::string(200, 'x')) ==
             "\"" + std::string(200, 'x') + "\"");
  BOOST_TEST(in_quotes(std::string(201, 'x')) ==
             "\"" + std::string(200, 'x') + "...\"");
}

BOOST_AUTO_TEST_CASE(controls_and_invisible_characters_are_escaped) {
  BOOST_TEST(one_line("a\\ \"b\"") == "a\\ \"b\"");
  BOOST_TEST(one_line("\r\n\t\v") == R"(\r\n\t\x0b)");
  BOOST_TEST(one_line(std::string("a\0b", 3)) == R"(a\x00b)");
  BOOST_TEST(one_line("\xc2\x85\xc2\xad") == R"(\x85\xad)");
  BOOST_TEST(one_line("\xe2\x80\xa8\xe2\x81\xa9\xef\xbb\xbf") ==
             R"(\u2028\u2069\ufeff)");
  BOOST_TEST(one_line("\xf3\xa0\x81\x81") == R"(\U000e0041)");
  // Persian and emoji need the joiners.
  BOOST_TEST(one_line("\xe2\x80\x8c\xe2\x80\x8d") ==
             "\xe2\x80\x8c\xe2\x80\x8d");
  // A surrogate, an overlong form, and a character that is cut off.
  BOOST_TEST(one_line("\xed\xa0\x80") == R"(\xed\xa0\x80)");
  BOOST_TEST(one_line("\xc0\xaf") == R"(\xc0\xaf)");
  BOOST_TEST(one_line("\xf0\x9f\x94") == R"(\xf0\x9f\x94)");
}

BOOST_AUTO_TEST_SUITE_END()
