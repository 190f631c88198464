// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Parses the shared config and credentials files, as far as they are plain.
//
// Plain are sections ([default], [profile x], [services x] and, in the
// credentials file, [x]), properties (`name = value`) and comments, which have
// lines of their own.  extras/keys/profile_grammar.hpp has all rules of these
// files; the same rules hold here.  Where they ask for more, this parser gives
// no value:
//   * A property that goes on in indented lines is an entry that is not plain.
//   * These make the file unusable: a section's name with quotes, blanks or
//     brackets, [default] beside [profile default], and a ':' in a property's
//     name.  Each of them could change which profile or value is meant.
//
// Pure functions.
#ifndef DDBMUTEX_SIGV4_PROFILE_PARSER_HPP
#define DDBMUTEX_SIGV4_PROFILE_PARSER_HPP

#include <string>
#include <string_view>
#include <vector>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

constexpr std::string_view kProfileKind = "profile";
constexpr std::string_view kServicesKind = "services";
constexpr std::string_view kDefaultProfile = "default";

// Properties that this library or AWS's tools look for.
constexpr std::string_view kSettings =
    "account_id_endpoint_mode aws_access_key_id aws_account_id "
    "aws_secret_access_key aws_session_token ca_bundle credential_process "
    "credential_source duration_seconds ec2_metadata_service_endpoint "
    "ec2_metadata_service_endpoint_mode endpoint_url external_id "
    "ignore_configured_endpoint_urls login_session "
    "metadata_service_num_attempts metadata_service_timeout mfa_serial output "
    "region role_arn role_session_name services source_profile sso_account_id "
    "sso_region sso_registration_scopes sso_role_name sso_session "
    "sso_start_url use_dualstack_endpoint use_fips_endpoint "
    "web_identity_token_file";

// A property or a section's heading.
struct Entry {
  // "profile" or "services".  Empty for a [default] that is ignored, and for
  // the heading of a profile that lacks its prefix.
  std::string_view kind;
  std::string_view section;
  std::string_view property;  // In lower case; empty: the section's heading.
  std::string_view value;     // Trimmed.  Continued lines follow after a '\n'.
  // False if the value goes on in lines that were not read.
  bool whole = true;
};

// By kind, section and property.
bool by_property(const Entry& a, const Entry& b);

// Of equal entries, the last counts.
using Entries = std::vector<Entry>;

enum class FileKind { config, credentials };

// Parts::read_profile of the core.
std::string read_plain_profiles(std::string& text, FileKind kind,
                                Entries& entries);

// --- What both parsers share -------------------------------------------------

constexpr std::string_view kCommentMarks = "#;";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Whether a property or an unquoted profile may have this name.
bool is_name(std::string_view text);

bool is_no_control(char c);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_PROFILE_PARSER_HPP
