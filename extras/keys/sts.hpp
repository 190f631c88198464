// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// How AWS's Security Token Service (STS) is asked, for from_roles.cpp.
#ifndef DDBMUTEX_EXTRAS_STS_HPP
#define DDBMUTEX_EXTRAS_STS_HPP

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "../../sigv4/endpoints.hpp"
#include "../../sigv4/keys/from_all.hpp"
#include "../../sigv4/keys/service_call.hpp"
#include "../../sigv4/keys/sources.hpp"
#include "../../sigv4/sigv4.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

constexpr std::string_view kFormType = "application/x-www-form-urlencoded";

// What all calls of STS have in common.
struct Services {
  // Calls STS in the region `where`.  Sets the call's host and CA file, and
  // how each attempt is signed.  `signer`: null if it is not signed.  REQUIRES:
  // the body is a form.
  KeyOutcome ask_sts(const Setting& where, const Credentials* signer,
                     ServiceCall& call, const Fetch& fetch,
                     ReadAnswer read) const;

  ServiceEndpoint sts;
  std::shared_ptr<LastAddress> last_address;
  Setting region;
  std::string ca_file;
  // AWS_ROLE_ARN and AWS_ROLE_SESSION_NAME, for Chain::token_file.
  std::string role_arn;
  std::string session_name;
};

// Parts::read_services.
void read_services(const ChainOptions& options, const Environment& environment,
                   const Profile& profile, Chain& chain);

// The fields that have a value, as a form (application/x-www-form-urlencoded).
// The caller wipes it.
struct Field {
  std::string_view name;
  std::string_view value;
};
std::string form_of(std::initializer_list<Field> fields);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_EXTRAS_STS_HPP
