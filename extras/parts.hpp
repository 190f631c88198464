// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The table of all parts: those of the core, and those of extras/keys and
// extras/endpoints.
#ifndef DDBMUTEX_EXTRAS_PARTS_HPP
#define DDBMUTEX_EXTRAS_PARTS_HPP

#include "../sigv4/parts.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

const Parts& all_parts();

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_EXTRAS_PARTS_HPP
