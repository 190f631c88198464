// The shared config and credentials files: their grammar (the cases that AWS
// gives to the authors of its SDKs, restated, and those it is silent about),
// and what one profile is when there are two files, or none, or odd ones.
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "sigv4/profile.hpp"
#include "sigv4/secret.hpp"
#include "sigv4/text.hpp"
#include "tests/support/home.hpp"

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

Profile load(const Home& home, std::string_view name = {}) {
  return Profile(locate_profile(name, home.environment()));
}

struct Read {
  const char* text;
  const char* profiles;
};

// The SDKs' rules in the config file.  tests/witness compares more of them with
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
    {"# c\n[profile foo] # c\nx = 1 ; c # d\ny = # c", "foo{<x=1><y=>}"},
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

// In the credentials file, which needs no quotes, they are a part of the name.
constexpr Read kCredentials[] = {
    {"[My MacBook]\nx = 1\n[ f\xC3\xB6! ]", "My MacBook{<x=1>} f\xC3\xB6!{}"},
    {"[]\nx = 1\n[ ]\nx = 2\n[a\x01z]\nx = 3", ""},
    {"[\"a\"]\nx = 1\n[b\\ c]", "\"a\"{<x=1>} b\\ c{}"},
    {"[profile foo]\nx = 1\n[sso-session a]",
     "profile foo{<x=1>} sso-session a{}"},
    {"[a]\nx=1\n[", "line 3: a section without its ']'"},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(profile_grammar)

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

// It is not another profile, whose keys these would be.
BOOST_AUTO_TEST_CASE(name_ends_at_the_last_bracket) {
  BOOST_TEST(credentials("[a]b]\nx = 1\n[c]]\n[d ;e] # [f]\n[g #h]") ==
             "a]b{<x=1>} c]{} d ;e{} g #h{}");
  BOOST_TEST(config("[profile a]b] # c\n[profile \"c]\"]\n[profile x] [y]") ==
             "a]b{} c]{}");
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

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(profile_files)

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

BOOST_AUTO_TEST_CASE(fifo_without_a_writer_does_not_hang,
                     *boost::unit_test::timeout(10)) {
  Home home;
  const std::string path = (home.root / ".aws/config").string();
  BOOST_TEST_REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const Profile profile = load(home);
  BOOST_TEST(profile.error == "");
  BOOST_TEST(profile.config.absence() == "is not a regular file");
}

BOOST_AUTO_TEST_SUITE_END()
