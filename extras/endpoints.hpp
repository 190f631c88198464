// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The rules of all endpoints that AWS has.
//
//   FIPS         AWS_USE_FIPS_ENDPOINT or `use_fips_endpoint` is true, or the
//                region asks for it: "fips-eu-west-1"
//   dual stack   AWS_USE_DUALSTACK_ENDPOINT or `use_dualstack_endpoint` is
//   true:
//                IPv4 and IPv6
//
// Either of these is an error beside a configured URL, as in AWS's rules:
// nobody knows whether that URL is such an endpoint.
//
// In some partitions, each account has a DynamoDB endpoint of its own.
// AWS_ACCOUNT_ID_ENDPOINT_MODE, or `account_id_endpoint_mode`, says whether it
// is used.
#ifndef DDBMUTEX_EXTRAS_ENDPOINTS_HPP
#define DDBMUTEX_EXTRAS_ENDPOINTS_HPP

#include <string>

#include "../sigv4/endpoints.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Parts::check_endpoint, Parts::find_endpoint and Parts::use_account.
void check_any_endpoint(ServiceEndpoint& endpoint);
void find_any_endpoint(Service service, const Setting& region,
                       ServiceEndpoint& endpoint);
void use_account(const std::string& table, const std::string& account_id,
                 ServiceEndpoint& endpoint);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_EXTRAS_ENDPOINTS_HPP
