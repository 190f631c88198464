#include "url.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

#include "memory.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Without "//" and an authority, only the scheme is set.
UrlParts parts_of(std::string_view url) {
  UrlParts parts;
  parts.scheme = sigv4::cut(url, ':');
  if (!sigv4::begins_with(url, "//")) return parts;
  url.remove_prefix(2);
  const std::size_t path = std::min(url.find('/'), url.size());
  parts.authority = url.substr(0, path);
  parts.path = url.substr(path);
  return parts;
}

// Checks what libcurl accepts and we do not.  libcurl also takes one slash or
// three, and does not tell an empty query or fragment from none.  It decodes a
// host, which may then look like another (an address, say), and spells a host
// that is not ASCII in its own way.
std::string normal_url(const std::string& text) {
  const auto is_plain = [](char c) {
    return c > ' ' && c <= '~' && c != '%' && c != '@';
  };
  const std::string_view given = parts_of(text).authority;
  std::string normal;
  if (given.empty() || !sigv4::consists_of(given, is_plain) ||
      std::string_view(text).find_first_of("?#") != text.npos) {
    return normal;
  }
  const std::unique_ptr<CURLU, void (*)(CURLU*)> url(curl_url(),
                                                     &curl_url_cleanup);
  const auto check = [](CURLUcode code) {
    if (code == CURLUE_OUT_OF_MEMORY) no_memory();
    return code == CURLUE_OK;
  };
  if (url == nullptr) no_memory();
  char* found = nullptr;
  if (check(curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0))) {
    check(
        curl_url_get(url.get(), CURLUPART_URL, &found, CURLU_NO_DEFAULT_PORT));
  }
  const std::unique_ptr<char, void (*)(void*)> whole(found, &curl_free);
  if (found != nullptr && (sigv4::begins_with(found, "http://") ||
                           sigv4::begins_with(found, "https://"))) {
    normal = found;
  }
  return normal;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
