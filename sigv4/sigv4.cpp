// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Every request is signed here.  The steps of the specification are functions
// in the specification's order, and sign() puts them together.
#include "sigv4.hpp"

#include <string.h>

#include <algorithm>
#include <utility>

#include "utc.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
// The usual sizes of a canonical request, and of the names of its headers.
constexpr std::size_t kUsualBytes = 1024, kUsualNameBytes = 128;

// --- Hashes ------------------------------------------------------------------

// OpenSSL calls these functions deprecated.  Those that replace them (EVP_*)
// fetch, allocate and free a context for each hash.  That would cost 26,000 of
// the 250,000 instructions of a lock and unlock.  These depend on no
// configuration of OpenSSL, and always return 1.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

void begin(SHA256_CTX& hash) { SHA256_Init(&hash); }

void update(SHA256_CTX& hash, std::string_view bytes) {
  SHA256_Update(&hash, bytes.data(), bytes.size());
}

void update(SHA256_CTX& hash, const Digest& digest) {
  SHA256_Update(&hash, digest.data(), digest.size());
}

Digest digest_of(SHA256_CTX& hash) {
  Digest digest;
  SHA256_Final(digest.data(), &hash);
  explicit_bzero(&hash, sizeof hash);  // It may have been a secret.
  return digest;
}

#pragma GCC diagnostic pop

// Begins one of the two hashes of HMAC (RFC 2104).  `key`: one block.
void begin_with_key(SHA256_CTX& hash, const char* key, char pad) {
  char block[SHA256_CBLOCK];
  for (std::size_t i = 0; i < sizeof block; ++i) {
    block[i] = static_cast<char>(key[i] ^ pad);
  }
  sigv4::begin(hash);
  sigv4::update(hash, {block, sizeof block});
  explicit_bzero(block, sizeof block);
}

// --- The parts of a canonical request ----------------------------------------

// The same result as AWS's signers: "/a/.." is "/", "/a/b/.." is "/a" without a
// slash at the end, and one ".." too many is dropped.
std::string normalized(std::string_view path) {
  const bool slash = !path.empty() && path.back() == '/';
  std::string out;
  while (!path.empty()) {
    const std::string_view segment = sigv4::cut(path, '/');
    if (segment == "..") {
      if (!out.empty()) out.resize(out.rfind('/'));
    } else if (!segment.empty() && segment != ".") {
      sigv4::append(out, {"/", segment});
    }
  }
  if (out.empty() || slash) out += '/';
  return out;
}

std::string canonical_path(std::string_view path) {
  if (path.empty() || path == "/") return "/";
  std::string out;
  append_encoded(out, sigv4::normalized(path), '/');
  return out;
}

bool is_named_before(const Header& a, const Header& b) {
  const std::size_t size = std::min(a.name.size(), b.name.size());
  for (std::size_t i = 0; i < size; ++i) {
    const auto x = static_cast<unsigned char>(lower_case(a.name[i]));
    const auto y = static_cast<unsigned char>(lower_case(b.name[i]));
    if (x != y) return x < y;
  }
  return a.name.size() < b.name.size();
}

// Headers of the same name stay in their order.
void sort_by_name(std::vector<Header>& headers) {
  for (std::size_t next = 1; next < headers.size(); ++next) {
    for (std::size_t i = next;
         i > 0 && is_named_before(headers[i], headers[i - 1]); --i) {
      std::swap(headers[i], headers[i - 1]);
    }
  }
}

// Removes white space at both ends, and writes one blank for each run of it
// inside, even between quotation marks.
void append_value(Text& out, std::string_view value) {
  for (value = trimmed(value); !value.empty();) {
    std::size_t size = 0;
    while (size < value.size() && !is_white_space(value[size])) ++size;
    out += value.substr(0, size);
    value = trimmed(value.substr(size));
    if (!value.empty()) out += ' ';
  }
}

// Whether headers[i] has another name than the one before.
bool is_new(const std::vector<Header>& headers, std::size_t i) {
  return i == 0 || !same_in_any_case(headers[i - 1].name, headers[i].name);
}

// "content-type;host;x-amz-date".  REQUIRES: the headers are sorted.
std::string signed_names(const std::vector<Header>& headers) {
  std::string names;
  names.reserve(kUsualNameBytes);
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (!is_new(headers, i)) continue;
    if (i > 0) names += ';';
    names += headers[i].name;
  }
  std::transform(names.begin(), names.end(), names.begin(), lower_case);
  return names;
}

// A line for each name.  `names`: the result of signed_names().  REQUIRES: the
// headers are sorted.
void append_lines(Text& out, const std::vector<Header>& headers,
                  std::string_view names) {
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (is_new(headers, i)) {
      if (i > 0) out += '\n';
      out += sigv4::cut(names, ';');
      out += ':';
    } else {
      out += ',';
    }
    append_value(out, headers[i].value);
  }
  if (!headers.empty()) out += '\n';
}

// Step 1, with the headers sorted and their names listed.
Text canonical_text(const Request& request, const std::vector<Header>& headers,
                    std::string_view names) {
  Text text(kUsualBytes);
  text += request.method;
  text += '\n';
  text += canonical_path(request.path);
  text += "\n\n";  // The second one ends a query without parameters.
  append_lines(text, headers, names);
  text += '\n';
  text += names;
  text += '\n';
  text += request.payload_hash;
  return text;
}

}  // namespace

void append_encoded(std::string& out, std::string_view text, char unencoded) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_' ||
        c == '~' || c == unencoded) {
      out += c;
    } else {
      const char encoded[] = {'%', kDigits[byte >> 4], kDigits[byte & 15]};
      out.append(encoded, sizeof encoded);
    }
  }
}

Digest sha256(std::string_view bytes) {
  SHA256_CTX hash;
  sigv4::begin(hash);
  sigv4::update(hash, bytes);
  return digest_of(hash);
}

std::string sha256_hex(std::string_view bytes) {
  return std::string(HexDigest(sigv4::sha256(bytes)));
}

// --- The steps ---------------------------------------------------------------

Text canonical_request(const Request& request) {
  std::vector<Header> headers = request.headers;
  sort_by_name(headers);
  return canonical_text(request, headers, signed_names(headers));
}

std::string scope_text(std::string_view amz_date, const Scope& scope) {
  return sigv4::join({amz_date.substr(0, 8), "/", scope.region, "/",
                      scope.service, "/aws4_request"});
}

std::string string_to_sign(std::string_view amz_date, std::string_view scope,
                           std::string_view canonical_request) {
  return sigv4::join({kAlgorithm, "\n", amz_date, "\n", scope, "\n",
                      HexDigest(sigv4::sha256(canonical_request))});
}

SigningKey::SigningKey(std::string_view secret, std::string scope)
    : scope_(std::move(scope)) {
  std::string key;
  reserve_secret(key, sizeof(Digest));
  append_secret(key, {"AWS4", secret});
  set_key(key);
  for (std::string_view parts = scope_; !parts.empty();) {
    Digest next = mac(sigv4::cut(parts, '/'));
    key.resize(next.size());  // assign() would make another copy.
    std::copy(next.begin(), next.end(), key.begin());
    explicit_bzero(next.data(), next.size());
    set_key(key);
  }
  sigv4::wipe(key);
}

SigningKey::~SigningKey() {
  explicit_bzero(&inner_, sizeof inner_);
  explicit_bzero(&outer_, sizeof outer_);
}

// HMAC fills up the key to a block with zeros, and hashes it first if it is
// longer.
void SigningKey::set_key(std::string_view key) {
  char block[SHA256_CBLOCK] = {};
  if (key.size() > sizeof block) {
    Digest digest = sigv4::sha256(key);
    std::copy(digest.begin(), digest.end(), block);
    explicit_bzero(digest.data(), digest.size());
  } else {
    std::copy(key.begin(), key.end(), block);
  }
  begin_with_key(inner_, block, 0x36);
  begin_with_key(outer_, block, 0x5c);
  explicit_bzero(block, sizeof block);
}

Digest SigningKey::mac(std::string_view text) const {
  SHA256_CTX inner = inner_, outer = outer_;
  sigv4::update(inner, text);
  sigv4::update(outer, digest_of(inner));
  return digest_of(outer);
}

HexDigest signature(const SigningKey& key, std::string_view string_to_sign) {
  return HexDigest(key.mac(string_to_sign));
}

Signed sign(const Request& request, const Credentials& credentials,
            const Scope& where, std::int64_t unix_seconds) {
  const std::string date = amz_date(unix_seconds);
  const SigningKey key(credentials.secret_access_key, scope_text(date, where));
  return sign(request, credentials, key, date);
}

Signed sign(const Request& request, const Credentials& credentials,
            const SigningKey& key, std::string amz_date) {
  constexpr std::size_t kAdded = 2;  // The date and the token.
  std::vector<Header> headers;
  headers.reserve(request.headers.size() + kAdded);
  for (const Header& header : request.headers) headers.push_back(header);
  headers.push_back({"x-amz-date", amz_date});
  const std::string_view token = credentials.session_token;
  if (!token.empty()) headers.push_back({"x-amz-security-token", token});
  sort_by_name(headers);
  const std::string names = signed_names(headers);
  const HexDigest made =
      signature(key, string_to_sign(amz_date, key.scope(),
                                    canonical_text(request, headers, names)));
  return {std::move(amz_date),
          sigv4::join({kAlgorithm, " Credential=", credentials.access_key_id,
                       "/", key.scope(), ", SignedHeaders=", names,
                       ", Signature=", made})};
}

void append_headers(Text& lines, const Request& request,
                    const Credentials& credentials, const Signed& signature) {
  const auto append = [&lines](std::string_view name, std::string_view value) {
    lines += name;
    lines += ':';
    lines += value;
    lines += '\n';
  };
  for (const Header& header : request.headers) {
    if (header.name != "host") append(header.name, header.value);
  }
  append("x-amz-date", signature.amz_date);
  if (!credentials.session_token.empty()) {
    append("x-amz-security-token", credentials.session_token);
  }
  append("authorization", signature.authorization);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
