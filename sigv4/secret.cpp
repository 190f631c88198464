#include "sigv4/secret.hpp"

#include <string.h>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

void wipe(std::string& text) noexcept {
  text.resize(text.capacity());  // Within its memory: cannot fail.
  explicit_bzero(text.data(), text.size());
  text.clear();
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
