// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Keys from the agent that Amazon ECS, EKS Pod Identity, Greengrass and others
// run beside a container.
//
// A URL and a token come from environment variables (from_hosts.hpp).  The
// token is sent unchanged as Authorization.  A token with a line break, even at
// the end of its file, is refused, as by AWS's SDKs.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "../text.hpp"
#include "../url.hpp"
#include "from_hosts.hpp"
#include "service_call.hpp"

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
constexpr std::chrono::seconds kAttemptTime{2};

// Whether the host is this machine, or one of the addresses of the agents of
// ECS and EKS.  `authority`: of a normal_url(), where "127.1" is "127.0.0.1".
bool is_of_an_agent(std::string_view authority) {
  const bool brackets = authority[0] == '[';  // "[::1]:80", "localhost:80"
  if (brackets) authority.remove_prefix(1);
  const std::string host(sigv4::cut(authority, brackets ? ']' : ':'));
  if (same_in_any_case(host, "localhost")) return true;
  in_addr ipv4;
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) {
    return ntohl(ipv4.s_addr) >> 24 == 127 || host == "169.254.170.2" ||
           host == "169.254.170.23";
  }
  in6_addr ipv6;
  char text[INET6_ADDRSTRLEN];  // Its shortest spelling.
  if (inet_pton(AF_INET6, host.c_str(), &ipv6) != 1) return false;
  const std::string_view address =
      inet_ntop(AF_INET6, &ipv6, text, sizeof text);
  return address == "::1" || address == "fd00:ec2::23";
}

// Sets the URL.  Returns what is wrong with it, for an error text that begins
// with the variable's name; empty if nothing is.
const char* set_url(ContainerSettings& settings, const std::string& text) {
  const std::size_t mark = std::min(text.find('?'), text.size());
  settings.place = normal_url(text.substr(0, mark));
  settings.query = text.substr(mark);
  if (settings.place.empty() || !sigv4::is_visible(text) ||
      settings.query.find('#') != text.npos) {
    return " is not an http or https URL";
  }
  const UrlParts url = parts_of(settings.place);
  if (url.scheme == "http" && !is_of_an_agent(url.authority)) {
    return " is not https, and its host is neither this machine nor an address "
           "that AWS reserves for agents";
  }
  return "";
}

// Why it cannot be sent; empty if it can.
const char* flaw_of_token(std::string_view token) {
  // libcurl would end the header at a line break, and begin another.
  if (token.find_first_of("\r\n") != token.npos) return "contains a line break";
  const bool fits = sigv4::consists_of(
      token, [](char c) { return (c >= ' ' && c <= '~') || c == '\t'; });
  return fits ? "" : "has a character that cannot be in a header";
}

// Reads the token, which may be empty.  Returns why it cannot be sent.
std::string read_token(const ContainerSettings& settings, Secret& token) {
  if (settings.token_file.empty()) {
    token = settings.token;
    return if_any(join({kToken, " "}), flaw_of_token(token));
  }
  // No warning if others may read the file: Kubernetes writes it like that.
  SecretFile file(settings.token_file, kMaxTokenBytes);
  token = std::move(file.text);
  if (file.too_long) file.failure = "is longer than 32 KiB";
  if (file.failure.empty()) {
    file.failure = token.empty() ? "is empty" : flaw_of_token(token);
  }
  return if_any(join({kTokenFile, ": ", in_quotes(settings.token_file), " "}),
                file.failure);
}

}  // namespace

ContainerSettings container_settings(const Environment& environment) {
  ContainerSettings settings;
  const std::string path = environment(kRelative);
  const bool relative = !path.empty();
  const std::string uri = relative ? path : environment(kFull);
  if (uri.empty()) return settings;
  settings.variable = relative ? kRelative : kFull;
  settings.token_file = environment(kTokenFile);
  settings.token = environment(kToken);
  const char* const flaw =
      relative && uri[0] != '/'
          ? " does not begin with '/'"
          : set_url(settings, relative ? kEcsAgent + uri : uri);
  if (*flaw != '\0') {
    settings.error =
        join({settings.variable, flaw, if_any(": ", quoted_url(uri))});
  }
  return settings;
}

KeyOutcome container_keys(const ContainerSettings& settings,
                          const Fetch& fetch) {
  if (settings.variable.empty()) {
    return no_keys({"neither ", kRelative, " nor ", kFull, " is set"});
  }
  if (!settings.error.empty()) return broken_keys({settings.error});
  Secret token;
  const std::string flaw = read_token(settings, token);
  if (!flaw.empty()) return broken_keys({flaw});
  ServiceCall call;
  call.name = "the container's agent";
  call.place = settings.variable;
  call.host = settings.place;
  call.path = settings.query;
  call.headers = "Accept: application/json\n";
  if (!token.empty()) {
    append_secret(call.headers, {"Authorization: ", token, "\n"});
  }
  call.secrets = {token};
  call.time = kAttemptTime;
  call.http.ca_file = settings.ca_file;
  call.http.use_proxies = false;
  call.http.connect_timeout = kAttemptTime;
  KeyOutcome outcome = call_service(
      call, fetch, [](const HttpAnswer& http, std::int64_t utc_now) {
        KeyOutcome keys = keys_in(parse_json(http.body), {}, KeyForm(),
                                  "the answer", utc_now);
        const bool expired =
            keys.state == State::found && keys.ends <= BootClock::now();
        return expired
                   ? broken_keys({"the keys that it gave have already expired"})
                   : keys;
      });
  if (outcome.state == State::found) {
    outcome.source = join({call.name, " (", settings.variable, ")"});
  }
  return outcome;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
