// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// find_target() reads the settings.  Once the region is known, which may be
// later, complete() finds its endpoint.  Functions report a problem by setting
// the target's `error`.
#include "endpoint.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <initializer_list>
#include <string_view>

#include "../../sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::string_view_literals::operator""sv;

using sigv4::Environment;
using sigv4::in_quotes;
using sigv4::join;
using sigv4::Profile;
using sigv4::Setting;

namespace {

constexpr char kLocalUrl[] = "http://localhost:8000";
constexpr char kLocalSigned[] = "us-east-1";

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

void use_local(Target& target) {
  target.endpoint = kLocalUrl;
  target.region = target.region_said.value = kLocalSigned;
  target.account_required.clear();
  const std::string& flag =
      target.fips.empty() ? target.dual_stack : target.fips;
  if (!flag.empty()) target.error = flag + sigv4::kIsThisHost;
}

}  // namespace

void complete(Target& target, const Setting& region) {
  target.region_said = region;
  if (!target.url && region.value == sigv4::kLocalRegion) {
    use_local(target);
  } else {
    target.parts->find_endpoint(sigv4::Service::dynamodb, region, target);
  }
  target.region_sources.clear();
  if (!target.error.empty()) {
    refuse(target, target.region.empty() ? "region" : "endpoint");
  }
}

void use_account(Target& target, const std::string& table,
                 const std::string& account_id) {
  if (target.parts->use_account == nullptr) return;
  target.parts->use_account(table, account_id, target);
  if (!target.error.empty()) refuse(target, "");
}

// Reports only the first problem.
Target find_target(const TargetOptions& options, const sigv4::Parts& parts,
                   const Environment& environment) {
  Target target;
  target.parts = &parts;
  const Profile profile(sigv4::locate_profile(options.profile, environment),
                        parts);
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
    if (sigv4::instance_is_disabled(environment)) {
      option = "region";
      error = join({"no region: ", target.region_sources});
    } else {
      option = "endpoint";
      parts.check_endpoint(target);
    }
  }
  if (!error.empty()) refuse(target, option);
  return target;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
