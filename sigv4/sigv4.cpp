#include "sigv4.hpp"

#include <openssl/evp.h>
#include <string.h>
#include <strings.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "text.hpp"
#include "utc.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::string_view kTerminator = "aws4_request";

using Digest = std::array<unsigned char, 32>;

template <class Bytes>
std::string_view text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A digest over memory fails only when OpenSSL cannot allocate or has no
// provider at all.  No caller could do anything but stop.
void require(bool success) {
  if (success) return;
  std::fputs("ddbmutex: OpenSSL cannot make a digest\n", stderr);
  std::abort();
}

// Making a context costs about as much as hashing 100 bytes with it, so one is
// kept between uses for whoever comes next.  It has no destructor and belongs
// to no thread.
std::atomic<EVP_MD_CTX*> spare_context{nullptr};

// Of the two parts put together.  What the context holds of a `secret` is wiped
// with it.
Digest sha256(std::string_view first, std::string_view second = {},
              bool secret = false) {
  // Fetched once and kept to the end of the process, so that signatures may
  // still be made while static objects are destroyed.
  static const EVP_MD* const method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  EVP_MD_CTX* context = spare_context.exchange(nullptr);
  if (context == nullptr) context = EVP_MD_CTX_new();
  Digest result;
  require(method != nullptr && context != nullptr &&
          EVP_DigestInit_ex(context, method, nullptr) == 1 &&
          EVP_DigestUpdate(context, first.data(), first.size()) == 1 &&
          EVP_DigestUpdate(context, second.data(), second.size()) == 1 &&
          EVP_DigestFinal_ex(context, result.data(), nullptr) == 1);
  if (!secret) context = spare_context.exchange(context);
  EVP_MD_CTX_free(context);
  return result;
}

// Lower-case hexadecimal.
std::string hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(2 * bytes.size(), '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text[2 * i] = kDigits[byte >> 4];
    text[2 * i + 1] = kDigits[byte & 15];
  }
  return text;
}

// As AWS's signers do: "/a/.." is "/", "/a/b/.." is "/a" with no slash behind,
// and a ".." too many is dropped.
std::string normalized(std::string_view path) {
  const bool slash = !path.empty() && path.back() == '/';
  std::string out;
  while (!path.empty()) {
    const std::string_view segment = cut(path, '/');
    if (segment == "..") {
      out.resize(std::min(out.rfind('/'), out.size()));
    } else if (!segment.empty() && segment != ".") {
      append(out, {"/", segment});
    }
  }
  if (out.empty() || slash) out += '/';
  return out;
}

// Whatever was encoded in the query and however, the signature wants one
// spelling.  A '%' with no two digits behind it stands for itself.
std::string reencoded(std::string_view text) {
  const auto is_digit = [&](std::size_t at) {
    return std::isxdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  std::string decoded, out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && is_digit(i + 1) &&
        is_digit(i + 2)) {
      const char digits[] = {text[i + 1], text[i + 2], '\0'};
      decoded += static_cast<char>(std::strtoul(digits, nullptr, 16));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  append_encoded(out, decoded);
  return out;
}

// Sorted by encoded name, then by encoded value.
void append_query(std::string& out, std::string_view query) {
  std::multiset<std::string> parameters;  // "name\nvalue": '\n' sorts first.
  while (!query.empty()) {
    std::string_view value = cut(query, '&');
    if (value.empty()) continue;  // "a=1&&b=2", or a '&' at either end.
    const std::string name = reencoded(cut(value, '='));
    parameters.insert(join({name, "\n", reencoded(value)}));
  }
  const char* between = "";
  for (std::string_view value : parameters) {
    const std::string_view name = cut(value, '\n');
    append(out, {std::exchange(between, "&"), name, "=", value});
  }
}

// By the lower case of their names.
bool before(const Header& a, const Header& b) {
  const int order = strncasecmp(a.name.data(), b.name.data(),
                                std::min(a.name.size(), b.name.size()));
  return order != 0 ? order < 0 : a.name.size() < b.name.size();
}

bool is_white(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// No blanks at the ends and single ones inside, within quotation marks too.
void append_value(std::string& out, std::string_view value) {
  const char* between = "";
  for (std::size_t from = 0; from < value.size();) {
    std::size_t end = from;
    while (end < value.size() && !is_white(value[end])) ++end;
    if (end > from) {
      out += std::exchange(between, " ");
      out += value.substr(from, end - from);
    }
    from = end + 1;
  }
}

// One line for each name; the lower-case names also go to `names`.
void append_headers(std::string& out, std::string& names,
                    const std::vector<Header>& headers) {
  std::vector<Header> sorted;
  sorted.reserve(headers.size());
  for (const Header& header : headers) {
    sorted.insert(
        std::upper_bound(sorted.begin(), sorted.end(), header, before), header);
  }
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || before(sorted[i - 1], sorted[i])) {
      out += i > 0 ? "\n" : "";
      names += i > 0 ? ";" : "";
      const std::size_t begin = names.size();
      names += sorted[i].name;
      for (std::size_t at = begin; at < names.size(); ++at) {
        if (names[at] >= 'A' && names[at] <= 'Z') {
          names[at] = static_cast<char>(names[at] | 0x20);
        }
      }
      out.append(names, begin);
      out += ':';
    } else {
      out += ',';
    }
    append_value(out, sorted[i].value);
  }
  if (!sorted.empty()) out += '\n';
}

// The day is how a time in a signature begins.
std::string scope_text(std::string_view amz_date, const Scope& scope) {
  return join({amz_date.substr(0, 8), "/", scope.region, "/", scope.service,
               "/", kTerminator});
}

}  // namespace

void append_encoded(std::string& out, std::string_view text, char also) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const auto letter = static_cast<char>(c | 0x20);
    if ((letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9') ||
        c == '-' || c == '.' || c == '_' || c == '~' || c == also) {
      out += c;
    } else {
      const char encoded[] = {'%', kDigits[byte >> 4], kDigits[byte & 15]};
      out.append(encoded, sizeof encoded);
    }
  }
}

std::string sha256_hex(std::string_view bytes) {
  return hex(text_of(sha256(bytes)));
}

std::string sha1_hex(std::string_view bytes) {
  std::array<unsigned char, 20> digest;
  require(EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr,
                     EVP_sha1(), nullptr) == 1);
  return hex(text_of(digest));
}

std::string canonical_request(const Request& request, const Rules& rules,
                              std::string* signed_headers) {
  std::string names;
  std::string out = join({request.method, "\n"});
  out.reserve(1024);
  const std::string_view path = request.path.empty() ? "/" : request.path;
  append_encoded(out, rules.normalize_path ? normalized(path) : path, '/');
  out += '\n';
  append_query(out, request.query);
  out += '\n';
  append_headers(out, names, request.headers);
  append(out, {"\n", names, "\n", request.payload_hash});
  if (signed_headers != nullptr) *signed_headers = std::move(names);
  return out;
}

std::string string_to_sign(std::string_view amz_date, const Scope& scope,
                           std::string_view canonical_request) {
  return join({kAlgorithm, "\n", amz_date, "\n", scope_text(amz_date, scope),
               "\n", sha256_hex(canonical_request)});
}

SigningKey::SigningKey() { set_key(""); }

SigningKey::SigningKey(std::string_view secret, std::string_view day,
                       const Scope& scope) {
  std::string seed = join({"AWS4", secret});
  set_key(seed);
  wipe(seed);
  for (const std::string_view part :
       {day, scope.region, scope.service, kTerminator}) {
    Digest next = mac(part, true);
    set_key(text_of(next));
    explicit_bzero(next.data(), next.size());
  }
}

SigningKey::~SigningKey() { explicit_bzero(pads_, sizeof pads_); }

// RFC 2104: the key, hashed if it is longer than a block, with zeros behind.
void SigningKey::set_key(std::string_view key) {
  Digest hashed;
  if (key.size() > sizeof pads_[0]) {
    hashed = sha256(key, {}, true);
    key = text_of(hashed);
  }
  for (std::size_t i = 0; i < sizeof pads_[0]; ++i) {
    const int byte = i < key.size() ? static_cast<unsigned char>(key[i]) : 0;
    pads_[0][i] = static_cast<char>(byte ^ 0x36);
    pads_[1][i] = static_cast<char>(byte ^ 0x5c);
  }
  explicit_bzero(hashed.data(), hashed.size());
}

SigningKey::Digest SigningKey::mac(std::string_view message,
                                   bool secret) const {
  const Digest inner = sha256({pads_[0], sizeof pads_[0]}, message, secret);
  return sha256({pads_[1], sizeof pads_[1]}, text_of(inner), secret);
}

std::string signature(const SigningKey& key, std::string_view string_to_sign) {
  return hex(text_of(key.mac(string_to_sign, false)));
}

SigningKey SigningKeys::get(std::string_view secret, std::string_view day,
                            const Scope& scope) {
  Secret of(join({secret, "\n", scope_text(day, scope)}));
  const std::lock_guard<std::mutex> lock(mutex_);
  if (of_ != of) {
    key_ = SigningKey(secret, day, scope);
    of_ = std::move(of);
  }
  return key_;
}

Signed sign(const Request& request, const Credentials& credentials,
            const Scope& scope, std::int64_t unix_seconds, const Rules& rules,
            SigningKeys& keys) {
  Signed result;
  result.amz_date = amz_date(unix_seconds);
  Request whole = request;
  whole.headers.push_back({"x-amz-date", result.amz_date});
  const std::string_view token = credentials.session_token;
  if (!token.empty()) whole.headers.push_back({"x-amz-security-token", token});
  const std::string text =
      string_to_sign(result.amz_date, scope,
                     canonical_request(whole, rules, &result.signed_headers));
  const SigningKey key =
      keys.get(credentials.secret_access_key,
               std::string_view(result.amz_date).substr(0, 8), scope);
  result.authorization =
      join({kAlgorithm, " Credential=", credentials.access_key_id, "/",
            scope_text(result.amz_date, scope), ", SignedHeaders=",
            result.signed_headers, ", Signature=", signature(key, text)});
  return result;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
