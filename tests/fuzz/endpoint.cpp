// URLs, regions and account ids as people set them: a URL, a region and an id,
// each but the last with a record separator behind it; behind a third one
// whether FIPS and dual-stack are wanted, and how much an account's own URL is.
// What is accepted goes into the Host header and the signature.
#include "ddbmutex/dynamodb/endpoint.hpp"

#include <string>

#include "ddbmutex/dynamodb/client.hpp"
#include "sigv4/url.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tests {
namespace fuzz {
namespace {

using namespace ddbmutex;

bool has_line_break(const std::string& text) {
  return text.find_first_of(std::string("\r\n\0", 3)) != std::string::npos;
}

void check_url(const std::string& text) {
  const std::string normal = sigv4::normal_url(text);
  const sigv4::UrlParts url = sigv4::parts_of(normal);
  claim(sigv4::is_endpoint_url(text) == (is_visible(normal) && !normal.empty()),
        "an endpoint is a URL of visible characters");
  if (normal.empty()) return;
  claim(url.scheme == "http" || url.scheme == "https",
        "a URL is one of http or https");
  claim(!url.authority.empty() &&
            url.authority.find_first_of("@/?# \t") == std::string::npos,
        "an authority is a host and perhaps a port");
  claim(is_visible(url.authority), "an authority is fit for a header");
  claim(url.authority.front() != '[' ||
            text.substr(0, text.find(']')).find('%') == text.npos,
        "no zone is dropped from an address");
  claim(url.path.front() == '/' &&
            url.path.find_first_of("?#") == std::string::npos &&
            !has_line_break(std::string(url.path)),
        "a path is a path and nothing more");
  claim(sigv4::normal_url(normal) == normal,
        "a URL reads the same when it was written again");
}

struct Wanted {
  std::string url;
  std::string region;
  std::string account;
  bool fips = false;
  bool dual_stack = false;
  const char* mode = "";

  // As sigv4::Environment asks for a variable.
  std::string operator()(const char* variable) const {
    const std::string name = variable;
    if (name == "AWS_USE_FIPS_ENDPOINT") return fips ? "true" : "";
    if (name == "AWS_USE_DUALSTACK_ENDPOINT") {
      return dual_stack ? "true" : "false";
    }
    if (name == "AWS_ACCOUNT_ID_ENDPOINT_MODE") return mode;
    const bool file =
        name == "AWS_CONFIG_FILE" || name == "AWS_SHARED_CREDENTIALS_FILE";
    return file ? "/dev/null" : "";
  }
};

bool ends_with(const std::string& text, const std::string& with) {
  return text.size() >= with.size() &&
         text.compare(text.size() - with.size(), with.size(), with) == 0;
}

bool is_label(const std::string& text) {
  return !text.empty() && text.size() <= 63 && is_visible(text) &&
         text.front() != '-' && text.back() != '-' &&
         text.find_first_of(" ./:@%?#[]\\") == std::string::npos;
}

dynamodb::TargetOptions options_of(const Wanted& wanted) {
  dynamodb::TargetOptions options;
  options.endpoint = wanted.url;
  options.region = wanted.region;
  return options;
}

// A region that was told at last leads where one leads that was an option.
void check_late_region(const Wanted& wanted, const dynamodb::Target& target) {
  dynamodb::TargetOptions options = options_of(wanted);
  options.region = {};
  dynamodb::Target late = dynamodb::find_target(options, wanted);
  claim(late.region.empty() && late.endpoint.empty() &&
            late.error.empty() != late.region_sources.empty(),
        "without a region, the sources are told or an error");
  if (late.error.empty()) {
    dynamodb::complete(late, {wanted.region, "option region"});
    claim(late.error == target.error, "a late region fails as an early one");
  }
  claim(late.endpoint == target.endpoint && late.region == target.region &&
            late.suffix == target.suffix &&
            late.account_required == target.account_required,
        "a late region leads where an early one leads");
}

void check_account(const Wanted& wanted, const dynamodb::Target& target) {
  dynamodb::Target own = target;
  dynamodb::use_account(own, wanted.account);
  claim(own.endpoint.empty() != own.error.empty(),
        "there is a URL or an error");
  claim(is_one_line(own.error), "an error is a text for people");
  if (!own.error.empty() || own.endpoint == target.endpoint) return;
  claim(is_label(wanted.account), "an account id is a label of the DNS");
  claim(
      sigv4::is_endpoint_url(own.endpoint) &&
          own.endpoint == "https://" + wanted.account + ".ddb." + target.suffix,
      "an account's URL is the account's, and safe");
}

void check_found(const Wanted& wanted, const dynamodb::Target& target) {
  claim(is_label(target.region), "a region is a label of the DNS");
  claim(sigv4::is_endpoint_url(target.endpoint), "a target has an endpoint");
  if (!wanted.url.empty()) {
    claim(sigv4::normal_url(target.endpoint) == sigv4::normal_url(wanted.url),
          "the option's URL is used");
    claim(!wanted.fips && !wanted.dual_stack, "a URL is not passed over flags");
    return;
  }
  const bool local = target.endpoint == "http://localhost:8000";
  const std::string host = target.endpoint.substr(target.endpoint.find(':'));
  claim(local
            ? wanted.region == "local"
            : host.rfind("://dynamodb." + target.region + ".", 0) == 0 ||
                  host.rfind("://dynamodb-fips." + target.region + ".", 0) == 0,
        "an endpoint is that of its region");
  claim(local || target.endpoint.rfind("https://", 0) == 0,
        "no endpoint of AWS's is http");
  claim(local || ends_with(wanted.region, target.region) ||
            wanted.region.find("fips") != std::string::npos,
        "a region is the one that was named");
}

void check_target(const Wanted& wanted) {
  const auto target = dynamodb::find_target(options_of(wanted), wanted);
  const bool awaits_region =
      target.endpoint.empty() && !target.region_sources.empty();
  claim(target.endpoint.empty() == target.region.empty() &&
            (target.endpoint.empty() && !awaits_region) != target.error.empty(),
        "there is a target or an error, unless its region is to come");
  claim(!awaits_region || wanted.region.empty(),
        "none is to come if one is named");
  if (!wanted.region.empty()) check_late_region(wanted, target);
  if (awaits_region) return;
  if (target.error.empty()) {
    check_found(wanted, target);
    check_account(wanted, target);
    return;
  }
  claim(Bytes(target.option) == "region" || Bytes(target.option) == "endpoint",
        "an error names the option that mends it");
  claim(is_one_line(target.error), "an error is a text for people");
  const bool plain = !wanted.fips && !wanted.dual_stack &&
                     wanted.mode == std::string("disabled") &&
                     wanted.url.find(".api.") == std::string::npos &&
                     wanted.region.find("fips") == std::string::npos;
  claim(!plain || !sigv4::is_host_label(wanted.region) ||
            (!wanted.url.empty() && !sigv4::is_endpoint_url(wanted.url)),
        "a target is refused only if something is bad");
}

}  // namespace

void endpoint(Bytes bytes) {
  Input input(bytes);
  Wanted wanted;
  wanted.url = input.part();
  wanted.region = input.part();
  wanted.account = input.part();
  wanted.fips = input.choice(2) == 1;
  wanted.dual_stack = input.choice(2) == 1;
  constexpr const char* kModes[] = {"", "disabled", "preferred", "required"};
  wanted.mode = kModes[input.choice(4)];
  check_url(wanted.url);
  check_target(wanted);
}

}  // namespace fuzz
}  // namespace tests
