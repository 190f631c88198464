// How those that look for keys ask a server (STS, SSO, AWS Sign-In, a
// container's agent, an instance's metadata service): where AWS's are, how
// often one is asked, and what a failure means.
//
//   ServiceCall call;
//   call.name = "SSO GetRoleCredentials";
//   call.path = "/federation/credentials";
//   call.take = [](void*, const HttpAnswer& http, std::int64_t utc_now,
//                  KeyOutcome& outcome) {
//     outcome = read(http.body, utc_now);
//   };
//   return services.ask(Service::sso, region, call, fetch);
//
// What may pass: no connection, a connection that broke, no answer in time, a
// status of 5xx or 429, throttling, an answer that makes no sense.  Such a
// call is made again, three times in all, with random pauses between.  Final
// are all other refusals, a redirect (never followed: the request has a token
// in it) and a certificate that does not fit.  If a signature or proof is
// refused because of its time, the request is sent once more, signed for the
// Date of the refusal.
//
// All of it ends at the fetch's deadline, or when the fetch is to stop.
// Requests and the bodies of answers are wiped, and no text holds a secret that
// was sent: what services say is shown up to its first line break (STS shows
// what it would have signed behind it), and not at all if it repeats a part of
// a secret.
#ifndef DDBMUTEX_SIGV4_FROM_SERVICES_HPP
#define DDBMUTEX_SIGV4_FROM_SERVICES_HPP

#include <array>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "../endpoints.hpp"
#include "../http.hpp"
#include "../http_answer.hpp"
#include "../sigv4.hpp"
#include "credentials.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

constexpr std::string_view kFormType = "application/x-www-form-urlencoded";

// A call as it is to be made.
struct ServiceCall {
  ServiceCall();
  ServiceCall(const ServiceCall&) = delete;
  ServiceCall& operator=(const ServiceCall&) = delete;
  ~ServiceCall();  // Wipes what was sent.

  // For people: "STS AssumeRole", "the " if the name wants it, and what the
  // keys are wanted for (`profile "x" in "..."`), if failures are to name it.
  std::string_view name;
  const char* article = "";
  std::string_view place;
  // What is sent.  The URL is url_at(host, path).
  std::string_view host;  // "https://h": what people see of it.
  std::string path;
  Method method = Method::get;
  std::string headers;  // Whole lines: "Name: value\n".
  std::string body;     // None with get.
  // The keys with which each attempt is signed for STS; null if it is not
  // signed.  REQUIRES: the body is a form.
  const Credentials* signer = nullptr;
  std::string_view region;  // That it is signed for.
  // Adds a header to each attempt that proves who sends this request to `url`
  // at `utc_now`; null if none is needed.
  void (*prove)(void* whose, const std::string& url, std::int64_t utc_now,
                Text& headers) = nullptr;
  // Takes what it wants of an answer of status 200 into the outcome; `reason`
  // says what is wrong with it, for people.  `utc_now`: the answer's own Date
  // if it has one.
  void (*take)(void* whose, const HttpAnswer& http, std::int64_t utc_now,
               KeyOutcome& outcome) = nullptr;
  void* whose = nullptr;
  // What was sent and must not be seen in a text; it outlives the call.
  Secrets secrets;
  int attempts = 3;
  std::chrono::milliseconds time{5000};  // For each attempt.
  HttpOptions http;
};

// Found, whatever was taken; failed or broken, with what went wrong, and where.
KeyOutcome call_service(const ServiceCall& call, const Fetch& fetch);

// What those that ask AWS's own services share.
struct Services {
  // Asks a service where it is in that region: the call is without a host.
  KeyOutcome ask(Service service, const Setting& where, ServiceCall& call,
                 const Fetch& fetch) const;

  std::array<ServiceEndpoint, 4> endpoints;  // By Service: not DynamoDB's.
  Setting region;
  std::string ca_file;
};

// What a service said instead of an answer.  All of it is untrusted text, and
// wiped: it may repeat a token that the service was sent.
struct Refusal {
  ~Refusal();

  std::string code;  // "AccessDenied"; empty if none could be read.
  std::string message;
  std::string request_id;
};
// However STS, SSO, its OIDC service or a container's agent writes it.
Refusal read_refusal(const HttpAnswer& http);

// Behind `head`, the body of a form (application/x-www-form-urlencoded), of the
// fields that have a value.  The caller wipes it.
struct Field {
  std::string_view name;
  std::string_view value;
};
std::string form_of(std::string_view head, std::initializer_list<Field> fields);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_SERVICES_HPP
