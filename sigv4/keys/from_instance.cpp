// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Keys and region of an EC2 instance, from its metadata service (IMDS).
//
// Only version 2 of the service is used: a token is requested first, kept for
// as long as it is valid, and replaced when it is refused.  The service has a
// second to accept a connection, and another one to answer, because outside of
// EC2 there is nobody at its address.
//
// If nobody answers, the connection is refused, or there are no tokens, then
// this is no instance (`none`).  But after the service has answered or given
// keys, such failures are transient (`failed`): it will answer again, and its
// role may be being replaced.
#include <chrono>
#include <string>
#include <string_view>

#include "../endpoints.hpp"
#include "../text.hpp"
#include "../url.hpp"
#include "from_hosts.hpp"
#include "service_call.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::chrono::seconds;
using State = KeyOutcome::State;

namespace {

constexpr const char* kName = "EC2 metadata service";
constexpr const char* kIpv6Endpoint = "http://[fd00:ec2::254]";
constexpr const char* kTokenPath = "/latest/api/token";
constexpr const char* kRolesPath =
    "/latest/meta-data/iam/security-credentials/";
constexpr const char* kRegionPath = "/latest/meta-data/placement/region";
constexpr int kTokenSeconds = 21600;  // The longest that may be asked for.

// --- Requests ----------------------------------------------------------------

// A number from 1 to `most`; 0 for any other text.
int whole_number(std::string_view text, int most) {
  int number = 0;
  for (const char c : text) {
    if (!is_digit(c) || number > most) return 0;
    number = number * 10 + (c - '0');
  }
  return number <= most ? number : 0;
}

std::string_view first_line(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.substr(0, line.find_last_not_of(" \r") + 1);
}

// The beginning of an error text.
std::string place(const Instance& instance) {
  return join({kName, " at ", instance.endpoint, ": "});
}

KeyOutcome ask(Instance& instance, Method method, std::string_view path,
               const Fetch& fetch, ReadAnswer read) {
  ServiceCall call;
  call.article = "the ";
  call.name = kName;
  call.host = instance.endpoint;
  call.path = path;
  call.attempts = instance.attempts;
  call.time = 2 * instance.timeout;
  call.http.use_proxies = false;
  call.http.connect_timeout = instance.timeout;
  call.method = method;
  if (method == Method::put) {
    call.silence_hint =
        " (from a container, answers need the instance's "
        "HttpPutResponseHopLimit to be 2 or more)";
    call.headers =
        join({"X-aws-ec2-metadata-token-ttl-seconds: ", Digits(kTokenSeconds),
              "\n"});
  } else {
    append_secret(call.headers,
                  {"X-aws-ec2-metadata-token: ", instance.token, "\n"});
  }
  call.secrets = {instance.token};
  KeyOutcome outcome = call_service(call, fetch, read);
  instance.answered = instance.answered || outcome.state == State::found;
  return outcome;
}

// Takes the token that the service gave.
KeyOutcome take_token(Instance& instance, const HttpAnswer& http) {
  if (http.body.empty() || !sigv4::is_visible(http.body)) {
    return broken_keys({"it gave no token"});
  }
  const int known = whole_number(
      http.header("x-aws-ec2-metadata-token-ttl-seconds"), kTokenSeconds);
  const seconds time(known != 0 ? known : kTokenSeconds);
  instance.token = http.body;
  instance.token_ends += time - time / 10;
  return success();
}

// Makes sure that instance.token is valid.  The outcome is `found` if it is.
KeyOutcome need_token(Instance& instance, const Fetch& fetch) {
  const BootTime began = BootClock::now();
  if (began < instance.token_ends) return success();
  instance.token = Secret();
  instance.token_ends = began;
  KeyOutcome outcome = ask(instance, Method::put, kTokenPath, fetch,
                           [&](const HttpAnswer& http, std::int64_t) {
                             return take_token(instance, http);
                           });
  if (outcome.state == State::broken && outcome.status != 0) {
    outcome.reason = join({place(instance),
                           "it does not give tokens of version 2 (HTTP status ",
                           Digits(outcome.status), ")"});
    outcome.absent = true;
    outcome.status = 0;
  }
  return outcome;
}

// Gets the document at `path`, and returns what `read` makes of it.
KeyOutcome get(Instance& instance, std::string_view path, const Fetch& fetch,
               ReadAnswer read) {
  KeyOutcome outcome;
  int refused_tokens = 0;
  while (refused_tokens < 2) {
    outcome = need_token(instance, fetch);
    if (outcome.state != State::found) break;
    outcome = ask(instance, Method::get, path, fetch, read);
    if (outcome.status != 401) break;
    instance.token_ends = BootTime::min();
    ++refused_tokens;
  }
  if (outcome.state == State::found) return outcome;
  if (refused_tokens == 2) {
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

// Why the service must not be asked; `found` if it may be asked.
KeyOutcome check_settings(const Instance& instance) {
  if (instance.disabled) {
    return no_keys({kName, ": AWS_EC2_METADATA_DISABLED is true"});
  }
  return instance.error.empty() ? success() : broken_keys({instance.error});
}

KeyOutcome get_role(Instance& instance, const Fetch& fetch, std::string& role) {
  const auto read = [&](const HttpAnswer& http, std::int64_t) {
    role = sigv4::first_line(http.body);
    // The characters that IAM allows.  None has to be encoded in a URL's path.
    const bool fits =
        role.size() <= 64 && sigv4::is_alphanumeric(role, "_+=,.@-");
    return fits ? success()
                : broken_keys({"its answer is not the name of a role"});
  };
  KeyOutcome outcome = sigv4::get(instance, kRolesPath, fetch, read);
  const bool no_role =
      outcome.status == 404 || (outcome.state == State::found && role.empty());
  if (!no_role) return outcome;
  return not_found(instance.had_keys ? State::failed : State::none,
                   {place(instance), "the instance has no role"});
}

KeyOutcome keys_of_role(Instance& instance, const Fetch& fetch,
                        const std::string& role) {
  const auto read = [&](const HttpAnswer& http, std::int64_t utc_now) {
    const Document document = parse_json(http.body);
    const auto code = document.root()["Code"].text().value_or("Success");
    if (code != "Success") {
      return broken_keys(
          {"no keys of role ", role, ": Code ", in_quotes(code)});
    }
    return keys_in(document, {}, KeyForm(), join({kName, " (role ", role, ")"}),
                   utc_now);
  };
  KeyOutcome outcome = sigv4::get(instance, kRolesPath + role, fetch, read);
  // The instance has got another role meanwhile.
  if (outcome.status == 404) outcome.state = State::failed;
  return outcome;
}

}  // namespace

// --- Settings ---------------------------------------------------------------

void read_instance_settings(const Environment& environment,
                            const Profile& profile, Instance& instance) {
  std::string& error = instance.error;
  const auto setting = [&](const char* variable, const char* property) {
    return find_setting(environment, {variable}, profile, property);
  };
  // A whole number from 1 to `most`; `usual` if nobody has set one.
  const auto number = [&](const Setting& set, int usual, int most) {
    if (!set) return usual;
    const int found = whole_number(set.value, most);
    if (found != 0) return found;
    error = join({set.source, " is not a whole number from 1 to ", Digits(most),
                  ": ", in_quotes(set.value)});
    return usual;
  };
  instance.disabled = instance_is_disabled(environment);
  instance.timeout = seconds(number(
      setting("AWS_METADATA_SERVICE_TIMEOUT", "metadata_service_timeout"),
      static_cast<int>(instance.timeout.count()), 600));
  instance.attempts = number(setting("AWS_METADATA_SERVICE_NUM_ATTEMPTS",
                                     "metadata_service_num_attempts"),
                             instance.attempts, 100);
  const Setting mode = setting("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
                               "ec2_metadata_service_endpoint_mode");
  if (mode.says("ipv6")) {
    instance.endpoint = kIpv6Endpoint;
  } else if (mode && !mode.says("ipv4")) {
    error = join(
        {mode.source, " is neither IPv4 nor IPv6: ", in_quotes(mode.value)});
  }
  const Setting endpoint = setting("AWS_EC2_METADATA_SERVICE_ENDPOINT",
                                   "ec2_metadata_service_endpoint");
  if (!endpoint) return;
  instance.endpoint = endpoint.value;
  if (normal_url(endpoint.value).empty()) {
    error = join({endpoint.source, " is not an http or https URL",
                  if_any(": ", quoted_url(endpoint.value))});
    return;
  }
  while (instance.endpoint.back() == '/') instance.endpoint.pop_back();
}

// --- Keys and region --------------------------------------------------------

KeyOutcome instance_keys(Instance& instance, const Fetch& fetch) {
  KeyOutcome outcome = check_settings(instance);
  std::string role;
  if (outcome.state == State::found) outcome = get_role(instance, fetch, role);
  if (outcome.state == State::found) {
    outcome = keys_of_role(instance, fetch, role);
  }
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
  KeyOutcome outcome = check_settings(instance);
  if (outcome.state == State::found) {
    outcome = sigv4::get(
        instance, kRegionPath, fetch, [](const HttpAnswer& http, std::int64_t) {
          const std::string_view region = sigv4::first_line(http.body);
          if (!is_host_label(region)) {
            return broken_keys({"its answer is not a region"});
          }
          KeyOutcome found = success();
          found.region = region;
          return found;
        });
  }
  if (outcome.state == State::found) return outcome;
  // Without a region there is nothing else to look for.
  if (outcome.state == State::none) outcome.state = State::broken;
  outcome.lacks_region = true;
  return outcome;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
