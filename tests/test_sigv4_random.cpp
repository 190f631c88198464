// Random requests, signed here and by @smithy/signature-v4 in one node process,
// must get the same Authorization.
//
// What the generator leaves out, because smithy and AWS's published rules part
// there, because its model has no place for it or because nobody here sends it:
// a header Date, which smithy drops and AWS signs like any other; bytes that
// are not UTF-8; headers that proxies may change, which smithy does not sign;
// and S3's rules.
#include <stdlib.h>
#include <sys/wait.h>

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sigv4/sigv4.hpp"

namespace {

namespace fs = std::filesystem;
using namespace ddbmutex;

constexpr std::size_t kRequests = 10000;

struct Sample {
  std::string method, path, query, body;
  std::vector<std::pair<std::string, std::string>> headers;
  sigv4::Credentials credentials;
  std::string region, service;
  std::int64_t unix_seconds;
  bool checksum_header;   // X-Amz-Content-Sha256, added by the signer.
  bool unsigned_payload;  // The same, among the headers: UNSIGNED-PAYLOAD.
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  Sample sample() {
    Sample s;
    s.method = pick({"GET", "POST", "PUT", "DELETE", "HEAD"});
    s.path = path();
    s.query = chance(40) ? "" : query();
    s.body = chance(30) ? "" : bytes(below(300));
    s.checksum_header = chance(20);
    s.unsigned_payload = !s.checksum_header && chance(20);
    s.headers = headers(s.unsigned_payload);
    s.credentials = credentials();
    s.region = pick({"us-east-1", "eu-central-1", "cn-north-1"});
    s.service = pick({"dynamodb", "s3", "service", "execute-api"});
    s.unix_seconds = static_cast<std::int64_t>(below(4102444800));  // To 2099.
    return s;
  }

 private:
  using Words = std::initializer_list<std::string_view>;

  // Not the standard's distributions: those differ between libraries.
  std::size_t below(std::size_t bound) {
    return static_cast<std::size_t>(random_() % bound);
  }
  bool chance(std::uint64_t percent) { return below(100) < percent; }
  std::string pick(Words words) {
    return std::string(words.begin()[below(words.size())]);
  }

  std::string bytes(std::size_t size) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(below(256));
    return text;
  }

  // No word may end so that the next one completes a percent sequence.
  std::string word() {
    return pick({"a",
                 "B",
                 "example",
                 "value1",
                 "0",
                 "~",
                 "-_.",
                 "!'()*",
                 "+",
                 " ",
                 "%20",
                 "%2F",
                 "%2f",
                 "%41",
                 "%e1%88%b4",
                 "%25",
                 "%2B",
                 "%zz",
                 "%4g",
                 "%%3D",
                 "\u1234",
                 "\u00e9",
                 "\u65e5\u672c",
                 "\U0001f600",
                 ":",
                 "@",
                 "$",
                 ",",
                 ";",
                 "\"",
                 "\\",
                 "<",
                 "|"});
  }

  std::string words(std::size_t most) {
    std::string text;
    for (std::size_t n = below(most + 1); n > 0; --n) text += word();
    return text;
  }

  std::string path() {
    std::string text;
    for (std::size_t n = below(7); n > 0; --n) {
      text += '/';
      text += chance(50) ? pick({"", ".", "..", "...", ".a", "..b", "%2e%2e"})
                         : words(3);
    }
    return text.empty() || chance(30) ? text + "/" : text;
  }

  std::string query() {
    std::string text;
    for (std::size_t n = 1 + below(6); n > 0; --n) {
      if (!text.empty()) text += '&';
      if (chance(5)) continue;  // "&&"
      text += chance(50) ? pick({"Param", "Param-3", "param", "%50aram", "a"})
                         : words(2);
      if (chance(15)) continue;  // No '='.
      text += '=';
      text += words(3);
      if (chance(10)) text += '=';
    }
    if (chance(5)) text += pick({"%", "%4", "&"});
    return text;
  }

  std::string header_name() {
    std::string name =
        pick({"My-Header1", "My-Header2", "Content-Type", "Content-Length",
              "X-Amz-Target", "X-Amz-Meta-A", "X-Amz-Meta-A.b", "Range", "Etag",
              "Security", "Proxy"});
    for (char& c : name) {
      const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
      if (letter && chance(25)) c = static_cast<char>(c ^ 0x20);
    }
    return name;
  }

  std::string header_value() {
    std::string text;
    for (std::size_t n = below(8); n > 0; --n) {
      text += chance(40) ? pick({" ", "  ", "\t", "\r\n ", "\n\t", "\n  \t "})
                         : word();
    }
    return text;
  }

  std::vector<std::pair<std::string, std::string>> headers(
      bool unsigned_payload) {
    std::vector<std::pair<std::string, std::string>> list;
    for (std::size_t n = below(8); n > 0; --n) {
      list.emplace_back(header_name(), header_value());
      while (chance(15)) list.emplace_back(list.back().first, header_value());
    }
    const auto place = [&] {
      return list.begin() + static_cast<std::ptrdiff_t>(below(list.size() + 1));
    };
    list.insert(place(), {"Host", "example.amazonaws.com"});
    if (unsigned_payload) {
      list.insert(place(), {"X-Amz-Content-SHA256", "UNSIGNED-PAYLOAD"});
    }
    return list;
  }

  sigv4::Credentials credentials() {
    std::string secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    if (chance(10)) secret = std::string(below(90), 'k');  // Over a block too.
    std::string token;
    if (chance(30)) token = "IQoJb3Jp//" + std::string(below(200), 'T') + "==";
    return {"AKID" + std::to_string(below(1000)), secret, token};
  }

  std::mt19937_64 random_;
};

std::string quoted_json(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    out += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    out += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

std::string json(const Sample& s) {
  std::string headers;
  for (const auto& [name, value] : s.headers) {
    if (!headers.empty()) headers += ",";
    headers += "[" + quoted_json(name) + "," + quoted_json(value) + "]";
  }
  const auto boolean = [](bool b) { return b ? "true" : "false"; };
  return "{\"method\":" + quoted_json(s.method) +
         ",\"path\":" + quoted_json(s.path) +
         ",\"query\":" + quoted_json(s.query) + ",\"headers\":[" + headers +
         "],\"body\":" + quoted_json(hex(s.body)) +
         ",\"access_key_id\":" + quoted_json(s.credentials.access_key_id) +
         ",\"secret_access_key\":" +
         quoted_json(s.credentials.secret_access_key) +
         ",\"session_token\":" + quoted_json(s.credentials.session_token) +
         ",\"region\":" + quoted_json(s.region) +
         ",\"service\":" + quoted_json(s.service) +
         ",\"unix_seconds\":" + std::to_string(s.unix_seconds) +
         ",\"escape_path\":true" +
         ",\"apply_checksum\":" + boolean(s.checksum_header) + "}";
}

sigv4::Signed sign(const Sample& s) {
  const std::string hash = s.unsigned_payload ? std::string("UNSIGNED-PAYLOAD")
                                              : sigv4::sha256_hex(s.body);
  sigv4::Request request = {s.method, s.path, s.query, {}, hash};
  for (const auto& [name, value] : s.headers) {
    request.headers.push_back({name, value});
  }
  if (s.checksum_header) {
    request.headers.push_back({"X-Amz-Content-Sha256", hash});
  }
  return sigv4::sign(request, s.credentials, {s.region, s.service},
                     s.unix_seconds);
}

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = fs::temp_directory_path() / "ddbmutex-XXXXXX";
    BOOST_TEST_REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryDirectory() { fs::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::vector<std::string> sign_with_smithy(const std::vector<Sample>& samples) {
  const TemporaryDirectory directory;
  const fs::path requests = directory.path() / "requests";
  const fs::path answers = directory.path() / "authorizations";
  {
    std::ofstream file(requests);
    for (const Sample& sample : samples) file << json(sample) << "\n";
    BOOST_TEST_REQUIRE(file.flush().good());
  }
  const fs::path script =
      fs::path(__FILE__).parent_path() / "smithy" / "sign.js";
  const std::string command = "node '" + script.string() + "' <'" +
                              requests.string() + "' >'" + answers.string() +
                              "'";
  BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0,
                     command << " failed; needs node, and npm ci in tests/");
  std::vector<std::string> lines;
  std::ifstream file(answers);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::uint64_t seed() {
  const char* given = std::getenv("DDBMUTEX_SEED");
  return given == nullptr ? 20150830 : std::strtoull(given, nullptr, 10);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sigv4_random)

BOOST_AUTO_TEST_CASE(ten_thousand_random_requests_are_signed_as_by_smithy) {
  BOOST_TEST_MESSAGE("DDBMUTEX_SEED=" << seed());
  Generator generator(seed());
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < kRequests; ++i) {
    samples.push_back(generator.sample());
  }
  const std::vector<std::string> expected = sign_with_smithy(samples);
  BOOST_TEST_REQUIRE(expected.size() == kRequests);
  std::size_t different = 0;
  for (std::size_t i = 0; i < kRequests; ++i) {
    const std::string ours = sign(samples[i]).authorization;
    if (ours == expected[i] || ++different > 3) continue;
    BOOST_ERROR("seed " << seed() << ", request " << i << "\n"
                        << json(samples[i]) << "\nhere:   " << ours
                        << "\nsmithy: " << expected[i]);
  }
  BOOST_TEST(different == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
