#include "endpoint.hpp"

#include <unistd.h>

#include <initializer_list>
#include <string_view>
#include <utility>

#include "../sigv4/from_all.hpp"
#include "../sigv4/http.hpp"
#include "../sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using sigv4::Environment;
using sigv4::format;
using sigv4::Profile;
using sigv4::Setting;

namespace {

constexpr char kLocal[] = "local";
constexpr char kLocalUrl[] = "http://localhost:8000";
constexpr char kLocalSigned[] = "us-east-1";

// Where accounts have URLs of their own outside of the partition aws.
constexpr std::string_view kRegionsOfAccounts =
    " us-gov-east-1 us-gov-west-1 cn-north-1 cn-northwest-1 ";

// Nothing of what was found out is to be used.
void refuse(Target& target, const char* option, std::string error) {
  target.error = std::move(error);
  target.option = option;
  target.endpoint.clear();
  target.region.clear();
  target.region_sources.clear();
}

// The option, else what is found.
Setting find(const std::string& option, const char* name,
             const Environment& environment,
             std::initializer_list<const char*> variables,
             const Profile& profile, const char* property) {
  if (!option.empty()) return {option, name};
  return sigv4::find_setting(environment, variables, profile, property);
}

// What is to be done about accounts.  Returns why that cannot be.
std::string find_account_mode(const Environment& environment,
                              const Profile& profile, Target& target) {
  const auto [mode, source] =
      sigv4::find_setting(environment, {"AWS_ACCOUNT_ID_ENDPOINT_MODE"},
                          profile, "account_id_endpoint_mode");
  target.accounts_disabled = mode == "disabled";
  if (mode == "required") {
    target.account_required =
        format("%s requires an account's own endpoint", {source});
    if (sigv4::kAllEndpoints) return "";
    return target.account_required + sigv4::kEndpointsLeftOut;
  }
  if (mode.empty() || mode == "preferred" || mode == "disabled") return "";
  return format("%s is none of preferred, disabled and required", {source});
}

// Sets the file, or returns why not.
std::string find_ca_file(const Setting& file, std::string& ca_file) {
  ca_file = file.value;
  if (ca_file.empty()) return "";
  // A FIFO is not opened, for it would be waited for.
  const bool is_directory = euidaccess((ca_file + '/').c_str(), F_OK) == 0;
  if (!is_directory && euidaccess(ca_file.c_str(), R_OK) == 0) return "";
  return format("%s, %q, cannot be read", {file.source, ca_file});
}

// AWS's rules want the flag for it, not its URL; a region in capitals is none.
bool is_dual_stack_url(const std::string& url, const std::string& region) {
  const bool has_port = url.find(':', sizeof("https")) != url.npos;
  const auto parts = sigv4::parse_url(url);
  if (!parts || has_port) return false;
  const std::string rest =
      format("dynamodb.%s.%s",
             {region, sigv4::partition_of(region).dual_stack_suffix});
  std::string host = parts->authority;
  for (char& c : host) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return host == rest || host == format("search-%s", {rest});
}

// Sets what the target has to do with accounts, or returns why that cannot be.
// `suffix`: of the region's endpoint.
std::string set_account(std::string_view suffix, Target& target) {
  if (target.accounts_disabled) return "";
  const std::string& region = target.settings.region;
  const std::string& fips = target.settings.fips;
  const bool have =
      sigv4::partition_of(region).name == "aws" ||
      kRegionsOfAccounts.find(format(" %s ", {region})) != std::string::npos;
  if (fips.empty() && have) {
    target.account_suffix = format(".ddb.%s", {suffix});
  } else if (!target.account_required.empty()) {
    return format("%s: there is none %s%s",
                  {target.account_required,
                   fips.empty() ? "in region " : "with FIPS, and ",
                   fips.empty() ? sigv4::in_quotes(region) : fips});
  }
  return "";
}

// Sets endpoint and region, or returns why that cannot be.
std::string set_endpoint(Target& target) {
  const sigv4::EndpointSettings& settings = target.settings;
  if (!settings.url && settings.region == kLocal) {
    target.endpoint = kLocalUrl;
    target.region = target.region_said.value = kLocalSigned;
    target.account_required.clear();
    if (settings.fips.empty() && settings.dual_stack.empty()) return "";
    return format(
        "%s but region \"local\" is this host",
        {settings.fips.empty() ? settings.dual_stack : settings.fips});
  }
  auto found = sigv4::endpoint_in_region(sigv4::Service::dynamodb, settings);
  if (!found.error.empty()) return std::move(found.error);
  target.region = std::move(found.region);
  if (!settings.url) {
    target.endpoint = std::move(found.url);
    return sigv4::kAllEndpoints ? set_account(found.suffix, target) : "";
  }
  target.endpoint = settings.url.value;
  target.account_required.clear();
  if (!sigv4::kAllEndpoints ||
      !is_dual_stack_url(target.endpoint, target.region)) {
    return "";
  }
  return format(
      "%s names a dual-stack endpoint of AWS's, which only "
      "AWS_USE_DUALSTACK_ENDPOINT or use_dualstack_endpoint may choose",
      {settings.url.source});
}

void set_region(Target& target, const Setting& region) {
  target.region_said = region;
  sigv4::set_region(target.settings, region);
  if (!target.settings.error.empty()) {
    return refuse(target, "region", target.settings.error);
  }
  target.region_sources.clear();
  std::string error = set_endpoint(target);
  if (!error.empty()) refuse(target, "endpoint", std::move(error));
}

}  // namespace

Target::Target() = default;
Target::Target(const Target&) = default;
Target& Target::operator=(const Target&) = default;
Target::~Target() = default;

std::string account_of_table(const std::string& table,
                             const std::string& region) {
  // "arn:aws:dynamodb:eu-west-1:123456789012:table/locks"
  const std::size_t partition = sizeof("arn");
  const std::size_t service = table.find(':', partition);
  const std::string middle = format(":dynamodb:%s:", {region});
  if (table.compare(0, partition, "arn:") != 0 || service == table.npos ||
      table.compare(service, middle.size(), middle) != 0) {
    return "";
  }
  const std::size_t account = service + middle.size();
  const std::size_t end = table.find(':', account);
  if (end == table.npos || end + 1 == table.size()) return "";
  return table.substr(account, end - account);
}

Target complete(const Target& target, const Setting& region) {
  Target whole = target;
  set_region(whole, region);
  return whole;
}

AccountUrl account_url(const Target& target, const std::string& account_id) {
  if (target.account_suffix.empty()) return {target.endpoint, ""};
  if (account_id.empty()) {
    if (target.account_required.empty()) return {target.endpoint, ""};
    return {"", format("%s, but the keys' source does not tell the account",
                       {target.account_required})};
  }
  if (!sigv4::is_host_label(account_id)) {
    return {"", "the account id that came with the keys is none"};
  }
  return {format("https://%s%s", {account_id, target.account_suffix}), ""};
}

Target find_target(const TargetOptions& options,
                   const Environment& environment) {
  Target target;
  const Profile profile = sigv4::load_profile(options.profile, environment);
  const char* option = "profile";
  std::string error = profile.error;
  if (error.empty()) {
    option = "endpoint";
    target.settings = sigv4::read_endpoint_settings(
        sigv4::Service::dynamodb, profile, environment,
        {options.endpoint, "option endpoint"});
    error = target.settings.error;
  }
  if (error.empty()) error = find_account_mode(environment, profile, target);
  if (error.empty()) {
    option = "ca_file";
    error = find_ca_file(find(options.ca_file, "option ca_file", environment,
                              {"AWS_CA_BUNDLE"}, profile, "ca_bundle"),
                         target.ca_file);
  }
  const Setting region =
      find(options.region, "option region", environment,
           {"AWS_REGION", "AWS_DEFAULT_REGION"}, profile, "region");
  if (error.empty() && region) {
    set_region(target, region);
  } else if (error.empty()) {
    target.region_sources = format(
        "neither AWS_REGION nor AWS_DEFAULT_REGION is set, nor region of "
        "profile %q (%s)",
        {profile.name, profile.whereabouts()});
    const bool later = options.region_may_come_later &&
                       sigv4::instance_may_know_region(profile, environment);
    option = later ? "endpoint" : "region";
    error = later ? sigv4::refusal_of(target.settings)
                  : format("no region: %s", {target.region_sources});
  }
  if (!error.empty()) refuse(target, option, std::move(error));
  return target;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
