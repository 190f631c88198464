#include "sigv4.hpp"

#include <openssl/sha.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "text.hpp"
#include "utc.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
// Of a request of ours, and of what is signed of it.
constexpr std::size_t kUsualBytes = 1024;

using Digest = Hex::Digest;

template <class Bytes>
std::string_view text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// OpenSSL's plain functions, deprecated as they are: a context of EVP costs as
// much as hashing 400 bytes with it, and cannot be kept in an object.  They
// cannot fail.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

void update(SHA256_CTX& context, std::string_view bytes) {
  SHA256_Update(&context, bytes.data(), bytes.size());
}

Digest digest_of(SHA256_CTX& context) {
  Digest digest;
  SHA256_Final(digest.data(), &context);
  return digest;
}

SHA256_CTX new_context() {
  SHA256_CTX context;
  SHA256_Init(&context);
  return context;
}

#pragma GCC diagnostic pop

Digest sha256(Pieces pieces) {
  SHA256_CTX context = new_context();
  for (const std::string_view piece : pieces) sigv4::update(context, piece);
  const Digest digest = digest_of(context);
  explicit_bzero(&context, sizeof context);  // It may have been a secret.
  return digest;
}

// As AWS's signers do: "/a/.." is "/", "/a/b/.." is "/a" with no slash behind,
// and a ".." too many is dropped.
std::string normalized(std::string_view path) {
  const bool slash = !path.empty() && path.back() == '/';
  std::string out;
  while (!path.empty()) {
    const std::string_view segment = sigv4::cut(path, '/');
    if (segment == "..") {
      out.resize(std::min(out.rfind('/'), out.size()));
    } else if (!segment.empty() && segment != ".") {
      sigv4::append(out, {"/", segment});
    }
  }
  if (out.empty() || slash) out += '/';
  return out;
}

void append_path(std::string& out, std::string_view path, bool normalize) {
  if (path.empty()) path = "/";
  if (path == "/") {
    out += '/';
  } else {
    append_encoded(out, normalize ? sigv4::normalized(path) : path, '/');
  }
}

// -1 if it is not a hexadecimal digit.
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  const char letter = lower_case(c);
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

// Whatever was encoded in the query and however, the signature wants one
// spelling.  A '%' with no two digits behind it stands for itself.
std::string reencoded(std::string_view text) {
  std::string decoded, out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digits = text[i] == '%' && i + 2 < text.size() &&
                        hex_value(text[i + 1]) >= 0 &&
                        hex_value(text[i + 2]) >= 0;
    if (digits) {
      const int byte = 16 * hex_value(text[i + 1]) + hex_value(text[i + 2]);
      decoded += static_cast<char>(byte);
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
  std::vector<std::string> parameters;  // "name\nvalue": '\n' sorts first.
  while (!query.empty()) {
    std::string_view value = sigv4::cut(query, '&');
    if (value.empty()) continue;  // "a=1&&b=2", or a '&' at either end.
    const std::string name = reencoded(sigv4::cut(value, '='));
    std::string parameter = sigv4::join({name, "\n", reencoded(value)});
    parameters.insert(
        std::upper_bound(parameters.begin(), parameters.end(), parameter),
        std::move(parameter));
  }
  const char* between = "";
  for (std::string_view value : parameters) {
    const std::string_view name = sigv4::cut(value, '\n');
    sigv4::append(out, {std::exchange(between, "&"), name, "=", value});
  }
}

// By the lower case of their names.
bool before(const Header& a, const Header& b) {
  return std::lexicographical_compare(
      a.name.begin(), a.name.end(), b.name.begin(), b.name.end(),
      [](char x, char y) {
        return static_cast<unsigned char>(lower_case(x)) <
               static_cast<unsigned char>(lower_case(y));
      });
}

bool is_white(char c) {
  return c <= ' ' && (c == ' ' || c == '\t' || c == '\r' || c == '\n');
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

void append_lower(std::string& out, std::string_view name) {
  const std::size_t begin = out.size();
  out += name;
  for (char *c = &out[begin], *end = c + name.size(); c != end; ++c) {
    *c = lower_case(*c);
  }
}

// The list of names that a canonical request ends in, before the hash.
std::string_view names_in(std::string_view canonical_request) {
  const std::size_t end = canonical_request.rfind('\n');
  const std::size_t begin = canonical_request.rfind('\n', end - 1) + 1;
  return canonical_request.substr(begin, end - begin);
}

// Step 1.  The headers are sorted where they are.
void append_canonical(std::string& out, Request& request) {
  auto& headers = request.headers;
  for (std::size_t next = 1; next < headers.size(); ++next) {
    for (std::size_t i = next; i > 0 && before(headers[i], headers[i - 1]); --i)
      std::swap(headers[i], headers[i - 1]);
  }
  const auto is_new = [&](std::size_t i) {
    return i == 0 || before(headers[i - 1], headers[i]);
  };
  sigv4::append(out, {request.method, "\n"});
  append_path(out, request.path, request.normalize_path);
  out += '\n';
  append_query(out, request.query);
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (is_new(i)) {
      out += '\n';
      append_lower(out, headers[i].name);
    }
    out += is_new(i) ? ':' : ',';
    append_value(out, headers[i].value);
  }
  out += "\n\n";
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (!is_new(i)) continue;
    if (i > 0) out += ';';
    append_lower(out, headers[i].name);
  }
  sigv4::append(out, {"\n", request.payload_hash});
}

// Steps 2 and 3: has `use` make something of the pieces.
template <class Use>
auto to_sign(std::string_view amz_date, std::string_view scope,
             const Hex& canonical, const Use& use) {
  return use({kAlgorithm, "\n", amz_date, "\n", scope, "\n", canonical});
}

// Steps 2 to 4, of the hash of what step 1 makes.
Hex sign_canonical(const SigningKey& key, std::string_view amz_date,
                   std::string_view scope, const Hex& canonical) {
  return to_sign(amz_date, scope, canonical,
                 [&key](Pieces pieces) { return Hex(key.mac(pieces)); });
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

Hex::Hex(const Digest& digest) { sigv4::write_hex(digest, text_); }

Hex sha256_of(Pieces pieces) { return Hex(sigv4::sha256(pieces)); }

std::string sha256_hex(std::string_view bytes) {
  return std::string(sha256_of({bytes}));
}

std::string sha1_hex(std::string_view bytes) {
  Digest digest{};  // Of SHA-256: longer, and so a multiple of 16 bytes.
  SHA1(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
       digest.data());
  const Hex text(digest);
  return std::string(text, 0, 2 * SHA_DIGEST_LENGTH);
}

std::string canonical_request(Request request) {
  std::string text;
  append_canonical(text, request);
  return text;
}

std::string scope_text(std::string_view amz_date, const Scope& scope) {
  return sigv4::join({amz_date.substr(0, 8), "/", scope.region, "/",
                      scope.service, "/aws4_request"});
}

std::string string_to_sign(std::string_view amz_date, std::string_view scope,
                           std::string_view canonical_request) {
  return to_sign(amz_date, scope, sha256_of({canonical_request}),
                 [](Pieces pieces) { return sigv4::join(pieces); });
}

SigningKey::SigningKey() { set_key(""); }

SigningKey::SigningKey(std::string_view secret, std::string_view scope) {
  std::string seed;
  append_secret(seed, {"AWS4", secret});
  set_key(seed);
  sigv4::wipe(seed);
  for (bool more = true; more;) {
    more = scope.find('/') != scope.npos;
    Digest next = mac({sigv4::cut(scope, '/')});
    set_key(text_of(next));
    explicit_bzero(next.data(), next.size());
  }
}

SigningKey::~SigningKey() { explicit_bzero(states_, sizeof states_); }

// RFC 2104: the key, hashed if it is longer than a block, with zeros behind.
void SigningKey::set_key(std::string_view key) {
  static_assert(sizeof states_[0] >= sizeof(SHA256_CTX));
  Digest hashed;
  if (key.size() > SHA256_CBLOCK) {
    hashed = sigv4::sha256({key});
    key = text_of(hashed);
  }
  constexpr char kPads[] = {0x36, 0x5c};
  for (std::size_t i = 0; i < 2; ++i) {
    char block[SHA256_CBLOCK];
    std::fill_n(std::copy(key.begin(), key.end(), block),
                sizeof block - key.size(), '\0');
    for (char& byte : block) byte = static_cast<char>(byte ^ kPads[i]);
    wipe_registers();
    SHA256_CTX context = new_context();
    sigv4::update(context, {block, sizeof block});
    memcpy(states_[i], &context, sizeof context);
    explicit_bzero(&context, sizeof context);
    explicit_bzero(block, sizeof block);
  }
  explicit_bzero(hashed.data(), hashed.size());
}

Digest SigningKey::mac(Pieces message) const {
  SHA256_CTX context;
  memcpy(&context, states_[0], sizeof context);
  for (const std::string_view piece : message) sigv4::update(context, piece);
  const Digest inner = digest_of(context);
  memcpy(&context, states_[1], sizeof context);
  sigv4::update(context, text_of(inner));
  const Digest outer = digest_of(context);
  explicit_bzero(&context, sizeof context);
  return outer;
}

std::string signature(const SigningKey& key, std::string_view string_to_sign) {
  return std::string(Hex(key.mac({string_to_sign})));
}

Hex append_signed(Text& headers, const Post& post, const Credentials& keys,
                  std::string_view amz_date, std::string_view scope,
                  const SigningKey& key) {
  const std::string_view token = keys.session_token;
  const std::string_view token_name =
      token.empty() ? "" : ";x-amz-security-token";
  const std::string_view action_name =
      post.action.empty() ? "" : ";x-amz-target";
  const std::size_t begin = headers.size();
  headers.reserve(begin + kUsualBytes + token.size() + scope.size() +
                  keys.access_key_id.size() + post.action.size());
  headers += "content-type:";
  headers += post.type;
  const std::size_t host = headers.size();
  headers += "\nx-amz-date:";
  headers += amz_date;
  if (!token.empty()) headers += "\nx-amz-security-token:";
  headers += token;
  if (!post.action.empty()) {
    headers += "\nx-amz-target:";
    headers += post.api;
    headers += '.';
    headers += post.action;
  }
  headers += '\n';
  std::string path;
  append_path(path, post.path, true);
  const std::string_view all = headers;
  const Hex canonical = sha256_of(
      {"POST\n", path, "\n\n", all.substr(begin, host - begin),
       "\nhost:", post.host, all.substr(host), "\ncontent-type;host;x-amz-date",
       token_name, action_name, "\n", sha256_of({post.body})});
  const Hex signature = sign_canonical(key, amz_date, scope, canonical);
  headers += "authorization:AWS4-HMAC-SHA256 Credential=";
  headers += keys.access_key_id;
  headers += '/';
  headers += scope;
  headers += ", SignedHeaders=content-type;host;x-amz-date";
  headers += token_name;
  headers += action_name;
  headers += ", Signature=";
  headers += signature;
  headers += '\n';
  return signature;
}

Signed sign(Request request, const Credentials& credentials, const Scope& where,
            std::int64_t unix_seconds) {
  Signed result;
  result.amz_date = amz_date(unix_seconds);
  request.headers.push_back({"x-amz-date", result.amz_date});
  const std::string_view token = credentials.session_token;
  if (!token.empty())
    request.headers.push_back({"x-amz-security-token", token});
  const std::string scope = scope_text(result.amz_date, where);
  std::string text;
  reserve_secret(text, kUsualBytes + token.size());
  append_canonical(text, request);
  const SigningKey key(credentials.secret_access_key, scope);
  result.authorization = sigv4::join(
      {kAlgorithm, " Credential=", credentials.access_key_id, "/", scope,
       ", SignedHeaders=", names_in(text), ", Signature=",
       sign_canonical(key, result.amz_date, scope, sha256_of({text}))});
  sigv4::wipe(text);
  return result;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
