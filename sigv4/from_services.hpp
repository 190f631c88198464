// How the network sources of keys call AWS's services (STS, SSO, OIDC): where
// they are, how often a call is tried, and what a failure means.
//
//   ServiceCall call;
//   call.name = "STS AssumeRole";
//   call.url = services.endpoint(Service::sts).url;
//   call.request = [&](std::int64_t utc_now) { return signed_for(utc_now); };
//   call.accept = [&](HttpAnswer& http, std::int64_t utc_now) {
//     return read(http.body) ? "" : "no answer of STS's";
//   };
//   call.refusal = [](HttpAnswer& http) { return read_refusal(http.body); };
//   const CallOutcome outcome = call_service(services, call, fetch);
//   if (!outcome.done()) return without_keys(outcome, place);
//
// What may pass: no connection, a connection that broke, no answer in time, a
// status of 5xx or 429, throttling, an answer that makes no sense.  Such a
// call is made again, three times in all, with random pauses between.  Final
// are all other refusals, a redirect (never followed: the request has a token
// in it) and a certificate that does not fit.  A refusal for the time of a
// signature is answered with another for the Date of the refusal, once.
//
// All of it ends at the fetch's deadline, or when the fetch is to stop.  The
// bodies of answers are wiped, and no text holds a secret that was sent: what
// services say is shown up to its first line break (STS shows what it would
// have signed behind it), and not at all if it repeats a part of a secret.
#ifndef DDBMUTEX_SIGV4_FROM_SERVICES_HPP
#define DDBMUTEX_SIGV4_FROM_SERVICES_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "credentials.hpp"
#include "endpoints.hpp"
#include "http.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// What all network sources share.
struct Services {
  // Where a service is in that region.
  ServiceEndpoint endpoint(Service service) const;

  EndpointSettings endpoints;
  std::string region;         // Empty: nobody has said.
  std::string region_source;  // For people: "AWS_REGION".
  HttpOptions http;
};

// What a service said instead of an answer.  All of it is untrusted text.
struct Refusal {
  std::string code;  // "AccessDenied"; empty if none could be read.
  std::string message;
  std::string request_id;
};

struct ServiceCall {
  std::string name;  // For people: "STS AssumeRole".
  std::string url;   // For people; the request names its own.
  // The request, made anew for each attempt.  `utc_now`: what to sign for, in
  // seconds since 1970.
  std::function<HttpRequest(std::int64_t utc_now)> request;
  // Takes what it wants of an answer of status 200, and may change the body
  // (it is wiped afterwards).  `utc_now`: the answer's own Date if it has one.
  // Says what is wrong with it, for people; empty if all is well.
  std::function<std::string(HttpAnswer& http, std::int64_t utc_now)> accept;
  // Reads an answer of another status.
  std::function<Refusal(HttpAnswer& http)> refusal;
  // Codes that may pass, besides those that all services share.
  std::vector<std::string_view> passing_codes;
  // Codes of what will not pass as a rule, and yet is tried as often.
  std::vector<std::string_view> doubtful_codes;
  // What was sent and must not be seen in a text.
  std::vector<Secret> secrets;
  int attempts = 3;
  std::chrono::milliseconds time{5000};  // For each attempt.
};

struct CallOutcome {
  enum class State {
    done,
    failed,  // May pass.
    broken,  // Will not.
  };
  bool done() const { return state == State::done; }

  State state = State::failed;
  int status = 0;       // Of the last answer; 0 if there was none.
  std::string code;     // Of the refusal; empty if there was none.
  std::string problem;  // Unless done, for people: what went wrong, and where.
};

// The KeyOutcome of a call that came to nothing.  `place`: what the keys were
// wanted for (`profile "x" in "..."`); it goes before what the call says.
KeyOutcome without_keys(const CallOutcome& outcome, const std::string& place);

CallOutcome call_service(const Services& services, const ServiceCall& call,
                         const Fetch& fetch);

// The body of a form (application/x-www-form-urlencoded).  The caller wipes it.
struct Field {
  std::string_view name;
  std::string_view value;
};
std::string form_of(const std::vector<Field>& fields);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_SERVICES_HPP
