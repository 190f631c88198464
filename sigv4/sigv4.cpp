#include "sigv4.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "utc.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::string_view kTerminator = "aws4_request";
constexpr std::string_view kDate = "x-amz-date";
constexpr std::string_view kToken = "x-amz-security-token";

using Digest = std::array<unsigned char, 32>;

std::string_view bytes_of(const unsigned char* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

std::string concat(std::initializer_list<std::string_view> parts) {
  std::size_t size = 0;
  for (const std::string_view part : parts) size += part.size();
  std::string out(size, '\0');
  char* next = out.data();
  for (const std::string_view part : parts) {
    next = std::copy(part.begin(), part.end(), next);
  }
  return out;
}

// SHA-256 over memory fails only when OpenSSL cannot allocate or has no
// provider at all.  No caller could do anything but stop.
void require(bool success, const char* call) {
  if (success) return;
  std::fprintf(stderr, "ddbmutex: OpenSSL's %s failed\n", call);
  std::abort();
}

// Fetched once and kept to the end of the process, so that signatures may
// still be made while static objects are destroyed.
const EVP_MD* sha256() {
  static const EVP_MD* const method = [] {
    const EVP_MD* fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    require(fetched != nullptr, "EVP_MD_fetch");
    return fetched;
  }();
  return method;
}

// Making a context costs about as much as hashing 100 bytes with it, so one is
// kept between uses for whoever comes next.  It has no destructor and belongs
// to no thread.
std::atomic<EVP_MD_CTX*> spare_context{nullptr};

}  // namespace

class Sha256 {
 public:
  enum Input {
    kPublic,
    kSecret,  // The context is wiped and freed: its state may be a key.
  };

  explicit Sha256(Input input = kPublic)
      : context_(spare_context.exchange(nullptr, std::memory_order_acquire)),
        input_(input) {
    if (context_ == nullptr) context_ = EVP_MD_CTX_new();
    require(context_ != nullptr, "EVP_MD_CTX_new");
  }

  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  ~Sha256() {
    EVP_MD_CTX* nothing = nullptr;
    if (input_ == kSecret || !spare_context.compare_exchange_strong(
                                 nothing, context_, std::memory_order_release,
                                 std::memory_order_relaxed)) {
      EVP_MD_CTX_free(context_);
    }
  }

  // Of the two parts put together.
  Digest digest(std::string_view first, std::string_view second = {}) {
    Digest result;
    const bool success =
        EVP_DigestInit_ex(context_, sha256(), nullptr) == 1 &&
        EVP_DigestUpdate(context_, first.data(), first.size()) == 1 &&
        (second.empty() ||
         EVP_DigestUpdate(context_, second.data(), second.size()) == 1) &&
        EVP_DigestFinal_ex(context_, result.data(), nullptr) == 1;
    require(success, "EVP_Digest");
    return result;
  }

 private:
  EVP_MD_CTX* context_;
  const Input input_;
};

namespace {

// The two hexadecimal digits of each byte.
constexpr std::array<char, 512> hex_pairs() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::array<char, 512> pairs{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    pairs[2 * byte] = kDigits[byte >> 4];
    pairs[2 * byte + 1] = kDigits[byte & 15];
  }
  return pairs;
}

// Lower-case hexadecimal.
struct Hex {
  explicit Hex(const Digest& digest) {
    static constexpr std::array<char, 512> kPairs = hex_pairs();
    for (std::size_t i = 0; i < digest.size(); ++i) {
      std::memcpy(digits + 2 * i, &kPairs[2 * std::size_t{digest[i]}], 2);
    }
  }
  operator std::string_view() const { return {digits, sizeof digits}; }

  char digits[2 * std::tuple_size<Digest>::value];
};

// RFC 3986, section 2.3.
constexpr bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
}

void append_encoded(std::string& out, char c) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  if (is_unreserved(c)) {
    out += c;
    return;
  }
  const auto byte = static_cast<unsigned char>(c);
  out += '%';
  out += kDigits[byte >> 4];
  out += kDigits[byte & 15];
}

void append_path_bytes(std::string& out, std::string_view path, bool encode) {
  if (!encode) {
    out += path;
    return;
  }
  for (const char c : path) {
    if (c == '/') {
      out += c;
    } else {
      append_encoded(out, c);
    }
  }
}

// As AWS's signers do: "/a/.." is "/", "/a/b/.." is "/a" with no slash behind,
// and a ".." too many is dropped.
void append_normalized_path(std::string& out, std::string_view path,
                            bool encode) {
  const std::size_t begin = out.size();
  for (std::size_t from = 0; from < path.size();) {
    const std::size_t end = std::min(path.find('/', from), path.size());
    const std::string_view segment = path.substr(from, end - from);
    from = end + 1;
    if (segment.empty() || segment == ".") continue;
    if (segment != "..") {
      out += '/';
      append_path_bytes(out, segment, encode);
    } else if (out.size() > begin) {
      out.resize(out.rfind('/'));
    }
  }
  if (out.size() == begin || path.back() == '/') out += '/';
}

void append_path(std::string& out, std::string_view path, const Rules& rules) {
  if (path.empty()) {
    out += '/';
  } else if (rules.normalize_path) {
    append_normalized_path(out, path, rules.encode_path);
  } else {
    append_path_bytes(out, path, rules.encode_path);
  }
}

// The value of a hexadecimal digit, -1 for any other character.
int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Whatever was encoded in the query and however, the signature wants one
// spelling.  A '%' with no two digits behind it stands for itself.  Returns
// what was appended; `out` must have room for it.
std::string_view append_reencoded(std::string& out, std::string_view text) {
  const std::size_t begin = out.size();
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%' && text.size() - i > 2) {
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high >= 0 && low >= 0) {
        c = static_cast<char>(high * 16 + low);
        i += 2;
      }
    }
    append_encoded(out, c);
  }
  return std::string_view(out).substr(begin);
}

// Name and value, encoded, as views into `storage`; sorted as written.
using Parameters = std::vector<std::pair<std::string_view, std::string_view>>;

Parameters sorted_parameters(std::string_view query, std::string& storage) {
  storage.reserve(3 * query.size());  // At most; so the views stay good.
  Parameters parameters;
  for (std::size_t from = 0; from < query.size();) {
    const std::size_t end = std::min(query.find('&', from), query.size());
    const std::string_view piece = query.substr(from, end - from);
    from = end + 1;
    if (piece.empty()) continue;  // "a=1&&b=2", or a '&' at either end.
    const std::size_t equals = std::min(piece.find('='), piece.size());
    const std::size_t value = std::min(equals + 1, piece.size());
    const auto name = append_reencoded(storage, piece.substr(0, equals));
    parameters.emplace_back(name,
                            append_reencoded(storage, piece.substr(value)));
  }
  std::sort(parameters.begin(), parameters.end());
  return parameters;
}

void append_query(std::string& out, std::string_view query) {
  if (query.empty()) return;
  std::string storage;
  bool first = true;
  for (const auto& [name, value] : sorted_parameters(query, storage)) {
    if (!first) out += '&';
    first = false;
    out += name;
    out += '=';
    out += value;
  }
}

constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

// Of names, by their lower case: negative, 0 or positive.
int compare_names(std::string_view a, std::string_view b) {
  const std::size_t size = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < size; ++i) {
    if (a[i] == b[i]) continue;
    const auto left = static_cast<unsigned char>(lower(a[i]));
    const auto right = static_cast<unsigned char>(lower(b[i]));
    if (left != right) return left < right ? -1 : 1;
  }
  return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && compare_names(a, b) == 0;
}

bool has_prefix(std::string_view name, std::string_view prefix) {
  return name.size() >= prefix.size() && lower(name[0]) == prefix[0] &&
         same_name(name.substr(0, prefix.size()), prefix);
}

// Whether a header is left out of every signature: those that proxies and HTTP
// libraries add, change or drop on the way.
bool is_never_signed(std::string_view name) {
  static constexpr std::string_view kNames[] = {"authorization",
                                                "cache-control",
                                                "connection",
                                                "expect",
                                                "from",
                                                "keep-alive",
                                                "max-forwards",
                                                "pragma",
                                                "referer",
                                                "te",
                                                "trailer",
                                                "user-agent",
                                                "upgrade",
                                                "x-amzn-trace-id",
                                                "transfer-encoding"};
  for (const std::string_view unsigned_name : kNames) {
    if (same_name(name, unsigned_name)) return true;
  }
  return has_prefix(name, "proxy-") || has_prefix(name, "sec-");
}

// The headers that sign() adds, in place of the caller's if he has them.
struct OwnHeaders {
  std::string_view amz_date;  // Either may be empty: nothing added.
  std::string_view token;
};

bool is_signed(std::string_view name, const Rules& rules,
               const OwnHeaders& own) {
  if (same_name(name, kDate)) return own.amz_date.empty();
  if (same_name(name, kToken)) {
    return rules.sign_session_token && own.token.empty();
  }
  return !is_never_signed(name);
}

struct Field {
  Header header;
  std::size_t position;  // Keeps repeated names in order.
};

// A list that needs no memory of its own while it is short.
class Fields {
 public:
  explicit Fields(std::size_t capacity) : begin_(few_) {
    if (capacity <= kFew) return;
    many_.resize(capacity);
    begin_ = many_.data();
  }
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  // REQUIRES: room for it.
  void push_back(const Header& header) {
    begin_[size_] = {header, size_};
    ++size_;
  }
  std::size_t size() const { return size_; }
  const Field& operator[](std::size_t i) const { return begin_[i]; }
  Field* begin() { return begin_; }
  Field* end() { return begin_ + size_; }

 private:
  static constexpr std::size_t kFew = 12;

  Field few_[kFew];
  std::vector<Field> many_;
  Field* begin_;
  std::size_t size_ = 0;
};

void sort_fields(Fields& fields, const std::vector<Header>& headers,
                 const Rules& rules, const OwnHeaders& own) {
  for (const Header& header : headers) {
    if (!is_signed(header.name, rules, own)) continue;
    fields.push_back(header);
  }
  if (!own.amz_date.empty()) fields.push_back({kDate, own.amz_date});
  if (!own.token.empty() && rules.sign_session_token) {
    fields.push_back({kToken, own.token});
  }
  std::sort(fields.begin(), fields.end(), [](const Field& a, const Field& b) {
    const int order = compare_names(a.header.name, b.header.name);
    return order != 0 ? order < 0 : a.position < b.position;
  });
}

constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// Where the word that begins at `from` ends.  Takes eight bytes at a time while
// none of them is below '!', as in a session token, which may be long.
std::size_t end_of_word(std::string_view value, std::size_t from) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  for (std::uint64_t eight; value.size() - from >= sizeof eight;
       from += sizeof eight) {
    std::memcpy(&eight, value.data() + from, sizeof eight);
    if (((eight - kOnes * '!') & ~eight & kOnes * 0x80) != 0) break;
  }
  while (from < value.size() && !is_blank(value[from])) ++from;
  return from;
}

// No blanks at the ends and single ones inside, within quotation marks too.
void append_value(std::string& out, std::string_view value) {
  bool first = true;
  for (std::size_t from = 0; from < value.size();) {
    const std::size_t end = end_of_word(value, from);
    if (end > from) {
      if (!first) out += ' ';
      first = false;
      out += value.substr(from, end - from);
    }
    from = end + 1;
  }
}

void append_lower(std::string& out, std::string_view name) {
  const std::size_t begin = out.size();
  out += name;
  char* const letters = &out[begin];
  for (std::size_t i = 0; i < name.size(); ++i) letters[i] = lower(letters[i]);
}

// One line for each name.
void append_headers(std::string& out, std::string& names,
                    const Fields& fields) {
  for (std::size_t i = 0; i < fields.size();) {
    if (i > 0) names += ';';
    const std::size_t begin = names.size();
    const std::string_view name = fields[i].header.name;
    append_lower(names, name);
    out.append(names, begin);
    char separator = ':';
    for (; i < fields.size() && same_name(fields[i].header.name, name); ++i) {
      out += separator;
      append_value(out, fields[i].header.value);
      separator = ',';
    }
    out += '\n';
  }
}

// `names` receives the list of signed headers.
std::string canonical_request(const Request& request, const Rules& rules,
                              const OwnHeaders& own, std::string& names) {
  Fields fields(request.headers.size() + 2);
  sort_fields(fields, request.headers, rules, own);
  std::size_t names_size = 0, values_size = 0;
  for (const Field& field : fields) {
    names_size += field.header.name.size() + 1;
    values_size += field.header.value.size() + 2;
  }
  names.reserve(names_size);
  std::string out;
  out.reserve(request.path.size() + request.query.size() + 2 * names_size +
              values_size + 128);
  out += request.method;
  out += '\n';
  append_path(out, request.path, rules);
  out += '\n';
  append_query(out, request.query);
  out += '\n';
  append_headers(out, names, fields);
  out += '\n';
  out += names;
  out += '\n';
  out += request.payload_hash;
  return out;
}

// The day is how a time in a signature begins.
std::string_view day_of(std::string_view amz_date) {
  return amz_date.substr(0, 8);
}

std::string authorization(const Credentials& credentials, const Scope& scope,
                          const Signed& parts, std::string_view signature) {
  return concat({kAlgorithm, " Credential=", credentials.access_key_id, "/",
                 day_of(parts.amz_date), "/", scope.region, "/", scope.service,
                 "/", kTerminator, ", SignedHeaders=", parts.signed_headers,
                 ", Signature=", signature});
}

}  // namespace

void append_encoded(std::string& out, std::string_view text) {
  for (const char c : text) append_encoded(out, c);
}

std::string sha256_hex(std::string_view bytes) {
  return std::string(Hex(Sha256().digest(bytes)));
}

std::string sha1_hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  require(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size,
                     EVP_sha1(), nullptr) == 1,
          "EVP_Digest");
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 0xF];
  }
  return text;
}

std::string canonical_request(const Request& request, const Rules& rules,
                              std::string* signed_headers) {
  std::string names;
  std::string out = canonical_request(request, rules, OwnHeaders{}, names);
  if (signed_headers != nullptr) *signed_headers = std::move(names);
  return out;
}

std::string string_to_sign(std::string_view amz_date, const Scope& scope,
                           std::string_view canonical_request) {
  const Hex hash(Sha256().digest(canonical_request));
  return concat({kAlgorithm, "\n", amz_date, "\n", day_of(amz_date), "/",
                 scope.region, "/", scope.service, "/", kTerminator, "\n",
                 hash});
}

SigningKey::SigningKey() {
  inner_pad_.fill(0x36);
  outer_pad_.fill(0x5c);
}

SigningKey::SigningKey(std::string_view secret, std::string_view day,
                       const Scope& scope) {
  Sha256 hash(Sha256::kSecret);
  std::string seed;
  seed.reserve(4 + secret.size());
  seed += "AWS4";
  seed += secret;
  set_key(hash, seed);
  wipe(seed);
  for (const std::string_view part :
       {day, scope.region, scope.service, kTerminator}) {
    Digest next = mac(hash, part);
    set_key(hash, bytes_of(next.data(), next.size()));
    OPENSSL_cleanse(next.data(), next.size());
  }
}

SigningKey::~SigningKey() {
  OPENSSL_cleanse(inner_pad_.data(), inner_pad_.size());
  OPENSSL_cleanse(outer_pad_.data(), outer_pad_.size());
}

// RFC 2104: the key, hashed if it is longer than a block, with zeros behind.
void SigningKey::set_key(Sha256& hash, std::string_view key) {
  Digest hashed;
  const bool is_long = key.size() > inner_pad_.size();
  if (is_long) {
    hashed = hash.digest(key);
    key = bytes_of(hashed.data(), hashed.size());
  }
  inner_pad_.fill(0x36);
  outer_pad_.fill(0x5c);
  for (std::size_t i = 0; i < key.size(); ++i) {
    const auto byte = static_cast<unsigned char>(key[i]);
    inner_pad_[i] = static_cast<unsigned char>(inner_pad_[i] ^ byte);
    outer_pad_[i] = static_cast<unsigned char>(outer_pad_[i] ^ byte);
  }
  if (is_long) OPENSSL_cleanse(hashed.data(), hashed.size());
}

std::array<unsigned char, 32> SigningKey::mac(Sha256& hash,
                                              std::string_view message) const {
  const Digest inner =
      hash.digest(bytes_of(inner_pad_.data(), inner_pad_.size()), message);
  return hash.digest(bytes_of(outer_pad_.data(), outer_pad_.size()),
                     bytes_of(inner.data(), inner.size()));
}

std::string signature(const SigningKey& key, std::string_view string_to_sign) {
  Sha256 hash;
  return std::string(Hex(key.mac(hash, string_to_sign)));
}

SigningKeys::~SigningKeys() {
  for (Entry& entry : entries_) wipe(entry.secret);
}

std::shared_ptr<const SigningKey> SigningKeys::get(std::string_view secret,
                                                   std::string_view day,
                                                   const Scope& scope) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++uses_;
  Entry* oldest = &entries_[0];
  for (Entry& entry : entries_) {
    if (entry.last_use != 0 && entry.secret == secret && entry.day == day &&
        entry.region == scope.region && entry.service == scope.service) {
      entry.last_use = uses_;
      return entry.key;
    }
    if (entry.last_use < oldest->last_use) oldest = &entry;
  }
  wipe(oldest->secret);
  oldest->secret = secret;
  oldest->day = day;
  oldest->region = scope.region;
  oldest->service = scope.service;
  oldest->key = std::make_shared<const SigningKey>(secret, day, scope);
  oldest->last_use = uses_;
  return oldest->key;
}

Signed sign(const Request& request, const Credentials& credentials,
            const Scope& scope, std::int64_t unix_seconds, const Rules& rules,
            SigningKeys& keys) {
  Signed result;
  result.amz_date = amz_date(unix_seconds);
  const std::string canonical = canonical_request(
      request, rules, {result.amz_date, credentials.session_token},
      result.signed_headers);
  const std::shared_ptr<const SigningKey> key =
      keys.get(credentials.secret_access_key, day_of(result.amz_date), scope);
  const std::string text = string_to_sign(result.amz_date, scope, canonical);
  Sha256 hash;
  result.authorization =
      authorization(credentials, scope, result, Hex(key->mac(hash, text)));
  return result;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
