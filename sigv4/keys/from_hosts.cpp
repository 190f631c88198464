#ifndef DDBMUTEX_NO_HOSTS
#include "from_hosts.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "../endpoints.hpp"
#include "../http.hpp"
#include "../http_answer.hpp"
#include "../text.hpp"
#include "../url.hpp"
#include "from_json.hpp"
#include "from_services.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::string_view_literals::operator""sv;
using std::chrono::seconds;
using State = KeyOutcome::State;

namespace {

// --- The container's agent: where it is ------------------------------------

constexpr const char* kRelative = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
constexpr const char* kFull = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
constexpr const char* kTokenFile = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
constexpr const char* kToken = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
constexpr const char* kEcsAgent = "http://169.254.170.2";
constexpr std::size_t kMaxTokenBytes = 32 * 1024;
constexpr seconds kAgentsTime{2};  // For an attempt.

// This machine, or where ECS and EKS have their agents.  normal_url() has put
// numbers of other forms ("127.1") into this one, and that is what is asked.
bool is_of_an_agent(std::string host) {
  const bool brackets = host[0] == '[';  // "[::1]:80", "localhost:80"
  host.resize(std::min(host.find(brackets ? ']' : ':'), host.size()));
  if (brackets) host.erase(0, 1);
  if (same_in_any_case(host, "localhost")) return true;
  in_addr ipv4;
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) {
    return ntohl(ipv4.s_addr) >> 24 == 127 || host == "169.254.170.2" ||
           host == "169.254.170.23";
  }
  in6_addr ipv6, agent;
  if (inet_pton(AF_INET6, host.c_str(), &ipv6) != 1) return false;
  for (const char* address : {"::1", "fd00:ec2::23"}) {
    inet_pton(AF_INET6, address, &agent);
    if (memcmp(&ipv6, &agent, sizeof agent) == 0) return true;
  }
  return false;
}

// What may be told of a URL that is wrong: where it has a password, or may have
// one, nothing; where it has a query, what is before it.
std::string_view shown_of_url(const std::string& url) {
  if (url.find('@') != url.npos) return {};
  return std::string_view(url).substr(0, url.find('?'));
}

// Says what is wrong with it, behind its name; empty if nothing is.
const char* set_url(ContainerSettings& settings, const std::string& text) {
  const std::size_t mark = std::min(text.find('?'), text.size());
  settings.place = normal_url(text.substr(0, mark));
  settings.query = text.substr(mark);
  if (settings.place.empty() || !sigv4::is_visible(text) ||
      settings.query.find('#') != text.npos) {
    return " is not an http or https URL";
  }
  const UrlParts url = parts_of(settings.place);
  if (url.scheme == "http" && !is_of_an_agent(std::string(url.authority))) {
    return " is not https, and its host is neither this machine nor an address "
           "that AWS reserves for agents";
  }
  return "";
}

// --- The container's agent: what it is asked -------------------------------

// Why it cannot be sent; empty if it can.
const char* flaw_of_token(std::string_view token) {
  // libcurl would end the header at a line break, and begin another.
  if (token.find_first_of("\r\n") != token.npos) {
    return "contains a line break";
  }
  const auto is_fit = [](char c) {
    return (c >= ' ' && c <= '~') || c == '\t';
  };
  return sigv4::consists_of(token, is_fit)
             ? ""
             : "has a character that cannot be in a header";
}

// Why there is none; empty if there is, be it an empty one.
std::string read_token(const ContainerSettings& settings, Secret& token) {
  if (settings.token_file.empty()) {
    token = settings.token;
    const char* const flaw = flaw_of_token(token);
    return *flaw == '\0' ? "" : sigv4::format("%s %s", kToken, flaw);
  }
  // No warning if others may read the file: Kubernetes writes it like that.
  SecretFile file(settings.token_file, kMaxTokenBytes);
  token = std::move(file.text);
  if (file.too_long) file.failure = "is longer than 32 KiB";
  if (file.failure.empty()) {
    file.failure = token.empty() ? "is empty" : flaw_of_token(token);
  }
  return file.failure.empty()
             ? ""
             : sigv4::format("%s: %q %s", kTokenFile, settings.token_file,
                             file.failure);
}

KeyOutcome ask_host(ServiceCall& call, seconds to_connect, const Fetch& fetch) {
  call.http.use_proxies = false;
  call.http.connect_timeout = to_connect;
  return call_service(call, fetch);
}

void take_agents_keys(void*, const HttpAnswer& http, std::int64_t now,
                      KeyOutcome& outcome) {
  outcome = keys_in(parse_json(http.body), {}, KeyForm(), "the answer", now);
  if (outcome.state == State::found && outcome.ends <= BootClock::now()) {
    outcome = broken_keys("the keys that it gave have already expired");
  }
}

// --- The metadata service: settings ----------------------------------------

constexpr const char* kIpv6Endpoint = "http://[fd00:ec2::254]";
constexpr std::string_view kTokenPath = "/latest/api/token";
constexpr const char* kRolesPath =
    "/latest/meta-data/iam/security-credentials/";
constexpr std::string_view kRegionPath = "/latest/meta-data/placement/region";
constexpr int kTokenSeconds = 21600;  // The most there is.

// A number from 1 to `most`; 0 if it is none.
int whole_number(std::string_view text, int most) {
  int number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || number > most) return 0;
    number = number * 10 + (c - '0');
  }
  return number <= most ? number : 0;
}

// --- The metadata service: what it is asked --------------------------------

std::string_view first_line(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.substr(0, line.find_last_not_of(" \r") + 1);
}

constexpr const char* kName = "EC2 metadata service";

std::string place(const Instance& instance) {
  return sigv4::format("%s at %s: ", kName, instance.endpoint);
}

using Take = decltype(ServiceCall::take);

KeyOutcome ask(Instance& instance, Method method, std::string_view path,
               Take take, void* whose, const Fetch& fetch) {
  ServiceCall call;
  call.article = "the ";
  call.name = kName;
  call.host = instance.endpoint;
  call.path = path;
  call.attempts = instance.attempts;
  call.time = 2 * instance.timeout;
  call.method = method;
  if (method == Method::put) {
    sigv4::format_to(call.headers, "X-aws-ec2-metadata-token-ttl-seconds: %s\n",
                     kTokenSeconds);
  } else {
    append_secret(call.headers,
                  {"X-aws-ec2-metadata-token: "sv, instance.token, "\n"sv});
  }
  call.secrets = {instance.token};
  call.take = take;
  call.whose = whose;
  KeyOutcome outcome = ask_host(call, instance.timeout, fetch);
  instance.answered = instance.answered || outcome.state == State::found;
  return outcome;
}

void take_token(void* whose, const HttpAnswer& http, std::int64_t,
                KeyOutcome& outcome) {
  if (http.body.empty() || !sigv4::is_visible(http.body)) {
    outcome.reason = "it gave no token";
    return;
  }
  Instance& instance = *static_cast<Instance*>(whose);
  const int known = whole_number(
      http.header("x-aws-ec2-metadata-token-ttl-seconds"), kTokenSeconds);
  const seconds time(known != 0 ? known : kTokenSeconds);
  instance.token = http.body;
  instance.token_ends += time - time / 10;
}

// Afterwards, if found, the instance's token is what is to be sent.
KeyOutcome need_token(Instance& instance, const Fetch& fetch) {
  KeyOutcome outcome;
  outcome.state = State::found;
  const BootTime began = BootClock::now();
  if (began < instance.token_ends) return outcome;
  instance.token = Secret();
  instance.token_ends = began;
  outcome = sigv4::ask(instance, Method::put, kTokenPath, take_token, &instance,
                       fetch);
  if (outcome.state == State::broken && outcome.status != 0) {
    outcome.reason =
        sigv4::format("%sit does not give tokens of version 2 (HTTP status %s)",
                      place(instance), outcome.status);
    outcome.absent = true;
    outcome.status = 0;
  }
  return outcome;
}

// With a new token if the one that is kept is refused.  A role that was there
// may be on its way to another, and who has answered will do so again.
KeyOutcome get(Instance& instance, std::string_view path, Take take,
               void* whose, const Fetch& fetch) {
  KeyOutcome outcome;
  int refusals = 0;
  do {
    outcome = need_token(instance, fetch);
    if (outcome.state != State::found) break;
    outcome = sigv4::ask(instance, Method::get, path, take, whose, fetch);
    if (outcome.status != 401) break;
    instance.token_ends = BootTime::min();
  } while (++refusals < 2);
  if (outcome.state == State::found) return outcome;
  if (refusals == 2) {
    outcome.state = State::failed;
    outcome.reason =
        place(instance) + "it refuses its own token (HTTP status 401)";
  } else if (outcome.absent && !instance.answered) {
    outcome.state = State::none;
  } else if (outcome.absent || instance.had_keys) {
    outcome.state = State::failed;
  }
  return outcome;
}

// Why it is not asked at all; found if it may be.
KeyOutcome unfit(const Instance& instance) {
  if (instance.disabled) {
    return no_keys("%s: AWS_EC2_METADATA_DISABLED is true", kName);
  }
  if (!instance.error.empty()) return broken_keys("%s", instance.error);
  KeyOutcome outcome;
  outcome.state = State::found;
  return outcome;
}

}  // namespace

ContainerSettings container_settings(const Environment& environment) {
  ContainerSettings settings;
  std::string uri = environment(kRelative);
  const bool relative = !uri.empty();
  if (!relative) uri = environment(kFull);
  if (uri.empty()) return settings;
  settings.variable = relative ? kRelative : kFull;
  settings.token_file = environment(kTokenFile);
  settings.token = environment(kToken);
  const std::string said = uri;
  const char* flaw = " does not begin with '/'";
  if (!relative || uri[0] == '/') {
    if (relative) uri.insert(0, kEcsAgent);
    flaw = set_url(settings, uri);
  }
  if (*flaw != '\0') {
    settings.error = sigv4::format("%s%s%[: %q%]", settings.variable, flaw,
                                   shown_of_url(said));
  }
  return settings;
}

KeyOutcome container_keys(const ContainerSettings& settings,
                          const Fetch& fetch) {
  if (settings.variable.empty()) {
    return no_keys("neither %s nor %s is set", kRelative, kFull);
  }
  if (!settings.error.empty()) return broken_keys("%s", settings.error);
  Secret token;
  const std::string flaw = read_token(settings, token);
  if (!flaw.empty()) return broken_keys("%s", flaw);
  ServiceCall call;
  call.name = "the container's agent";
  call.place = settings.variable;
  call.host = settings.place;
  call.path = settings.query;
  call.time = kAgentsTime;
  call.http.ca_file = settings.ca_file;
  const bool has_token = !token.empty();
  append_secret(call.headers, {"Accept: application/json\n"sv,
                               has_token ? "Authorization: "sv : ""sv, token,
                               has_token ? "\n"sv : ""sv});
  call.secrets = {token};
  call.take = take_agents_keys;
  KeyOutcome outcome = ask_host(call, kAgentsTime, fetch);
  if (outcome.state != State::found) return outcome;
  outcome.source =
      sigv4::format("the container's agent (%s)", settings.variable);
  return outcome;
}

void read_instance_settings(const Environment& environment,
                            const Profile& profile, Instance& instance) {
  const auto setting = [&](const char* variable, const char* property) {
    return find_setting(environment, {variable}, profile, property);
  };
  std::string& error = instance.error;
  // If nobody has said, it is 0.
  const auto number = [&](const Setting& said, int most) {
    const int found = whole_number(said.value, most);
    if (said && found == 0) {
      error = sigv4::format("%s is not a whole number from 1 to %s: %q",
                            said.source, most, said.value);
    }
    return found;
  };
  instance.disabled = instance_is_disabled(environment);
  const int timeout = number(
      setting("AWS_METADATA_SERVICE_TIMEOUT", "metadata_service_timeout"), 600);
  if (timeout != 0) instance.timeout = seconds(timeout);
  const int attempts = number(setting("AWS_METADATA_SERVICE_NUM_ATTEMPTS",
                                      "metadata_service_num_attempts"),
                              100);
  if (attempts != 0) instance.attempts = attempts;
  const Setting mode = setting("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
                               "ec2_metadata_service_endpoint_mode");
  if (mode.says("ipv6")) {
    instance.endpoint = kIpv6Endpoint;
  } else if (mode && !mode.says("ipv4")) {
    error = sigv4::format("%s is neither IPv4 nor IPv6: %q", mode.source,
                          mode.value);
  }
  const Setting endpoint = setting("AWS_EC2_METADATA_SERVICE_ENDPOINT",
                                   "ec2_metadata_service_endpoint");
  if (!endpoint) return;
  instance.endpoint = endpoint.value;
  if (normal_url(instance.endpoint).empty()) {
    error = sigv4::format("%s is not an http or https URL%[: %q%]",
                          endpoint.source, shown_of_url(endpoint.value));
    return;
  }
  while (instance.endpoint.back() == '/') instance.endpoint.pop_back();
}

KeyOutcome instance_keys(Instance& instance, const Fetch& fetch) {
  KeyOutcome outcome = unfit(instance);
  if (outcome.state != State::found) return outcome;
  std::string role;
  const Take take_role = [](void* whose, const HttpAnswer& http, std::int64_t,
                            KeyOutcome& taken) {
    const std::string_view name = sigv4::first_line(http.body);
    *static_cast<std::string*>(whose) = name;
    // As IAM names them: nothing that a URL's path would have to encode.
    const bool fit =
        name.size() <= 64 && sigv4::is_alphanumeric(name, "_+=,.@-");
    if (!fit) taken.reason = "its answer is not the name of a role";
  };
  outcome = sigv4::get(instance, kRolesPath, take_role, &role, fetch);
  if (outcome.status == 404 ||
      (outcome.state == State::found && role.empty())) {
    return sigv4::not_found(instance.had_keys ? State::failed : State::none,
                            "%sthe instance has no role", place(instance));
  }
  if (outcome.state != State::found) return outcome;
  const Take take_keys = [](void* whose, const HttpAnswer& http,
                            std::int64_t now, KeyOutcome& taken) {
    const auto& own = *static_cast<const std::string*>(whose);
    const Document document = parse_json(http.body);
    const auto code = document.root()["Code"].text().value_or("Success");
    taken = code == "Success"
                ? keys_in(document, {}, KeyForm(),
                          sigv4::format("%s (role %s)", kName, own), now)
                : broken_keys("no keys of role %s: Code %q", own, code);
  };
  outcome = sigv4::get(instance, kRolesPath + role, take_keys, &role, fetch);
  // The instance has another role by now.
  if (outcome.status == 404) outcome.state = State::failed;
  if (outcome.state != State::found) return outcome;
  instance.had_keys = true;
  if (outcome.ends <= BootClock::now()) {
    outcome.warnings +=
        "the keys from the EC2 metadata service have expired; they are used "
        "anyway\n";
  }
  return outcome;
}

KeyOutcome instance_region(Instance& instance, const Fetch& fetch) {
  const Take take = [](void*, const HttpAnswer& http, std::int64_t,
                       KeyOutcome& taken) {
    const std::string_view region = sigv4::first_line(http.body);
    if (is_host_label(region)) {
      taken.region = region;
    } else {
      taken.reason = "its answer is not a region";
    }
  };
  KeyOutcome found = unfit(instance);
  if (found.state == State::found) {
    found = sigv4::get(instance, kRegionPath, take, nullptr, fetch);
  }
  if (found.state == State::found) return found;
  // Without a region there is nothing else to look for.
  if (found.state == State::none) found.state = State::broken;
  found.lacks_region = true;
  return found;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
