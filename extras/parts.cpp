// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The table of all parts.  sigv4/keys/core_parts.cpp has the core's.
#include "parts.hpp"

#include <iterator>

#include "../sigv4/keys/sources.hpp"
#include "endpoints.hpp"
#include "keys/profile_grammar.hpp"
#include "keys/profile_sources.hpp"
#include "keys/sts.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

// In the order of the table in sigv4/README.md.
constexpr KeySourceRow kAllSources[] = {
    {SourceOf::process, keys_given},
    {SourceOf::process, check_profile_name},
    {SourceOf::process, keys_of_environment},
    {SourceOf::profile, open_profile},
    {SourceOf::profile, keys_by_role},
    {SourceOf::profile, keys_by_web_identity},
    {SourceOf::profile, keys_by_sign_on},
    {SourceOf::profile, keys_in_credentials_file},
    {SourceOf::profile, keys_by_login},
    {SourceOf::profile, keys_by_program},
    {SourceOf::profile, keys_in_config_file},
    {SourceOf::profile, check_sign_on},
    {SourceOf::profile, check_profile},
    {SourceOf::host, keys_of_container},
    {SourceOf::host, keys_of_instance},
};

constexpr Parts kAllParts = {
    kAllSources,     std::size(kAllSources), read_services,     parse_profiles,
    url_in_services, check_any_endpoint,     find_any_endpoint, use_account,
};

}  // namespace

const Parts& all_parts() { return kAllParts; }

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
