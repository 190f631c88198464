// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Which sources of keys, which grammar of profiles and which endpoints there
// are.  The core has core_parts(); all_parts() of extras/parts.hpp has more.
// Only ddbmutex.cpp chooses between the two.  All else is given one of them.
//
// A setting that asks for a part that is not there ends with an error that
// names the setting and the extra.  Requests are never signed with other keys,
// or sent to another endpoint, than with all parts; except that without
// use_account(), the region's endpoint stands for the account's own.
#ifndef DDBMUTEX_SIGV4_PARTS_HPP
#define DDBMUTEX_SIGV4_PARTS_HPP

#include <cstddef>
#include <string>

#include "endpoints.hpp"
#include "profile.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

struct Chain;
struct ChainOptions;
struct KeyOutcome;
struct Search;

// The ends of error texts, after the name of a setting.
inline constexpr char kNeedsKeys[] =
    ", which needs extras/keys (compile ddbmutex_all.cpp, or all sources with "
    "-DDDBMUTEX_EXTRAS)";
inline constexpr char kNeedsEndpoints[] =
    ", which needs extras/endpoints (compile ddbmutex_all.cpp, or all sources "
    "with -DDDBMUTEX_EXTRAS)";

enum class SourceOf { process, profile, host };

struct KeySourceRow {
  SourceOf of;
  KeyOutcome (*keys_of)(Search& search);
};

struct Parts {
  // The sources of keys, in the order in which they are asked.
  const KeySourceRow* sources;
  std::size_t source_count;
  // Sets chain.services, for sources that are extras.  Called after all else of
  // the chain has been set.  Null without such sources.
  void (*read_services)(const ChainOptions& options,
                        const Environment& environment, const Profile& profile,
                        Chain& chain);

  // Parses a config or credentials file.  Sets the entries, in the order of the
  // file, which are views of the text.  Changes the text for that.  If the text
  // is unusable, returns why ("line 3: ..."); else returns an empty string.
  std::string (*read_profile)(std::string& text, FileKind kind,
                              Entries& entries);
  // The URL of a service in the profile's section `services`; nothing if that
  // has none.  Sets `flaw` if there is no such section.  Null if these sections
  // cannot be read.
  Setting (*url_in_services)(const Profile& profile, const Setting& services,
                             const char* service, std::string& flaw);

  // The rules of endpoints.  Pure.
  //
  // Sets the error if the settings are bad in every region.
  void (*check_endpoint)(ServiceEndpoint& endpoint);
  // Sets the endpoint and its region, or the error.  Then the region is empty
  // if it is the region that is wrong.
  void (*find_endpoint)(Service service, const Setting& region,
                        ServiceEndpoint& endpoint);
  // Sets the endpoint to the account's own if there is one, or the error.  If
  // `table` is an ARN, its account is taken; else `account_id`, that of the
  // keys, which is empty if it is not known.  Null if accounts have no
  // endpoints of their own.
  void (*use_account)(const std::string& table, const std::string& account_id,
                      ServiceEndpoint& endpoint);
};

const Parts& core_parts();

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_PARTS_HPP
