// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A lease before the threads of its table know it, and after.
#include "held_lease.hpp"

#include <cassert>
#include <utility>

#include "attempt.hpp"
#include "requests.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

HeldLease::HeldLease(std::shared_ptr<MutexSettings> its_settings)
    : settings(std::move(its_settings)),
      lease(fresh_uuid(), settings->ttl, settings->place.policy) {}

HeldLease::~HeldLease() { assert(!renewal.planned() && !alarm.planned()); }

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
