// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A callable passed to a function that calls it before it returns: as
// std::function, but without a copy and without an allocation.
//
//   void for_each(FunctionRef<void(const Item&)> visit);
//   for_each([&](const Item& item) { names.push_back(item.name); });
#ifndef DDBMUTEX_SIGV4_FUNCTION_REF_HPP
#define DDBMUTEX_SIGV4_FUNCTION_REF_HPP

#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

template <class Signature>
class FunctionRef;

// The callable must outlive it.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Callable>
  FunctionRef(const Callable& callable)
      : callable_(&callable),
        call_([](const void* the_callable, Arguments... arguments) -> Result {
          return (*static_cast<const Callable*>(the_callable))(
              std::forward<Arguments>(arguments)...);
        }) {}
  FunctionRef(const FunctionRef&) = default;
  FunctionRef& operator=(const FunctionRef&) = delete;

  Result operator()(Arguments... arguments) const {
    return call_(callable_, std::forward<Arguments>(arguments)...);
  }

 private:
  const void* callable_;
  Result (*call_)(const void* callable, Arguments... arguments);
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FUNCTION_REF_HPP
