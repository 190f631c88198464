#include "from_container.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "from_json.hpp"
#include "from_services.hpp"
#include "http.hpp"
#include "secret_file.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

constexpr const char* kRelative = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
constexpr const char* kFull = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
constexpr const char* kTokenFile = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
constexpr const char* kToken = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
constexpr const char* kEcsAgent = "http://169.254.170.2";
constexpr std::size_t kMaxTokenBytes = 32 * 1024;
constexpr std::chrono::seconds kTime{2};  // For an attempt.

// --- Where it is -----------------------------------------------------------

// "[::1]:80" -> "::1", "localhost:80" -> "localhost".
std::string host_of(const Url& url) {
  const std::string& authority = url.authority;
  if (authority[0] == '[') return authority.substr(1, authority.find(']') - 1);
  return authority.substr(0, authority.find(':'));
}

// This machine, or where ECS and EKS have their agents.  parse_url() has put
// numbers of other forms ("127.1") into this one, and that is what is asked.
bool is_of_an_agent(const std::string& host) {
  if (strcasecmp(host.c_str(), "localhost") == 0) return true;
  in_addr ipv4;
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) {
    return ntohl(ipv4.s_addr) >> 24 == 127 || host == "169.254.170.2" ||
           host == "169.254.170.23";
  }
  in6_addr ipv6;
  if (inet_pton(AF_INET6, host.c_str(), &ipv6) != 1) return false;
  constexpr std::array<unsigned char, 16> kLoopback = {0, 0, 0, 0, 0, 0, 0, 0,
                                                       0, 0, 0, 0, 0, 0, 0, 1};
  constexpr std::array<unsigned char, 16> kEks = {
      0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x23};
  const auto is = [&](const std::array<unsigned char, 16>& bytes) {
    return std::equal(bytes.begin(), bytes.end(), ipv6.s6_addr);
  };
  return is(kLoopback) || is(kEks);
}

bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c <= '~'; });
}

void set_url(ContainerSettings& settings, const std::string& text) {
  const std::size_t mark = std::min(text.find('?'), text.size());
  const auto url = parse_url(text.substr(0, mark));
  const std::string query = text.substr(mark);
  if (!url || !is_visible(text) || query.find('#') != query.npos) {
    settings.error = settings.variable + " is no http or https URL";
    return;
  }
  if (url->scheme == "http" && !is_of_an_agent(host_of(*url))) {
    settings.error = settings.variable +
                     " is neither https, nor http of this machine or of an "
                     "address that AWS has set apart for agents";
    return;
  }
  settings.place = url->scheme + "://" + url->authority + url->path;
  settings.url = settings.place + query;
}

// --- What it is asked ------------------------------------------------------

struct Token {
  Secret text;
  std::string error;
  std::string warning;
};

Token token_of(const ContainerSettings& settings) {
  Token token;
  std::string source = kToken;
  if (settings.token_file.empty()) {
    token.text = settings.token;
  } else {
    const std::string name = in_quotes(settings.token_file);
    SecretFile file = read_secret_file(settings.token_file, kMaxTokenBytes);
    token.warning = file.warning;
    if (file.too_long) file.failure = "is longer than 32 KiB";
    if (file.failure.empty() && file.text.empty()) file.failure = "is empty";
    if (!file.failure.empty()) {
      token.error = std::string(kTokenFile) + ": " + name + " " + file.failure;
      return token;
    }
    token.text = std::move(file.text);
    source = std::string(kTokenFile) + ": " + name;
  }
  // libcurl would end the header there, and begin another.
  const std::string_view text = token.text;
  const auto is_fit = [](char c) {
    return (c >= ' ' && c <= '~') || c == '\t';
  };
  if (text.find_first_of("\r\n") != text.npos) {
    token.error = source + " has a line break in it";
  } else if (!std::all_of(text.begin(), text.end(), is_fit)) {
    token.error = source + " is not fit for a header";
  }
  return token;
}

HttpRequest request_of(const ContainerSettings& settings, const Secret& token) {
  HttpRequest request;
  request.url = settings.url;
  request.headers.push_back("Accept: application/json");
  if (token.empty()) return request;
  std::string line;
  line.reserve(32 + token.size());  // Leaves no copy by growing.
  line.append("Authorization: ").append(token.str());
  request.headers.push_back(std::move(line));
  return request;
}

Refusal refusal_of(HttpAnswer& http) {
  Refusal refusal;
  const auto body = parse_json(http.body);
  if (!body) return refusal;
  for (const char* name : {"code", "Code"}) {
    if (const auto code = body->text(name)) refusal.code = code->str();
  }
  for (const char* name : {"message", "Message"}) {
    if (const auto text = body->text(name)) refusal.message = text->str();
  }
  return refusal;
}

KeyOutcome keys_of(const ContainerSettings& settings,
                   const std::string& ca_file, const Fetch& fetch) {
  const std::string place = settings.variable;
  Token token = token_of(settings);
  if (!token.error.empty()) return broken_keys(token.error);

  KeyOutcome outcome;
  ServiceCall call;
  call.name = "the container's agent";
  call.url = settings.place;
  call.secrets = {token.text};
  call.time = kTime;
  call.request = [&](std::int64_t) { return request_of(settings, token.text); };
  call.accept = [&](HttpAnswer& http, std::int64_t now) -> std::string {
    const auto document = parse_json(http.body);
    if (!document) return "the answer is no JSON object";
    outcome = keys_in_document(*document, KeyForm(), "the answer", now);
    if (outcome.state != State::found) return outcome.reason;
    if (outcome.ends > BootClock::now()) return "";
    return "the time of the keys it gave is over already";
  };
  call.refusal = refusal_of;

  Services services;
  services.http.use_proxies = false;
  services.http.connect_timeout = kTime;
  services.http.ca_file = ca_file;
  const CallOutcome answer = call_service(services, call, fetch);
  if (!answer.done()) return without_keys(answer, place);
  outcome.source = "the container's agent (" + place + ")";
  if (!token.warning.empty()) outcome.warnings.push_back(token.warning);
  return outcome;
}

}  // namespace

ContainerSettings container_settings(const Environment& environment) {
  ContainerSettings settings;
  const auto relative = set_in(environment, kRelative);
  const auto full = set_in(environment, kFull);
  if (!relative && !full) return settings;
  settings.variable = relative ? kRelative : kFull;
  settings.token_file = set_in(environment, kTokenFile).value_or("");
  settings.token = Secret(set_in(environment, kToken).value_or(""));
  if (relative && relative->front() != '/') {
    settings.error = settings.variable + " does not begin with '/'";
  } else {
    set_url(settings, relative ? kEcsAgent + *relative : *full);
  }
  return settings;
}

KeySourcePtr container_keys(ContainerSettings settings, std::string ca_file) {
  return source_of([settings = std::move(settings),
                    ca_file = std::move(ca_file)](const Fetch& fetch) {
    if (settings.variable.empty()) {
      return no_keys(std::string("neither ") + kRelative + " nor " + kFull +
                     " is set");
    }
    if (!settings.error.empty()) return broken_keys(settings.error);
    return keys_of(settings, ca_file, fetch);
  });
}

KeySourcePtr container_keys(const Environment& environment,
                            std::string ca_file) {
  return container_keys(container_settings(environment), std::move(ca_file));
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
