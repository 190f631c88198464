// URLs and regions as people set them: a URL, a record separator, a region.
// What is accepted goes into the Host header and the signature.
#include "dynamodb/endpoint.hpp"

#include <string>

#include "dynamodb/client.hpp"
#include "sigv4/http.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tests {
namespace fuzz {
namespace {

using namespace ddbmutex;

std::string written(const sigv4::Url& url) {
  return url.scheme + "://" + url.authority + url.path;
}

bool has_line_break(const std::string& text) {
  return text.find_first_of(std::string("\r\n\0", 3)) != std::string::npos;
}

void check_url(const std::string& text) {
  const auto url = sigv4::parse_url(text);
  claim(dynamodb::is_endpoint(text) == (url && url->path == "/"),
        "an endpoint is a URL without a path");
  if (!url) return;
  claim(url->scheme == "http" || url->scheme == "https",
        "a URL is one of http or https");
  claim(!url->authority.empty() &&
            url->authority.find_first_of("@/?# \t") == std::string::npos,
        "an authority is a host and perhaps a port");
  claim(is_visible(url->authority), "an authority is fit for a header");
  claim(url->authority.front() != '[' ||
            text.substr(0, text.find(']')).find('%') == text.npos,
        "no zone is dropped from an address");
  claim(url->path.front() == '/' &&
            url->path.find_first_of("?#") == std::string::npos &&
            !has_line_break(url->path),
        "a path is a path and nothing more");
  const auto again = sigv4::parse_url(written(*url));
  claim(again && written(*again) == written(*url),
        "a URL reads the same when it was written again");
}

void check_region(const std::string& text) {
  if (!dynamodb::is_region(text)) return;
  claim(text.size() <= 63 && is_visible(text) && text.front() != '-' &&
            text.back() != '-' &&
            text.find_first_of(" ./:@%") == std::string::npos,
        "a region is a label of the DNS");
  const std::string endpoint = dynamodb::endpoint_of(text);
  claim(dynamodb::is_endpoint(endpoint), "a region has an endpoint");
  claim(text == "local" ||
            endpoint.rfind("https://dynamodb." + text + ".", 0) == 0,
        "an endpoint is that of its region, and safe");
}

void check_target(const std::string& url, const std::string& region) {
  dynamodb::TargetOptions options;
  options.endpoint = url;
  options.region = region;
  options.profile.config_file = "/dev/null";
  options.profile.credentials_file = "/dev/null";
  const auto target = dynamodb::find_target(
      options, [](const char*) { return std::optional<std::string>(); });
  const bool good = dynamodb::is_region(region) &&
                    (url.empty() || dynamodb::is_endpoint(url));
  claim(target.error.empty() == good, "a target is refused only if it is bad");
  claim(target.endpoint.empty() != good && target.region.empty() != good,
        "there is a target or an error");
  if (good) {
    claim(url.empty() || target.endpoint == url, "the option's URL is used");
    return;
  }
  claim(target.option == "region" || target.option == "endpoint",
        "an error names the option that mends it");
  claim(is_visible(target.error), "an error is a text for people");
}

}  // namespace

void endpoint(Bytes bytes) {
  Input input(bytes);
  const std::string url(input.part());
  const std::string region(input.part());
  check_url(url);
  check_region(region);
  check_target(url, region);
}

}  // namespace fuzz
}  // namespace tests
