// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The table of the core's own parts.
#include <iterator>

#include "../parts.hpp"
#include "sources.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

// In the order of the table in README.md.  check_*, open_* and refuse_* give no
// keys, but may end the search.  Sources that are extras are refused where
// extras/parts.cpp asks them.
constexpr KeySourceRow kCoreSources[] = {
    {SourceOf::process, keys_given},
    {SourceOf::process, check_profile_name},
    {SourceOf::process, keys_of_environment},
    {SourceOf::profile, open_profile},
    {SourceOf::profile, refuse_roles_and_sign_on},
    {SourceOf::profile, keys_in_credentials_file},
    {SourceOf::profile, refuse_login_and_program},
    {SourceOf::profile, keys_in_config_file},
    {SourceOf::profile, refuse_part_of_sign_on},
    {SourceOf::profile, check_profile},
    {SourceOf::host, keys_of_container},
    {SourceOf::host, keys_of_instance},
};

constexpr Parts kCoreParts = {
    kCoreSources,
    std::size(kCoreSources),
    nullptr,
    read_plain_profiles,
    nullptr,
    refuse_special,
    find_usual_endpoint,
    nullptr,
};

}  // namespace

const Parts& core_parts() { return kCoreParts; }

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
