// Objects with several owners, of which there are few.
#ifndef DDBMUTEX_SIGV4_SHARED_HPP
#define DDBMUTEX_SIGV4_SHARED_HPP

#include <memory>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

inline std::shared_ptr<void> own(void* object, void (*destroy)(void*)) {
  return {object, destroy};
}

// As std::make_shared(), which has 700 bytes of code for each type; this has
// one control block for all types, and so an allocation more.
template <class T, class... Arguments>
std::shared_ptr<T> share(Arguments&&... arguments) {
  T* const object = new T{std::forward<Arguments>(arguments)...};
  return {own(object, [](void* it) { delete static_cast<T*>(it); }), object};
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_SHARED_HPP
