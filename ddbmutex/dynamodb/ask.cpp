// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// ask() sends a request and retries it.  The other calls use it.
#include "ask.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "../../sigv4/text.hpp"
#include "description.hpp"
#include "item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

namespace {

Answer without_skewed_time(Answer answer) {
  if (answer.fault == Fault::skewed_time) {
    answer.fault = Fault::timed_out;
    answer.message = kNoTimeToSignAgain;
  }
  return answer;
}

}  // namespace

void set_cancelled(Answer& answer) {
  answer.set_fault(Fault::cancelled,
                   "cancelled before another request was sent");
}

Answer ask(const CallContext& context, Action action, std::string_view body,
           bool* maybe_applied, Reader reader, const Wanted& wanted) {
  Retry retry(context.budget, Retry::Urgency::can_wait);
  bool unknown = false;
  if (maybe_applied == nullptr) maybe_applied = &unknown;
  *maybe_applied = false;
  Answer answer;
  answer.action = action;
  std::optional<BootTime> begun;
  bool warned = false;
  for (bool is_retry = false;; is_retry = true) {
    const BootTime now = BootClock::now();
    if (!begun) begun = now;
    if (context.waker != nullptr && context.waker->woken()) {
      set_cancelled(answer);
      return answer;
    }
    if (now >= context.deadline) {
      // It has the last transient fault.
      if (is_retry) return without_skewed_time(std::move(answer));
      answer.fault = Fault::timed_out;
      answer.message = "the deadline has passed";
      return answer;
    }
    answer = context.carrier.carry(
        {action, std::string(body),
         std::min(context.deadline, now + context.request_timeout), reader,
         wanted},
        *context.waker);
    if (answered(answer.fault)) {
      retry.success();
      return answer;
    }
    if (answer.fault == Fault::cancelled) return answer;
    const bool of_pages = action == Action::scan || action == Action::query;
    if (answer.too_large && of_pages) return answer;
    const auto delay = retry.after(answer);
    if (!delay || context.deadline - BootClock::now() <= *delay) {
      return without_skewed_time(std::move(answer));
    }
    const BootTime next = BootClock::now() + *delay;
    context.client.warn_of_failing(answer, *begun, next, context.deadline,
                                   warned);
    *maybe_applied = *maybe_applied || answer.outcome_unknown();
    context.waker->wait_until(next);
  }
}

Answer describe_table(const CallContext& context, std::string_view table) {
  sigv4::Text body;
  JsonWriter json(body);
  json.begin_object();
  json.name("TableName").text(table);
  json.end_object();
  return dynamodb::ask(context, Action::describe_table, body, nullptr,
                       read_table);
}

void explain_wrong_key(const CallContext& context, std::string_view table,
                       const std::string& key, const std::string& sort_key,
                       Answer& answer) {
  Client& client = context.client;
  if (answer.fault != Fault::wrong_key || !client.should_describe_table()) {
    return;
  }
  const Answer description = describe_table(context, table);
  if (description.fault != Fault::none) return;
  std::string wrong = wrong_key(*description.table, key, sort_key);
  if (wrong.empty()) return;
  answer.message = wrong;
  client.set_table_key(Client::TableKey::wrong, std::move(wrong));
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
