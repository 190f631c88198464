// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The sources of keys ask all servers by this: a container's agent, EC2's
// metadata service, and STS (extras/keys).
//
//   ServiceCall call;
//   call.name = "agent";
//   call.host = "http://169.254.170.2";
//   call.path = "/credentials";
//   return call_service(call, fetch,
//                       [](const HttpAnswer& http, std::int64_t utc_now) {
//                         return keys_in(parse_json(http.body), ..., utc_now);
//                       });
//
// Transient failures are: no connection, a broken connection, no answer in
// time, the statuses 5xx, 408 and 429, throttling, and an answer that makes no
// sense.  After one of these, the request is sent again, three times in all,
// with random pauses between.  Any other refusal is final.  So is a redirect,
// which is never followed because the request holds a token, and so is a bad
// certificate.  If a refusal's Date shows that the request was signed for the
// wrong time, it is sent once more, signed for that Date.
//
// A call ends at the fetch's deadline, or when the fetch is to stop.
//
// Requests and the bodies of answers are wiped.  Error texts show what a
// service says only up to the first line break (STS shows what it would have
// signed after it), and "(hidden)" instead if it repeats a secret that was
// sent.
#ifndef DDBMUTEX_SIGV4_SERVICE_CALL_HPP
#define DDBMUTEX_SIGV4_SERVICE_CALL_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "../function_ref.hpp"
#include "../http.hpp"
#include "../http_answer.hpp"
#include "../secret.hpp"
#include "../text.hpp"
#include "credentials.hpp"
#include "from_json.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Makes an outcome of an answer of status 200: `found`, or what is wrong with
// the answer.  `utc_now`: the answer's own Date if it has one.
using ReadAnswer =
    FunctionRef<KeyOutcome(const HttpAnswer& http, std::int64_t utc_now)>;

// The request, and how it is made.
struct ServiceCall {
  ServiceCall() { http.max_answer_bytes = kMaxJsonBytes; }
  ServiceCall(const ServiceCall&) = delete;
  ServiceCall& operator=(const ServiceCall&) = delete;
  ~ServiceCall();  // Wipes what was sent.

  std::string_view name;     // For people: "STS AssumeRole".
  const char* article = "";  // "the " if the name needs it.
  // What may be wrong if the server takes a request and does not answer.
  const char* silence_hint = "";
  // What the keys are wanted for, `profile "x" in "..."`.  Errors name it
  // unless it is empty.
  std::string_view place;
  // The URL is url_at(host, path).  Error texts show the host ("https://h").
  std::string_view host;
  std::string path;
  Method method = Method::get;
  std::string headers;  // Whole lines: "Name: value\n".
  std::string body;     // Empty with get.
  // Appends headers that sign the request for that time.  Called for each
  // attempt; null if it is not signed.
  std::function<void(const std::string& url, std::int64_t utc, Text& headers)>
      sign;
  Secrets secrets;  // What was sent and must not be shown.
  int attempts = 3;
  std::chrono::milliseconds time{5000};  // For each attempt.
  HttpOptions http;
};

// Returns what `read` made of the answer; or `failed` or `broken`, with a
// reason.
KeyOutcome call_service(const ServiceCall& call, const Fetch& fetch,
                        ReadAnswer read);

// The outcome of a good answer that holds no keys.
inline KeyOutcome success() {
  KeyOutcome outcome;
  outcome.state = KeyOutcome::State::found;
  return outcome;
}

// The error that a service answered.  Its texts are untrusted, and may repeat a
// token that was sent.
struct Refusal {
  Secret code;  // "AccessDenied"; empty if none could be read.
  Secret message;
  Secret request_id;
};
// Reads the errors of STS and a container's agent.
Refusal read_refusal(const HttpAnswer& http);

// The part of a bad URL that an error may show, in quotes.  Nothing if the URL
// may contain a password; else the part before its query, which may be secret.
std::string quoted_url(const std::string& url);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_SERVICE_CALL_HPP
