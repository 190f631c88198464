// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// libcurl reads and writes the URLs; parts_of() only cuts its result.
#include "url.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

#include "memory.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// If the URL has no "//", only the scheme is set.
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

namespace {

// False for URLs that libcurl accepts and we do not.  libcurl also accepts one
// slash or three, and does not distinguish an empty query or fragment from
// none.  It decodes percent signs in a host, which may then look like another
// host, and changes a host that is not ASCII.
bool may_be_normal(std::string_view text) {
  const std::string_view authority = parts_of(text).authority;
  const auto is_plain = [](char c) {
    return c > ' ' && c <= '~' && c != '%' && c != '@';
  };
  return !authority.empty() && sigv4::consists_of(authority, is_plain) &&
         text.find_first_of("?#") == text.npos;
}

}  // namespace

std::string normal_url(const std::string& text) {
  if (!may_be_normal(text)) return "";
  const std::unique_ptr<CURLU, void (*)(CURLU*)> url(curl_url(),
                                                     &curl_url_cleanup);
  if (url == nullptr) no_memory();
  char* found = nullptr;
  CURLUcode code = curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0);
  if (code == CURLUE_OK) {
    code =
        curl_url_get(url.get(), CURLUPART_URL, &found, CURLU_NO_DEFAULT_PORT);
  }
  if (code == CURLUE_OUT_OF_MEMORY) no_memory();
  const std::unique_ptr<char, void (*)(void*)> normal(found, &curl_free);
  const bool is_http =
      found != nullptr && (sigv4::begins_with(found, "http://") ||
                           sigv4::begins_with(found, "https://"));
  return is_http ? found : "";
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
