// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// AWS's own endpoints follow from the region, its partition and the settings.
#include "endpoints.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "../sigv4/text.hpp"
#include "../sigv4/url.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::string_view_literals::operator""sv;

namespace {

constexpr char kGlobalRegion[] = "aws-global";
constexpr char kUsEast1[] = "us-east-1";

// --- Regions -----------------------------------------------------------------

// Arrays, because pointers would need relocations when a program starts.
struct Partition {
  char name[11];    // "aws-cn"
  char prefix[9];   // Of its regions: then come a word, '-' and a number.
  char suffix[17];  // The domain that follows a region.
  char dual_stack_suffix[29];
};

// The last one has all regions that belong to no other.  All have FIPS
// endpoints.  All except aws-eusc have a region for the whole partition, such
// as "aws-cn-global".
constexpr Partition kPartitions[] = {
    {"aws-cn", "cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"},
    {"aws-us-gov", "us-gov-", "amazonaws.com", "api.aws"},
    {"aws-eusc", "eusc-de-", "amazonaws.eu", "api.amazonwebservices.eu"},
    {"aws-iso", "us-iso-", "c2s.ic.gov", "api.aws.ic.gov"},
    {"aws-iso-b", "us-isob-", "sc2s.sgov.gov", "api.aws.scloud"},
    {"aws-iso-e", "eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"},
    {"aws-iso-f", "us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov"},
    {"aws", "", "amazonaws.com", "api.aws"},
};

// The regions outside of the partition aws where each account has a URL of its
// own.
constexpr std::string_view kRegionsOfAccounts =
    "us-gov-east-1 us-gov-west-1 cn-north-1 cn-northwest-1";

// "north-1"
bool is_word_and_number(std::string_view text) {
  const std::string_view word = sigv4::cut(text, '-');
  return !word.empty() && !text.empty() && sigv4::all_digits(text);
}

// REQUIRES: is_host_label(region).
const Partition& partition_of(std::string_view region) {
  const auto has_region = [&](const Partition& partition) {
    const std::string_view name = partition.name, prefix = partition.prefix;
    const bool is_one = sigv4::begins_with(region, prefix) &&
                        is_word_and_number(region.substr(prefix.size()));
    const bool is_all = name != "aws-eusc"sv &&
                        sigv4::begins_with(region, name) &&
                        region.substr(name.size()) == "-global"sv;
    return is_one || is_all;
  };
  return *std::find_if(std::begin(kPartitions), std::end(kPartitions) - 1,
                       has_region);
}

// AWS's SDKs cut the first "-fips", "fips-", "fips-dkr-" or "fips-prod-" out of
// a region that asks for FIPS.
std::string without_fips(std::string region) {
  if (region == "fips-aws-global" || region == "aws-fips") return kUsEast1;
  const auto begin = std::min(region.find("fips-"), region.find("-fips"));
  const bool leads = region[begin] == 'f';
  region.erase(begin, 5);
  const std::string_view rest = std::string_view(region).substr(begin);
  for (const std::string_view word : {"dkr-"sv, "prod-"sv}) {
    if (!leads || !sigv4::begins_with(rest, word)) continue;
    region.erase(begin, word.size());
    break;
  }
  return region;
}

// --- Endpoints ---------------------------------------------------------------

// Why a FIPS or dual-stack endpoint is wanted; empty if neither is.
const std::string& why_special(const ServiceEndpoint& endpoint) {
  return endpoint.fips.empty() ? endpoint.dual_stack : endpoint.fips;
}

// Whether the URL is a dual-stack endpoint of AWS.  AWS's rules refuse such a
// URL, because only a flag may choose these endpoints.
bool is_dual_stack_url(const std::string& url, const std::string& region) {
  const std::string_view given = parts_of(url).authority;
  if (given.find(':') != given.npos) return false;  // It has a port.
  const std::string usual =
      join({"dynamodb.", region, ".", partition_of(region).dual_stack_suffix});
  std::string host(parts_of(normal_url(url)).authority);
  std::transform(host.begin(), host.end(), host.begin(), lower_case);
  return host == usual || host == join({"search-", usual});
}

// Removes the suffix if accounts have no URLs of their own in this region.
void set_account(ServiceEndpoint& endpoint) {
  const std::string& region = endpoint.region;
  const std::string& fips = endpoint.fips;
  const bool has_accounts = partition_of(region).name == "aws"sv ||
                            sigv4::is_among(kRegionsOfAccounts, region);
  if (has_accounts && fips.empty() && !endpoint.accounts_disabled) return;
  endpoint.suffix.clear();
  if (endpoint.account_required.empty()) return;
  endpoint.error = fips.empty()
                       ? join({endpoint.account_required,
                               ": there is none in region ", in_quotes(region)})
                       : join({endpoint.account_required,
                               ": there is none with FIPS, and ", fips});
}

// DynamoDB has more rules than other services.  REQUIRES: there is an endpoint.
void adapt_to_dynamodb(ServiceEndpoint& endpoint) {
  if (!endpoint.url) return set_account(endpoint);
  endpoint.account_required.clear();
  if (is_dual_stack_url(endpoint.endpoint, endpoint.region)) {
    endpoint.error =
        join({endpoint.url.source,
              " names a dual-stack endpoint of AWS, which only "
              "AWS_USE_DUALSTACK_ENDPOINT or use_dualstack_endpoint may "
              "choose"});
  }
}

// Sets AWS's own endpoint.  REQUIRES: its region is set.
void find_in_region(Service service, ServiceEndpoint& endpoint) {
  std::string& region = endpoint.region;
  const std::string& why = why_special(endpoint);
  if (service == Service::sts && region == kGlobalRegion && why.empty()) {
    endpoint.endpoint = "https://sts.amazonaws.com";
    region = kUsEast1;
    return;
  }
  if (service == Service::dynamodb && region == kLocalRegion) {
    endpoint.error = why + kIsThisHost;  // "fips-local"
    return;
  }
  const Partition& partition = partition_of(region);
  const bool dual_stack = !endpoint.dual_stack.empty();
  const bool gov = partition.name == "aws-us-gov"sv;
  // In GovCloud, the usual endpoints are FIPS ones.
  const bool usual = endpoint.fips.empty() || (gov && !dual_stack);
  endpoint.suffix =
      join({region, ".",
            dual_stack ? partition.dual_stack_suffix : partition.suffix});
  endpoint.endpoint = join(
      {"https://", name_of(service), usual ? "." : "-fips.", endpoint.suffix});
}

// Sets the configured endpoint, or the error.
void use_configured_url(Service service, ServiceEndpoint& endpoint) {
  check_any_endpoint(endpoint);
  if (!endpoint.error.empty()) return;
  endpoint.endpoint = endpoint.url.value;
  const bool no_path = parts_of(endpoint.endpoint).path == "/"sv;
  if (service == Service::sts && no_path) endpoint.endpoint.pop_back();
}

// The account in the table's ARN; empty if `table` is no ARN of that region.
// Its URL is preferred to that of the keys' account, as in AWS's SDKs.
std::string account_of_table(const std::string& table,
                             const std::string& region) {
  // "arn:aws:dynamodb:eu-west-1:123456789012:table/locks"
  std::string_view rest = table;
  if (sigv4::cut(rest, ':') != "arn"sv) return "";
  sigv4::cut(rest, ':');  // The partition.
  if (sigv4::cut(rest, ':') != "dynamodb"sv || sigv4::cut(rest, ':') != region)
    return "";
  const std::string_view account = sigv4::cut(rest, ':');
  return std::string(rest.empty() ? "" : account);
}

}  // namespace

void check_any_endpoint(ServiceEndpoint& endpoint) {
  const std::string& why = why_special(endpoint);
  if (endpoint.url && !why.empty()) {
    endpoint.error =
        join({why, ", but ", endpoint.url.source,
              " names an endpoint, and it cannot be known whether that is a ",
              endpoint.fips.empty() ? "dual-stack" : "FIPS", " one"});
    return;
  }
  check_url(endpoint);
}

void find_any_endpoint(Service service, const Setting& region,
                       ServiceEndpoint& endpoint) {
  const bool fips = asks_for_fips(region.value);
  if (fips) endpoint.fips = join({region.source, " asks for FIPS"});
  set_region(endpoint, region,
             fips ? without_fips(region.value) : region.value);
  if (!endpoint.error.empty()) return;
  if (endpoint.url) {
    use_configured_url(service, endpoint);
  } else {
    find_in_region(service, endpoint);
  }
  if (endpoint.error.empty() && service == Service::dynamodb) {
    adapt_to_dynamodb(endpoint);
  }
}

void use_account(const std::string& table, const std::string& account_id,
                 ServiceEndpoint& endpoint) {
  if (endpoint.suffix.empty()) return;
  const std::string of_table = account_of_table(table, endpoint.region);
  const std::string& account = of_table.empty() ? account_id : of_table;
  if (is_host_label(account)) {
    endpoint.endpoint = join({"https://", account, ".ddb.", endpoint.suffix});
  } else if (!account.empty()) {
    endpoint.error = "the account id that came with the keys is not valid";
  } else if (!endpoint.account_required.empty()) {
    endpoint.error =
        join({endpoint.account_required,
              ", but the source of the keys does not name the account"});
  }
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
