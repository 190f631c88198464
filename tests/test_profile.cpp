// The shared config and credentials files: their grammar (the cases that AWS
// gives to the authors of its SDKs, restated, and those it is silent about),
// and what one profile is when there are two files, or none, or odd ones.
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sigv4/profile.hpp"
#include "sigv4/secret.hpp"
#include "sigv4/text.hpp"
#include "tests/support/home.hpp"
#include "tests/support/memory.hpp"

namespace {

namespace fs = std::filesystem;
using namespace ddbmutex::sigv4;
using tests::has;
using tests::Home;

// A text that was parsed, and what of it.
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

// The profiles of a text as one line: "bar{} foo{<name=value>}"; of an
// unusable one the error.
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

// Of a config file with these lines in profile foo.
std::string in_foo(const std::string& lines) {
  return config("[profile foo]\n" + lines);
}

// A property's value; "-" if there is none.
std::string value(const Home& home, const std::string& property,
                  std::string_view name = {}) {
  const Profile profile = load_profile(name, home.environment());
  BOOST_TEST(profile.error == "");
  const auto found = profile.find(property.c_str());
  return found ? found.value : "-";
}

const std::string kCounted = "0=\n1=\n2=\n";  // And so on.

// CPU seconds to read `start` and `length` bytes of repeated `part`, as either
// file.
double reading_time(const std::string& start, const std::string& part,
                    std::size_t length) {
  std::string text = start;
  for (int i = 0; text.size() < length; ++i) {
    text += part == kCounted ? std::to_string(i) + "=\n" : part;
  }
  const std::clock_t begin = std::clock();
  for (const FileKind kind : {FileKind::config, FileKind::credentials}) {
    const ParsedFile parsed(text, kind);
    for (const Entry& entry : parsed.entries) {
      BOOST_REQUIRE(sub_property(entry.value, "z").empty());
    }
  }
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

int lowest_free_descriptor() {
  const int fd = open("/dev/null", O_RDONLY);
  BOOST_TEST_REQUIRE(fd >= 0);
  close(fd);
  return fd;
}

long peak_memory_kib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

Profile load(const Home& home, std::string_view name = {}) {
  return load_profile(name, home.environment());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(profile_grammar)

BOOST_AUTO_TEST_CASE(empty_text_or_profile_holds_nothing) {
  BOOST_TEST(config("") == "");
  BOOST_TEST(config("\n") == "");
  BOOST_TEST(config("[profile foo]") == "foo{}");
  BOOST_TEST(config("[profile foo]\n[profile bar]") == "bar{} foo{}");
}

BOOST_AUTO_TEST_CASE(profile_names_of_known_characters_are_kept) {
  const std::string name = "some-thing:long/the_one%only.foo@bar+A9\\z";
  BOOST_TEST(config("[profile " + name + "]") == name + "{}");
  BOOST_TEST(credentials("[" + name + "]") == name + "{}");
}

BOOST_AUTO_TEST_CASE(profile_name_may_be_of_any_characters) {
  for (const char* name : {"foo!bar", "f\xC3\xB6\xC3\xB6", "a#b;c", "a=b",
                           "(x)", "a[b", "$HOME"}) {
    BOOST_TEST(config("[profile " + std::string(name) + "]\nx = 1") ==
               std::string(name) + "{<x=1>}");
    BOOST_TEST(credentials("[" + std::string(name) + "]\nx = 1") ==
               std::string(name) + "{<x=1>}");
  }
  BOOST_TEST(credentials("[My MacBook]\nx = 1\n[in valid 2]\ny = 2") ==
             "My MacBook{<x=1>} in valid 2{<y=2>}");
}

BOOST_AUTO_TEST_CASE(profile_without_a_name_is_skipped_with_its_lines) {
  BOOST_TEST(config("[profile in valid]\nname = value") == "");
  BOOST_TEST(config("[profile ]\nx = 1\n[]\nx = 2\n[ ]\nx = 3") == "");
  BOOST_TEST(credentials("[]\nx = 1\n[ ]\nx = 2\n[a\x01z]\nx = 3") == "");
  BOOST_TEST(config("[profile foo]\nname = value\n[profile in valid]\nx = 1\n"
                    " y\nz\n[profile bar]\nname = value2") ==
             "bar{<name=value2>} foo{<name=value>}");
}

BOOST_AUTO_TEST_CASE(blanks_around_a_profile_name_are_trimmed) {
  BOOST_TEST(config("[profile \tfoo \t]") == "foo{}");
  BOOST_TEST(config("[profile\tfoo]") == "foo{}");
  BOOST_TEST(config("[   profile foo    ]\nname = value\n[profile bar]") ==
             "bar{} foo{<name=value>}");
  BOOST_TEST(credentials("[   foo    ]\nname = value") == "foo{<name=value>}");
}

// As Python's shlex takes words apart; in the credentials file, which needs no
// quotes, they are a part of the name.
BOOST_AUTO_TEST_CASE(quotes_and_backslashes_are_for_names_in_config_alone) {
  BOOST_TEST(config("[profile \"a b#c\"]\n[profile 'd']\n[profile \"it's\"]") ==
             "a b#c{} d{} it's{}");
  BOOST_TEST(config("[profile My\\ MacBook]\n[profile a' 'b\" c\"]\n"
                    "[profile \"say \\\"x\\\"\"]\n[profile 'a\\b c']") ==
             "My MacBook{} a b c{} a\\b c{} say \"x\"{}");
  BOOST_TEST(config("[profile \"]\n[profile \"\"]\n[profile \"a']\n"
                    "[profile \"a\" b]\n[profile \"a\x01z\"]\n[profile !\\]") ==
             "");
  BOOST_TEST(credentials("[\"a\"]\nx = 1\n[b\\ c]") == "\"a\"{<x=1>} b\\ c{}");
}

BOOST_AUTO_TEST_CASE(sections_of_other_kinds_are_named_as_profiles_are) {
  const ParsedFile parsed(
      "[services My\\ MacBook]\n[services \"a b\"]\n[services f\xC3\xB6!]\n"
      "[sso-session 'My Org']\n[sso-session two words]",
      FileKind::config);
  BOOST_TEST(shown(parsed, "services") == "My MacBook{} a b{} f\xC3\xB6!{}");
  BOOST_TEST(shown(parsed, "sso-session") == "My Org{}");
}

BOOST_AUTO_TEST_CASE(config_profile_without_prefix_is_skipped) {
  BOOST_TEST(config("[foo]\nname = value") == "");
  BOOST_TEST(config("[profilefoo]\nname = value\n[profile bar]") == "bar{}");
  BOOST_TEST(config("[Profile foo]\n[PROFILE foo]\n[Default]") == "");
  BOOST_TEST(config("[preview]\ncloudfront\n  = on\n") == "");
  BOOST_TEST(config("[plugins default]\nname = value") == "");
  BOOST_TEST(config("[sso-sessions foo]\nname = value\n[profile bar]") ==
             "bar{}");
}

BOOST_AUTO_TEST_CASE(prefix_is_a_part_of_the_name_in_credentials) {
  BOOST_TEST(credentials("[profile foo]\nname = value\n[services foo]") ==
             "profile foo{<name=value>} services foo{}");
  BOOST_TEST(credentials("[sso-sessionfoo]\nname = value\n[bar]") ==
             "bar{} sso-sessionfoo{<name=value>}");
}

BOOST_AUTO_TEST_CASE(profiles_that_differ_in_case_are_two) {
  BOOST_TEST(config("[profile a]\nx=1\n[profile A]\nx=2") ==
             "A{<x=2>} a{<x=1>}");
}

BOOST_AUTO_TEST_CASE(section_without_its_bracket_makes_the_file_unusable) {
  BOOST_TEST(config("[profile foo") == "line 1: a section without its ']'");
  BOOST_TEST(credentials("[a]\nx=1\n[") == "line 3: a section without its ']'");
}

BOOST_AUTO_TEST_CASE(what_follows_a_section_is_no_matter) {
  BOOST_TEST(config("[profile foo]; semicolon\n[profile bar]# pound") ==
             "bar{} foo{}");
  BOOST_TEST(config("[profile foo] junk") == "foo{}");
  BOOST_TEST(credentials("[foo] # not [bar]\n[a] ;]\n[b]\t#[") ==
             "a{} b{} foo{}");
}

// It is not another profile, whose keys these would be.
BOOST_AUTO_TEST_CASE(name_ends_at_the_last_bracket) {
  BOOST_TEST(credentials("[a]b]\nx = 1\n[c]]\n[d ;e] # [f]\n[g #h]") ==
             "a]b{<x=1>} c]{} d ;e{} g #h{}");
  BOOST_TEST(config("[profile a]b] # c\n[profile \"c]\"]\n[profile x] [y]") ==
             "a]b{} c]{}");
}

BOOST_AUTO_TEST_CASE(line_before_the_first_section_makes_the_file_unusable) {
  BOOST_TEST(config("name = value") ==
             "line 1: a line before the first section");
  BOOST_TEST(config("\n# c\n -continued\n[profile x]") ==
             "line 3: a line before the first section");
}

BOOST_AUTO_TEST_CASE(properties_belong_to_their_profile) {
  BOOST_TEST(in_foo("name = value") == "foo{<name=value>}");
  BOOST_TEST(in_foo("name = value\nname2 = value2") ==
             "foo{<name=value><name2=value2>}");
  BOOST_TEST(in_foo("name = value\n[profile bar]\nname2 = value2") ==
             "bar{<name2=value2>} foo{<name=value>}");
}

BOOST_AUTO_TEST_CASE(any_end_of_line_and_byte_order_mark_is_read) {
  BOOST_TEST(config("[profile foo]\r\nname = value\r\n\r\n more\r\n") ==
             "foo{<name=value\nmore>}");
  BOOST_TEST(config("\xEF\xBB\xBF[profile foo]\nname = value") ==
             "foo{<name=value>}");
  BOOST_TEST(config("\xEF\xBB\xBF\xEF\xBB\xBF[profile foo]") ==
             "line 1: a line before the first section");
}

BOOST_AUTO_TEST_CASE(values_hold_any_byte) {
  BOOST_TEST(in_foo("name = val=ue") == "foo{<name=val=ue>}");
  BOOST_TEST(in_foo("name = \xF0\x9F\x98\x82\xFF") ==
             "foo{<name=\xF0\x9F\x98\x82\xFF>}");
  const std::string zero("name = a\0b", 10);
  BOOST_TEST(in_foo(zero) == "foo{<name=" + std::string("a\0b", 3) + ">}");
}

BOOST_AUTO_TEST_CASE(blanks_around_name_and_value_are_trimmed) {
  BOOST_TEST(in_foo("name \t=  \tvalue \t") == "foo{<name=value>}");
  BOOST_TEST(in_foo("name=a b") == "foo{<name=a b>}");
}

BOOST_AUTO_TEST_CASE(value_may_be_empty_and_name_may_not) {
  BOOST_TEST(in_foo("name =") == "foo{<name=>}");
  BOOST_TEST(in_foo("= value") == "line 2: a property without a name");
}

BOOST_AUTO_TEST_CASE(line_that_is_no_property_makes_the_file_unusable) {
  BOOST_TEST(in_foo("key : value") == "line 2: a property without '='");
  BOOST_TEST(in_foo("a = 1\njunk") == "line 3: a property without '='");
  BOOST_TEST(in_foo("key # = value") == "line 2: a property without '='");
}

BOOST_AUTO_TEST_CASE(colon_behind_a_setting_is_told_with_its_name_and_line) {
  BOOST_TEST(in_foo("a = 1\nregion: sEcReT") ==
             "line 3: region is followed by ':', not by '='");
  BOOST_TEST(in_foo("AWS_Secret_Access_Key : sEcReT") ==
             "line 2: aws_secret_access_key is followed by ':', not by '='");
  // Else its name would be taken for "aws_secret_access_key: sEcReT".
  BOOST_TEST(in_foo("aws_secret_access_key: sEcReT==") ==
             "line 2: aws_secret_access_key is followed by ':', not by '='");
  BOOST_TEST(in_foo("dynamodb =\n endpoint_url: http://h/?a=b") ==
             "line 3: endpoint_url is followed by ':', not by '='");
  // Neither a setting nor behind one.
  BOOST_TEST(in_foo("a:b = c\nregion = x:y\nx y: = z") ==
             "foo{<a:b=c><region=x:y>}");
  BOOST_TEST(config("[profile in valid]\nregion: x") == "");
}

BOOST_AUTO_TEST_CASE(error_never_shows_the_line) {
  for (const char* lines :
       {"aws_secret_access_key sEcReT", "= sEcReT", " sEcReT", "[sEcReT",
        "s3 =\n sEcReT", "s3 =\n = sEcReT"}) {
    const std::string error = in_foo(lines);
    BOOST_TEST(has(error, "line "));
    BOOST_TEST(!has(error, "sEcReT"));
  }
}

BOOST_AUTO_TEST_CASE(property_of_invalid_name_is_skipped_with_its_lines) {
  BOOST_TEST(in_foo("in valid = value\n -continued\nx = 1") == "foo{<x=1>}");
  BOOST_TEST(in_foo("x = 1\nin valid =\n no equals sign") == "foo{<x=1>}");
}

BOOST_AUTO_TEST_CASE(property_names_are_told_apart_without_case) {
  BOOST_TEST(in_foo("ABCXYZabcxyz019-_ = value") ==
             "foo{<abcxyzabcxyz019-_=value>}");
  BOOST_TEST(in_foo("Name = value\nname = value2") == "foo{<name=value2>}");
}

BOOST_AUTO_TEST_CASE(blank_lines_are_nothing) {
  BOOST_TEST(config("\t \n[profile foo]\n\t\n \nname = value\n\t \n"
                    "[profile bar]\n \t") == "bar{} foo{<name=value>}");
}

BOOST_AUTO_TEST_CASE(comments_are_nothing) {
  BOOST_TEST(config("# Comment\n[profile foo] # Comment\n"
                    "name = value # Comment with # sign") ==
             "foo{<name=value>}");
  BOOST_TEST(config("; Comment\n[profile foo] ; Comment\n"
                    "name = value ; Comment with ; sign") ==
             "foo{<name=value>}");
  BOOST_TEST(config(";\n[profile foo];\nname = value ;\n") ==
             "foo{<name=value>}");
  BOOST_TEST(in_foo("name = value\t# c") == "foo{<name=value>}");
  BOOST_TEST(in_foo("name = # c") == "foo{<name=>}");
}

BOOST_AUTO_TEST_CASE(comment_mark_without_a_blank_belongs_to_the_value) {
  BOOST_TEST(in_foo("name = value; a\nname2 = value# b\nname3 =#c") ==
             "foo{<name=value; a><name2=value# b><name3=#c>}");
}

BOOST_AUTO_TEST_CASE(indented_comment_continues_nothing) {
  BOOST_TEST(in_foo("secret = abc\n  # rotate in May\n\t; or June\nx = 1") ==
             "foo{<secret=abc><x=1>}");
  BOOST_TEST(in_foo(" # c\nx = 1") == "foo{<x=1>}");
}

BOOST_AUTO_TEST_CASE(indented_line_continues_the_value) {
  BOOST_TEST(in_foo("name = value\n -continued") ==
             "foo{<name=value\n-continued>}");
  BOOST_TEST(in_foo("name = value\n -continued\n\n\t-and-continued \t ") ==
             "foo{<name=value\n-continued\n-and-continued>}");
  BOOST_TEST(in_foo("name = value\n -continued # Comment") ==
             "foo{<name=value\n-continued # Comment>}");
  BOOST_TEST(in_foo("name = value\n -continued ; Comment") ==
             "foo{<name=value\n-continued ; Comment>}");
  BOOST_TEST(in_foo("name = value\n [profile bar]\n x = 1") ==
             "foo{<name=value\n[profile bar]\nx = 1>}");
}

BOOST_AUTO_TEST_CASE(
    line_no_deeper_than_the_property_before_continues_nothing) {
  BOOST_TEST(in_foo("  a = 1\n  b = 2") == "foo{<a=1><b=2>}");
  BOOST_TEST(in_foo("  a = 1\n b = 2\nc = 3") == "foo{<a=1><b=2><c=3>}");
  BOOST_TEST(in_foo("\ta = 1\n\t\tb = 2\n\tc = 3") == "foo{<a=1\nb = 2><c=3>}");
  BOOST_TEST(in_foo("  s3 =\n    x = 1\n  b = 2") == "foo{<b=2><s3=\nx = 1>}");
  BOOST_TEST(in_foo("  in valid = 1\n    x = 1\n  b = 2") == "foo{<b=2>}");
  BOOST_TEST(in_foo("  # c\n  a = 1\n # c\n   more") == "foo{<a=1\nmore>}");
}

BOOST_AUTO_TEST_CASE(section_that_continues_nothing_may_be_indented) {
  BOOST_TEST(config("  [profile foo]\n  a = 1\n  [profile bar]\nb = 2") ==
             "bar{<b=2>} foo{<a=1>}");
  BOOST_TEST(config("[profile in valid]\n x = 1\n [profile bar]\nb = 2") ==
             "bar{<b=2>}");
  BOOST_TEST(config("[profile in valid]\nx = 1\n [profile bar]\nb = 2") == "");
  BOOST_TEST(config("[profile foo]\n [profile bar") ==
             "line 2: a section without its ']'");
}

BOOST_AUTO_TEST_CASE(indented_line_behind_a_section_must_be_a_property) {
  BOOST_TEST(in_foo(" -continued") == "line 2: a property without '='");
  BOOST_TEST(in_foo("name = value\n[profile foo]\n -continued") ==
             "line 4: a property without '='");
  BOOST_TEST(in_foo("in valid = value\n[profile foo]\n -continued") ==
             "line 4: a property without '='");
}

BOOST_AUTO_TEST_CASE(equal_profiles_are_one_and_the_last_property_counts) {
  BOOST_TEST(in_foo("name = value\n[profile foo]\nname2 = value2") ==
             "foo{<name=value><name2=value2>}");
  BOOST_TEST(in_foo("name = value\nname = value2") == "foo{<name=value2>}");
  BOOST_TEST(in_foo("name = value\n more\nname = value2") ==
             "foo{<name=value2>}");
  BOOST_TEST(in_foo("Name = value\n[profile foo]\nname = value2") ==
             "foo{<name=value2>}");
}

BOOST_AUTO_TEST_CASE(prefixed_default_beats_the_plain_one) {
  BOOST_TEST(config("[default]\nname = value") == "default{<name=value>}");
  BOOST_TEST(
      config("[profile default]\nname = value\n[default]\nname2 = value2") ==
      "default{<name=value>}");
  BOOST_TEST(
      config("[default]\nname2 = value2\n[profile default]\nname = value") ==
      "default{<name=value>}");
  BOOST_TEST(
      config("[profile default]\nname = value\n[default]\nname2 = value2\n"
             "[profile default]\nname3 = value3") ==
      "default{<name=value><name3=value3>}");
}

BOOST_AUTO_TEST_CASE(property_may_have_sub_properties) {
  BOOST_TEST(in_foo("s3 =\n name = value") == "foo{<s3=\nname = value>}");
  BOOST_TEST(in_foo("s3 =\n name = value\n\t \n name2 = value2") ==
             "foo{<s3=\nname = value\nname2 = value2>}");
  BOOST_TEST(in_foo("s3 =\n name =") == "foo{<s3=\nname =>}");
  BOOST_TEST(in_foo("s3 =\n in valid = value") ==
             "foo{<s3=\nin valid = value>}");
}

BOOST_AUTO_TEST_CASE(wrong_sub_property_makes_the_file_unusable) {
  BOOST_TEST(in_foo("s3 =\n invalid") == "line 3: a sub-property without '='");
  BOOST_TEST(in_foo("s3 =\n = value") ==
             "line 3: a sub-property without a name");
}

BOOST_AUTO_TEST_CASE(sub_property_is_found_by_its_name) {
  const std::string value = "\nname = one \nENDPOINT_url=http://a=b\nname = 2";
  BOOST_TEST(sub_property(value, "endpoint_url") == "http://a=b");
  BOOST_TEST(sub_property(value, "name") == "2");
  BOOST_TEST(sub_property("\nname =", "name") == "");
  BOOST_TEST(sub_property(value, "other") == "");
  BOOST_TEST(sub_property("x\nname = 1", "name") == "");
  BOOST_TEST(sub_property("", "") == "");
}

BOOST_AUTO_TEST_CASE(services_are_sections_of_their_own) {
  const ParsedFile parsed(
      "[services a]\ndynamodb =\n  endpoint_url = http://h\n[profile a]\nx=1",
      FileKind::config);
  BOOST_TEST(shown(parsed, "services") ==
             "a{<dynamodb=\nendpoint_url = http://h>}");
  BOOST_TEST(shown(parsed, "profile") == "a{<x=1>}");
}

BOOST_AUTO_TEST_CASE(sso_sessions_are_sections_of_their_own) {
  const ParsedFile parsed(
      "[sso-session a]\nsso_region = r\n[sso-session \"b c\"]\n"
      "[sso-session]\nx = 1\n[profile a]\nsso_session = a",
      FileKind::config);
  BOOST_TEST(shown(parsed, "sso-session") == "a{<sso_region=r>} b c{}");
  BOOST_TEST(shown(parsed, "profile") == "a{<sso_session=a>}");
}

// A reader whose time grows with the square of the text's length takes 256
// times as long for 16 times the text; ours should take 16 times.
BOOST_AUTO_TEST_CASE(hostile_text_takes_time_in_proportion_to_its_length) {
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"", "["},
      {"", "\n"},
      {"", "[default]\nx=1\n[profile default]\nx=1\n"},
      {"", std::string(1, '\0')},
      {"[profile ", "]"},
      {"[profile '", "\""},
      {"[profile a]\nx = 1", "\n y"},
      {"[profile a]\nx =", "\n y=1"},
      {"[profile a]\nx = ", "#"},
      {"[profile a]\nx = ", " \t"},
      {"[profile a]\n", "=\n"},
      {"[profile a]\n", kCounted},
  };
  for (const auto& [start, part] : texts) {
    const double small = reading_time(start, part, kMaxProfileFileBytes / 16);
    const double large = reading_time(start, part, kMaxProfileFileBytes);
    BOOST_TEST(large < 64 * small + 0.5,
               "after " << start << ": " << small << " s, " << large << " s");
  }
}

// Every cut of a text is read without harm (this one says it to ASan).
BOOST_AUTO_TEST_CASE(text_that_ends_anywhere_is_read) {
  const std::string text =
      "\xEF\xBB\xBF# c\r\n[default]\r\nx = 1 ; c\n y\n[profile \"a b\"] z\n"
      "s3 =\n  a = b\n[services s]\nin valid = 1\n q\n";
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const std::string part = text.substr(0, length);
    for (const FileKind kind : {FileKind::config, FileKind::credentials}) {
      const ParsedFile parsed(part, kind);
      BOOST_TEST((parsed.error.empty() || has(parsed.error, "line ")));
    }
  }
}

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

BOOST_AUTO_TEST_CASE(text_on_one_line_shows_what_would_be_obeyed_or_unseen) {
  using ddbmutex::sigv4::one_line;
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

BOOST_AUTO_TEST_CASE(optional_piece_that_is_empty_brings_nothing_around_it) {
  using ddbmutex::sigv4::if_any;
  BOOST_TEST(if_any(" (", "1", ")") == " (1)");
  BOOST_TEST(if_any(": ", "b") == ": b");
  BOOST_TEST(if_any(" (", "", ")") == "");
}

BOOST_AUTO_TEST_CASE(numbers_have_all_their_digits) {
  using Signed = std::numeric_limits<std::int64_t>;
  BOOST_TEST(decimal(Signed::min()) == "-9223372036854775808");
  BOOST_TEST(decimal(Signed::max()) == "9223372036854775807");
  for (const int number :
       {0, 9, 10, 11, 99, 100, 101, 999, 1000, 1010, 9999, 10000, -1, -10}) {
    BOOST_TEST(decimal(number) == std::to_string(number));
  }
  BOOST_TEST(std::string(Digits(~std::uint64_t{0})) == "18446744073709551615");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(profile_files)

BOOST_AUTO_TEST_CASE(files_are_found_below_home) {
  Home home;
  home.write(".aws/config", "[default]\nregion = eu-west-1\n");
  home.write(".aws/credentials", "[default]\naws_access_key_id = id\n");
  BOOST_TEST(value(home, "region") == "eu-west-1");
  BOOST_TEST(value(home, "aws_access_key_id") == "id");
  BOOST_TEST(value(home, "output") == "-");
}

BOOST_AUTO_TEST_CASE(variables_say_which_files) {
  Home home;
  home.write(".aws/config", "[default]\nx = home\n");
  home.variables["AWS_CONFIG_FILE"] = home.write("c1", "[default]\nx = v\n");
  BOOST_TEST(value(home, "x") == "v");
  home.variables["AWS_SHARED_CREDENTIALS_FILE"] =
      home.write("s1", "[default]\nx = sv");
  BOOST_TEST(value(home, "x") == "sv");
}

BOOST_AUTO_TEST_CASE(empty_variable_counts_as_unset) {
  Home home;
  home.write(".aws/config", "[default]\nx = home\n");
  for (const char* name : {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
                           "AWS_PROFILE", "AWS_DEFAULT_PROFILE"}) {
    home.variables[name] = "";
  }
  BOOST_TEST(value(home, "x") == "home");
}

BOOST_AUTO_TEST_CASE(tilde_is_home_at_the_beginning_alone) {
  Home home;
  home.write("mine", "[default]\nx = mine\n");
  home.variables["AWS_CONFIG_FILE"] = "~/mine";
  BOOST_TEST(value(home, "x") == "mine");
  BOOST_TEST(load(home).config.path == (home.root / "mine").string());
  for (const char* path : {"~other/mine", "/~/mine", "a~/mine"}) {
    home.variables["AWS_CONFIG_FILE"] = path;
    BOOST_TEST(load(home).config.path == path);
  }
  home.variables["AWS_CONFIG_FILE"] = "~";
  BOOST_TEST(load(home).config.path == home.root.string());
}

// As Python's os.path has it.
BOOST_AUTO_TEST_CASE(variables_in_the_names_of_the_files_are_expanded) {
  Home home;
  const std::string root = home.root.string();
  home.variables["IT"] = "$HOME";
  for (const auto& [said, meant] :
       std::vector<std::pair<std::string, std::string>>{
           {"$HOME/mine", root + "/mine"},
           {"${HOME}/mine", root + "/mine"},
           {"$IT/mine", "$HOME/mine"},
           {"a${IT}b$IT.c", "a$HOMEb$HOME.c"},
           {"$HOMELY/mine", "$HOMELY/mine"},
           {"$UNKNOWN/${UNKNOWN}/$/${/$$", "$UNKNOWN/${UNKNOWN}/$/${/$$"},
           {"~/$IT", root + "/$HOME"},
           {"${}~", "${}~"}}) {
    home.variables["AWS_CONFIG_FILE"] = said;
    home.variables["AWS_SHARED_CREDENTIALS_FILE"] = said;
    BOOST_TEST(load(home).config.path == meant, said);
    BOOST_TEST(load(home).credentials.path == meant, said);
  }
  home.write("mine", "[default]\nx = mine\n");
  home.variables["AWS_CONFIG_FILE"] = "$HOME/mine";
  home.variables["AWS_SHARED_CREDENTIALS_FILE"] = "~/none";
  BOOST_TEST(value(home, "x") == "mine");
}

BOOST_AUTO_TEST_CASE(no_home_is_no_files_and_said_so) {
  Home home;
  for (const bool empty : {true, false}) {
    if (empty) home.variables["HOME"] = "";
    if (!empty) home.variables.erase("HOME");
    const Profile profile = load(home);
    BOOST_TEST(profile.error == "");
    BOOST_TEST(profile.whereabouts() ==
               "\"~/.aws/credentials\" cannot be found (HOME is not set), "
               "\"~/.aws/config\" cannot be found (HOME is not set)");
  }
}

BOOST_AUTO_TEST_CASE(profiles_of_both_files_are_one_and_credentials_win) {
  Home home;
  home.write(".aws/config", "[profile foo]\na = config\nb = config\n");
  home.write(".aws/credentials", "[foo]\nb = keys\nc = keys\n");
  const char* const foo = "foo";
  BOOST_TEST(value(home, "a", foo) == "config");
  BOOST_TEST(value(home, "b", foo) == "keys");
  BOOST_TEST(value(home, "c", foo) == "keys");
  BOOST_TEST(load(home, foo).find("b").source ==
             "b of profile \"foo\" in " +
                 in_quotes((home.root / ".aws/credentials").string()));
}

BOOST_AUTO_TEST_CASE(empty_value_counts_as_none_and_hides_the_other_files) {
  Home home;
  home.write(".aws/config", "[default]\nregion = eu-west-1\n");
  home.write(".aws/credentials", "[default]\nregion =\n");
  BOOST_TEST(value(home, "region") == "-");
}

BOOST_AUTO_TEST_CASE(profile_is_chosen_by_option_then_variables) {
  Home home;
  home.write(".aws/config",
             "[default]\nx = d\n[profile a]\nx = a\n[profile b]\nx = b\n"
             "[profile c]\nx = c\n");
  BOOST_TEST(value(home, "x") == "d");
  home.variables["AWS_DEFAULT_PROFILE"] = "a";
  BOOST_TEST(value(home, "x") == "a");
  home.variables["AWS_PROFILE"] = "b";
  BOOST_TEST(value(home, "x") == "b");
  BOOST_TEST(value(home, "x", "c") == "c");
}

BOOST_AUTO_TEST_CASE(missing_profile_is_an_error_only_if_it_was_named) {
  Home home;
  home.write(".aws/config", "[profile a]\nx = a\n[b]\n");
  BOOST_TEST(load(home).error == "");
  home.variables["AWS_DEFAULT_PROFILE"] = "b";
  BOOST_TEST(
      has(load(home).error,
          "profile \"b\", named by AWS_DEFAULT_PROFILE, does not exist: "));
  home.variables["AWS_PROFILE"] = "default";
  BOOST_TEST(has(load(home).error, "\"default\", named by AWS_PROFILE, "));
  const std::string error = load(home, "c").error;
  BOOST_TEST(has(error, "\"c\", named by the options, "));
  BOOST_TEST(has(error, ".aws/credentials\" does not exist, "));
  BOOST_TEST(has(error, ".aws/config\" has no such profile"));
  BOOST_TEST(load(home, "a").error == "");
}

BOOST_AUTO_TEST_CASE(unusable_file_is_an_error_that_names_it) {
  for (const char* name : {".aws/config", ".aws/credentials"}) {
    Home home;
    home.write(name, "[default]\njunk\n");
    BOOST_TEST(load(home).error == in_quotes((home.root / name).string()) +
                                       ", line 2: a property without '='");
  }
}

BOOST_AUTO_TEST_CASE(file_of_one_mebibyte_is_read_and_a_longer_one_unusable) {
  Home home;
  std::string text = "[default]\nx = 1\n#";
  text.resize(kMaxProfileFileBytes, '#');
  home.write(".aws/config", text);
  BOOST_TEST(value(home, "x") == "1");
  home.write(".aws/config", text + "#");
  BOOST_TEST(has(load(home).error, "config\": longer than 1 MiB"));
}

BOOST_AUTO_TEST_CASE(file_of_a_gibibyte_is_not_read_to_its_end) {
  Home home;
  home.write(".aws/config", "[default]\n");
  fs::resize_file(home.root / ".aws/config", 1 << 30);  // Sparse.
  const long before = peak_memory_kib();
  BOOST_TEST(has(load(home).error, "config\": longer than 1 MiB"));
  BOOST_TEST(peak_memory_kib() - before < 128 * 1024);
}

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
       {std::pair(0640u, "0640"), std::pair(0604u, "0604"),
        std::pair(0620u, "0620"), std::pair(0602u, "0602"),
        std::pair(0777u, "0777"), std::pair(044u, "0044")}) {
    BOOST_TEST_REQUIRE(chmod(path.c_str(), mode) == 0);
    const std::string warning = load(home).credentials.warning();
    if (geteuid() != 0 && mode == 044u) continue;  // It cannot be read.
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

BOOST_AUTO_TEST_CASE(config_file_of_loose_mode_is_warned_about_if_it_has_keys) {
  Home home;
  const auto warned = [&](const std::string& text) {
    const std::string path = home.write(".aws/config", text);
    BOOST_TEST_REQUIRE(chmod(path.c_str(), 0644) == 0);
    return load(home).config.warning() != "";
  };
  BOOST_TEST(!warned("[default]\nregion = r\naws_access_key_id = a\n"));
  BOOST_TEST(!warned("[default]\naws_secret_access_key =\n"));
  BOOST_TEST(warned("[profile a]\naws_secret_access_key = s\n"));
  BOOST_TEST(warned("[profile a]\naws_session_token = s\n"));
  home.write(".aws/config", "[default]\naws_secret_access_key = s\n");
  BOOST_TEST_REQUIRE(chmod((home.root / ".aws/config").c_str(), 0600) == 0);
  BOOST_TEST(load(home).config.warning() == "");
}

BOOST_AUTO_TEST_CASE(what_the_files_held_does_not_stay_in_memory) {
  Home home;
  tests::Needle needle(1);
  const std::string lines = "[default]\naws_secret_access_key = ";
  {
    needle.write((home.root / ".aws/credentials").string(), lines);
    const Profile profile = load(home);
    BOOST_TEST(needle.is_in(*profile.credentials.find(
        "profile", "default", "aws_secret_access_key")));
    BOOST_TEST(needle.is_in_memory());
  }
  BOOST_TEST(!needle.is_in_memory());
  // In one that is long, and in one that cannot be used.
  const std::string useless = "\n more\njunk";
  // Where a function is bound when it is first called, the loader saves all
  // registers on the stack, and with them what was copied last: that is over.
  home.write(".aws/credentials", lines + "s" + useless);
  load(home);
  for (const std::string& after : {"\n" + std::string(20000, '#'), useless}) {
    needle.write((home.root / ".aws/credentials").string(), lines, after);
    BOOST_TEST((load(home).error == "") == (after.size() > 100));
    BOOST_TEST(!needle.is_in_memory());
  }
}

BOOST_AUTO_TEST_CASE(file_of_no_permission_counts_as_empty) {
  Home home;
  home.write(".aws/config", "[default]\nx = 1\n");
  fs::permissions(home.root / ".aws/config", fs::perms::none);
  if (geteuid() == 0) {  // Root may read it all the same.
    BOOST_TEST(value(home, "x") == "1");
    return;
  }
  BOOST_TEST(value(home, "x") == "-");
  BOOST_TEST(load(home).config.absence() ==
             "cannot be read (Permission denied)");
}

BOOST_AUTO_TEST_CASE(fifo_without_a_writer_does_not_hang,
                     *boost::unit_test::timeout(10)) {
  Home home;
  const std::string path = (home.root / ".aws/config").string();
  BOOST_TEST_REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const Profile profile = load(home);
  BOOST_TEST(profile.error == "");
  BOOST_TEST(profile.config.absence() == "is not a regular file");
}

BOOST_AUTO_TEST_CASE(no_descriptor_is_left_open) {
  Home home;
  home.write(".aws/config", "[default]\nx = 1\n");
  home.write(".aws/credentials", "[default]\njunk\n");
  const int before = lowest_free_descriptor();
  for (int i = 0; i < 3; ++i) BOOST_TEST(load(home).error != "");
  home.variables["AWS_CONFIG_FILE"] = home.root.string();
  BOOST_TEST(load(home).error != "");
  BOOST_TEST(lowest_free_descriptor() == before);
}

BOOST_AUTO_TEST_CASE(symlink_to_a_file_is_followed) {
  Home home;
  home.write("real", "[default]\nx = 1\n");
  fs::create_symlink(home.root / "real", home.root / ".aws/config");
  BOOST_TEST(value(home, "x") == "1");
}

// Services that are started by systemd have none.
BOOST_AUTO_TEST_CASE(home_is_known_without_the_variable) {
  const tests::ProcessVariable none("HOME", nullptr);
  BOOST_TEST(process_environment("HOME") == getpwuid(getuid())->pw_dir);
}

BOOST_AUTO_TEST_CASE(process_environment_is_this_process_own) {
  const tests::ProcessVariable set("DDBMUTEX_TEST_PROFILE", "x");
  BOOST_TEST(process_environment("DDBMUTEX_TEST_PROFILE") == "x");
  const tests::ProcessVariable unset("DDBMUTEX_TEST_PROFILE", nullptr);
  BOOST_TEST(process_environment("DDBMUTEX_TEST_PROFILE") == "");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(secret_files)

BOOST_AUTO_TEST_CASE(file_is_read_whole_or_not_at_all) {
  Home home;
  for (const std::size_t size : {0u, 1u, 4095u, 4096u, 4097u, 100000u}) {
    const std::string path = home.write("file", std::string(size, 'x'));
    const SecretFile whole = SecretFile(path, size);
    BOOST_TEST(whole.failure == "");
    BOOST_TEST(whole.text == std::string(size, 'x'));
    if (size == 0) continue;
    const SecretFile longer = SecretFile(path, size - 1);
    BOOST_TEST(longer.too_long);
    BOOST_TEST(longer.text.empty());
    BOOST_TEST(longer.failure ==
               "is longer than " + std::to_string(size - 1) + " bytes");
  }
}

BOOST_AUTO_TEST_CASE(what_is_too_long_does_not_stay_in_memory) {
  Home home;
  tests::Needle needle(3);
  const std::string path = (home.root / "file").string();
  needle.write(path, std::string(100, '.'), std::string(100, '.'));
  BOOST_TEST(SecretFile(path, 200).too_long);
  BOOST_TEST(!needle.is_in_memory());
}

BOOST_AUTO_TEST_CASE(written_file_takes_the_place_of_another_or_of_none) {
  Home home;
  const std::string path = (home.root / "file").string();
  for (const char* text : {"one", "two"}) {
    BOOST_TEST(write_secret_file(path, text) == "");
    BOOST_TEST(SecretFile(path, 100).text == text);
    BOOST_TEST(SecretFile(path, 100).warning == "");
  }
  // Who has the old one open goes on reading that.
  const int before = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  BOOST_TEST(write_secret_file(path, "three") == "");
  char text[8] = {};
  BOOST_TEST(read(before, text, sizeof text) == 3);
  close(before);
  BOOST_TEST(std::string(text) == "two");
}

BOOST_AUTO_TEST_CASE(file_that_cannot_be_written_leaves_nothing_behind) {
  Home home;
  const std::string directory = (home.root / "directory").string();
  fs::create_directories(directory + "/not-empty");
  BOOST_TEST(write_secret_file(directory, "x") == "Is a directory");
  BOOST_TEST(write_secret_file((home.root / "none/file").string(), "x") ==
             "No such file or directory");
  BOOST_TEST(std::distance(fs::directory_iterator(home.root), {}) == 2);
}

BOOST_AUTO_TEST_SUITE_END()
