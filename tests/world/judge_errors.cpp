// Which errors a call may report, and when.
#include <algorithm>

#include "tests/world/judge.hpp"

namespace world {

using ddbmutex::Errc;

void Judge::check_code(const Call& call, const Result& result) {
  if (!result.code || is_possible(call, result.code)) return;
  wrong("an error without a reason: " + result.code.message(),
        text_of(call) + ": " + result.text);
}

bool Judge::is_possible(const Call& call, std::error_code code) const {
  if (code.category() != ddbmutex::category()) {
    return is_possible_of_system(call, code);
  }
  const auto error = static_cast<Errc>(code.value());
  return is_possible_of_keys(call, error) || is_possible_of_row(call, error) ||
         is_possible_of_request(call, error) ||
         is_possible_of_mutex(call, error);
}

// By another thread, which may not have got to it yet.
bool Judge::is_being_unlocked(const WatchedMutex* mutex) const {
  return std::any_of(calls_.begin(), calls_.end(), [&](const Call& call) {
    return call.mutex == mutex && call.lets_go;
  });
}

// Codes that are no Errc.
bool Judge::is_possible_of_system(const Call& call,
                                  std::error_code code) const {
  if (code == std::errc::not_enough_memory) return memory_fails_;
  if (code.category() != std::generic_category()) return false;
  if (code == std::errc::resource_deadlock_would_occur) {
    // If calls may return late, the program does not know which thread was the
    // last to lock it.
    const bool unsure = !prompt() && call.mutex->locked > 0;
    return call.for_ever && !call.any_of &&
           (call.in_callback || call.again || unsure ||
            is_being_unlocked(call.mutex));
  }
  // "cannot start a thread".
  return code == std::errc::resource_unavailable_try_again && memory_fails_;
}

// Whether the call's keys may be refused at times.
bool Judge::may_have_bad_keys(const Call& call) const {
  return plan_.weather.rejected_keys > 0 ||
         (call.table != nullptr && call.table->bad_keys);
}

bool Judge::is_possible_of_keys(const Call& call, Errc error) const {
  switch (error) {
    case Errc::no_keys:
      return may_have_bad_keys(call) || memory_fails_ ||
             (call.table != nullptr && call.table->slow_keys);
    case Errc::bad_keys:
      // "No host's time of day matters" if answers tell DynamoDB's, and if
      // there is time to sign anew.
      return may_have_bad_keys(call) ||
             (wrong_calendars_ &&
              (!plan_.front_ends.date ||
               call.since.kept() > nanoseconds::zero() ||
               (call.table != nullptr && call.table->slow_keys)));
    case Errc::expired_keys:
      return may_have_bad_keys(call);
    default:
      return false;
  }
}

// Codes that say what is in the table.
bool Judge::is_possible_of_row(const Call& call, Errc error) const {
  switch (error) {
    case Errc::condition_failed:
      return call.has_condition;
    case Errc::wrong_table:
      return plan_.has_wrong_key();
    case Errc::bad_record:
    case Errc::kept_row:
      return others_ || is_odd(call) ||
             (call.mutex == nullptr && plan_.odd_row);  // inspect()
    case Errc::no_row:
      return call.what.compare(0, 5, "AnyOf") == 0 || is_odd(call);
    case Errc::not_supported:
      return !plan_.front_ends.date;
    default:
      return false;
  }
}

// Transient errors.
bool Judge::is_possible_of_request(const Call& call, Errc error) const {
  switch (error) {
    case Errc::unreachable:
    case Errc::disconnected:
    case Errc::throttled:
    case Errc::unavailable:
      return !quiet_ || may_have_bad_keys(call);
    case Errc::bad_answer:
      return plan_.weather.truncated > 0;
    case Errc::timed_out:
      // TableOptions::patience is for each page, and for asking anew with a
      // corrected time.
      if (call.mutex == nullptr && !call.any_of && call.table != nullptr) {
        const Host& host = *call.since.process->host;
        return !quiet_ || !prompt() || may_have_bad_keys(call) ||
               call.table->slow_keys ||
               call.table->patience < (wrong_calendars_ ? 2 : 1) *
                                          (of_a_page(host) + round_trip(host));
      }
      // It may get its turn when there is no time left to ask.
      return call.mutex == nullptr || !quiet_ || !prompt() || call.open_ended ||
             !call.alone || !surely_answered(*call.mutex) ||
             call.limit < 8 * round_trip(*call.since.process->host);
    default:
      return false;
  }
}

// Codes that tell the state of the mutex or of the call.
bool Judge::is_possible_of_mutex(const Call& call, Errc error) {
  switch (error) {
    case Errc::bad_option:
      return call.bad_option;
    case Errc::closed:
      return call.table != nullptr && call.table->closed;
    case Errc::cancelled:
      return call.mutex != nullptr &&
             (call.mutex->gone || call.mutex->cancel_ended >= call.since.began);
    case Errc::not_held:
    case Errc::lease_lost:
    case Errc::ends_too_soon:
      return !call.gets_lock || call.mutex == nullptr;
    default:
      return false;
  }
}

}  // namespace world
