// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Finds the endpoint of STS and signs what is sent to it.
#include "sts.hpp"

#include "../../sigv4/text.hpp"
#include "../../sigv4/url.hpp"
#include "../endpoints.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

// Signs a form that is sent to `url`.
void sign_form(const std::string& url, std::string_view form,
               const Credentials& keys, std::string_view region,
               std::int64_t utc, Text& headers) {
  const std::string normal = normal_url(url);
  const UrlParts parts = parts_of(normal);
  const std::string hash = sigv4::sha256_hex(form);
  const Request request = {
      "POST",
      parts.path,
      {{"content-type", kFormType}, {"host", parts.authority}},
      hash};
  append_headers(headers, request, keys,
                 sigv4::sign(request, keys, {region, "sts"}, utc));
}

}  // namespace

KeyOutcome Services::ask_sts(const Setting& where, const Credentials* signer,
                             ServiceCall& call, const Fetch& fetch,
                             ReadAnswer read) const {
  ServiceEndpoint endpoint = sts;
  if (!where) {
    endpoint.error = "no region is known";
  } else if (endpoint.error.empty()) {
    find_any_endpoint(Service::sts, where, endpoint);
  }
  if (!endpoint.error.empty()) {
    return broken_keys({if_any("", call.place, ": "), endpoint.error});
  }
  call.host = endpoint.endpoint;
  call.http.ca_file = ca_file;
  call.http.last_address = last_address;
  if (signer != nullptr) {
    call.sign = [&](const std::string& url, std::int64_t utc, Text& headers) {
      sign_form(url, call.body, *signer, endpoint.region, utc, headers);
    };
  }
  return call_service(call, fetch, read);
}

void read_services(const ChainOptions& options, const Environment& environment,
                   const Profile& profile, Chain& chain) {
  chain.services = std::make_shared<Services>();
  Services& services = *chain.services;
  read_endpoint_settings(Service::sts, profile, environment, services.sts);
  services.last_address = std::make_shared<LastAddress>();
  services.ca_file = chain.container.ca_file;
  services.region = options.region;
  if (!services.region) {
    services.region = find_setting(
        environment, {"AWS_REGION", "AWS_DEFAULT_REGION"}, profile, "region");
  }
  // This applies also to an STS in another region.
  if (asks_for_fips(services.region.value)) {
    services.sts.fips = services.region.source + " asks for FIPS";
  }
  if (chain.named) return;
  services.role_arn = environment("AWS_ROLE_ARN");
  services.session_name = environment("AWS_ROLE_SESSION_NAME");
}

std::string form_of(std::initializer_list<Field> fields) {
  std::size_t longest = 0;
  for (const Field& field : fields) {
    longest += 3 * (field.name.size() + field.value.size()) + 2;
  }
  std::string form;
  form.reserve(longest);  // So that no copy of a token stays behind.
  for (const Field& field : fields) {
    if (field.value.empty()) continue;
    if (!form.empty()) form += '&';
    append_encoded(form, field.name);
    form += '=';
    append_encoded(form, field.value);
  }
  return form;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
