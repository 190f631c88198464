// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// find_target() reads the settings.  Once the region is known, which may be
// later, complete() finds its endpoint.  Functions report a problem by setting
// the target's `error`.
#include "endpoint.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "../../sigv4/text.hpp"
#include "../../sigv4/url.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::string_view_literals::operator""sv;

using sigv4::cut;
using sigv4::Environment;
using sigv4::in_quotes;
using sigv4::join;
using sigv4::Profile;
using sigv4::Setting;

namespace {

constexpr char kLocal[] = "local";
constexpr char kLocalUrl[] = "http://localhost:8000";
constexpr char kLocalSigned[] = "us-east-1";

// The regions outside of the partition aws where each account has a URL of its
// own.
constexpr std::string_view kRegionsOfAccounts =
    "us-gov-east-1 us-gov-west-1 cn-north-1 cn-northwest-1";

// Names the option that is wrong, and removes what was found, so that it cannot
// be used despite the error.
void refuse(Target& target, const char* option) {
  target.option = option;
  target.endpoint.clear();
  target.region.clear();
  target.region_sources.clear();
}

Setting find_option(std::string_view option, const char* name,
                    const Environment& environment,
                    std::initializer_list<const char*> variables,
                    const Profile& profile, const char* property) {
  if (!option.empty()) return {option, name};
  return sigv4::find_setting(environment, variables, profile, property);
}

void find_account_mode(const Environment& environment, const Profile& profile,
                       Target& target) {
  const Setting found =
      sigv4::find_setting(environment, {"AWS_ACCOUNT_ID_ENDPOINT_MODE"},
                          profile, "account_id_endpoint_mode");
  const std::string_view mode = found.value, source = found.source;
  target.accounts_disabled = mode == "disabled"sv;
  if (mode == "required"sv) {
    target.account_required =
        join({source, " requires an account's own endpoint"});
    if (!sigv4::kAllEndpoints) {
      target.error = join({target.account_required, sigv4::kEndpointsLeftOut});
    }
  } else if (!mode.empty() && mode != "preferred"sv &&
             !target.accounts_disabled) {
    target.error = join(
        {source, " is not preferred, disabled or required: ", in_quotes(mode)});
  }
}

void check_ca_file(const Setting& file, Target& target) {
  target.ca_file = file.value;
  const std::string& path = target.ca_file;
  if (path.empty()) return;
  // libcurl would open a FIFO, and wait forever for somebody to write to it.
  struct stat status = {};
  const bool exists = stat(path.c_str(), &status) == 0;
  const bool irregular = exists && !S_ISREG(status.st_mode);
  if (!irregular && euidaccess(path.c_str(), R_OK) == 0) return;
  target.error = join({file.source, ", ", in_quotes(path), ", ",
                       irregular ? "is not a regular file" : "cannot be read"});
}

// Whether the URL is a dual-stack endpoint of AWS.  AWS's rules refuse such a
// URL, because only a flag may choose these endpoints.
bool is_dual_stack_url(const std::string& url, const std::string& region) {
  const std::string_view given = sigv4::parts_of(url).authority;
  if (given.find(':') != given.npos) return false;  // It has a port.
  const std::string usual =
      join({"dynamodb.", region, ".",
            sigv4::partition_of(region).dual_stack_suffix});
  std::string host(sigv4::parts_of(sigv4::normal_url(url)).authority);
  std::transform(host.begin(), host.end(), host.begin(), sigv4::lower_case);
  return host == usual || host == join({"search-", usual});
}

// Removes the suffix if accounts have no URLs of their own in this region.
void set_account(Target& target) {
  const std::string& region = target.region;
  const std::string& fips = target.fips;
  const bool has_accounts = sigv4::partition_of(region).name == "aws"sv ||
                            sigv4::is_among(kRegionsOfAccounts, region);
  if (has_accounts && fips.empty() && !target.accounts_disabled) return;
  target.suffix.clear();
  if (target.account_required.empty()) return;
  target.error = fips.empty()
                     ? join({target.account_required,
                             ": there is none in region ", in_quotes(region)})
                     : join({target.account_required,
                             ": there is none with FIPS, and ", fips});
}

void set_endpoint(Target& target) {
  if (!target.url && std::string_view(target.region) == kLocal) {
    target.endpoint = kLocalUrl;
    target.region = target.region_said.value = kLocalSigned;
    target.account_required.clear();
    const std::string& flag =
        target.fips.empty() ? target.dual_stack : target.fips;
    if (sigv4::kAllEndpoints && !flag.empty()) {
      target.error = join({flag, ", but region \"local\" is this host"});
    }
    return;
  }
  sigv4::find_in_region(sigv4::Service::dynamodb, target);
  if (!target.error.empty()) return;
  if (!target.url) {
    if (sigv4::kAllEndpoints) set_account(target);
    return;
  }
  target.endpoint = target.url.value;
  target.account_required.clear();
  if (sigv4::kAllEndpoints &&
      is_dual_stack_url(target.endpoint, target.region)) {
    target.error =
        join({target.url.source,
              " names a dual-stack endpoint of AWS, which only "
              "AWS_USE_DUALSTACK_ENDPOINT or use_dualstack_endpoint may "
              "choose"});
  }
}

}  // namespace

std::string account_of_table(const std::string& table,
                             const std::string& region) {
  if (!sigv4::kAllEndpoints) return "";  // There are no URLs of accounts.
  // "arn:aws:dynamodb:eu-west-1:123456789012:table/locks"
  std::string_view rest = table;
  if (sigv4::cut(rest, ':') != "arn"sv) return "";
  sigv4::cut(rest, ':');  // The partition.
  if (sigv4::cut(rest, ':') != "dynamodb"sv || sigv4::cut(rest, ':') != region)
    return "";
  const std::string_view account = sigv4::cut(rest, ':');
  return std::string(rest.empty() ? "" : account);
}

void complete(Target& target, const Setting& region) {
  target.region_said = region;
  sigv4::set_region(target, region);
  if (!target.error.empty()) return refuse(target, "region");
  target.region_sources.clear();
  set_endpoint(target);
  if (!target.error.empty()) refuse(target, "endpoint");
}

void use_account(Target& target, const std::string& account_id) {
  if (!sigv4::kAllEndpoints || target.suffix.empty()) return;
  if (sigv4::is_host_label(account_id)) {
    target.endpoint = join({"https://", account_id, ".ddb.", target.suffix});
    return;
  }
  if (!account_id.empty()) {
    target.error = "the account id that came with the keys is not valid";
  } else if (!target.account_required.empty()) {
    target.error =
        join({target.account_required,
              ", but the source of the keys does not name the account"});
  }
  if (!target.error.empty()) refuse(target, "");
}

// Reports only the first problem.
Target find_target(const TargetOptions& options,
                   const Environment& environment) {
  Target target;
  const Profile profile(sigv4::locate_profile(options.profile, environment));
  const char* option = "profile";
  std::string& error = target.error;
  error = profile.error;
  if (error.empty()) {
    option = "endpoint";
    target.url = {options.endpoint, "option endpoint"};
    sigv4::read_endpoint_settings(sigv4::Service::dynamodb, profile,
                                  environment, target);
  }
  if (error.empty()) find_account_mode(environment, profile, target);
  if (error.empty()) {
    option = "ca_file";
    check_ca_file(find_option(options.ca_file, "option ca_file", environment,
                              {"AWS_CA_BUNDLE"}, profile, "ca_bundle"),
                  target);
  }
  const Setting region =
      find_option(options.region, "option region", environment,
                  {"AWS_REGION", "AWS_DEFAULT_REGION"}, profile, "region");
  if (error.empty() && region) {
    complete(target, region);
    return target;
  }
  if (error.empty()) {
    target.region_sources =
        join({sigv4::ignores_environment()
                  ? sigv4::kIgnoredEnvironment
                  : "neither AWS_REGION nor AWS_DEFAULT_REGION is set",
              ", nor region of profile ", in_quotes(profile.name), " (",
              profile.whereabouts(), ")"});
    if (sigv4::kRegionMayComeLater &&
        !sigv4::instance_is_disabled(environment)) {
      option = "endpoint";
      sigv4::check_url(target);
    } else {
      option = "region";
      error = join({"no region: ", target.region_sources});
    }
  }
  if (!error.empty()) refuse(target, option);
  return target;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
