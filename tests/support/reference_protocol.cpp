#include "tests/support/reference_protocol.hpp"

#include <algorithm>

namespace reference {

using ddbmutex::lock::kBeyondAllClocks;
using ddbmutex::lock::kFrontEndSkew;
using std::chrono::nanoseconds;
using namespace std::chrono_literals;
using Outcome = Reply::Outcome;
using Verb = Request::Verb;

namespace {

constexpr std::size_t kListedAtMost = 16;
constexpr std::size_t kRememberedByTake = 1000;
constexpr int kTriesAtOnce = 2;

nanoseconds percent_of(nanoseconds lease) { return lease / 100; }

// For a clock that is slow by 1 %, or a stop of 1.25 s.
nanoseconds given_up_of(nanoseconds lease) {
  if (lease <= 10s) return lease / 8;
  return lease < 125s ? 1250ms : percent_of(lease);
}

bool same_record(const Row& a, const Row& b) {
  return a.kind == Row::Kind::record && b.kind == Row::Kind::record &&
         a.uuid == b.uuid && a.expires == b.expires && a.lease == b.lease;
}

// The value of `:earliest`.
ServiceTime over_before(const RowUse& use, BootTime now,
                        const ServiceClock& clock) {
  if (!clock.known()) return ServiceTime(1);
  const nanoseconds allowed = use.margin;
  return clock.earliest(now) -
         (allowed > kFrontEndSkew ? allowed : nanoseconds(kFrontEndSkew));
}

bool free_to_take(const RowUse& use, const Row& row, BootTime now,
                  const ServiceClock& clock, const Sightings& sightings) {
  if (row.kind == Row::Kind::absent || row.kind == Row::Kind::bare) return true;
  if (row.kind != Row::Kind::record) return false;
  const bool over = row.expires >= ServiceTime::zero() &&
                    row.expires < over_before(use, now, clock);
  return over || sightings.stale(now);
}

Request look(bool consistent) {
  Request request;
  request.verb = Verb::look;
  request.consistent = consistent;
  return request;
}

}  // namespace

void Sightings::see(const Row& row, BootTime received) {
  all_.push_back({row, received});
}

BootTime Sightings::stale_at() const {
  if (all_.empty()) return BootTime::max();
  const Row& row = last();
  if (row.kind != Row::Kind::record || !row.lease) return BootTime::max();
  std::size_t first = all_.size() - 1;
  while (first > 0 && same_record(all_[first - 1].row, row)) --first;
  return all_[first].received + *row.lease + percent_of(*row.lease);
}

// What the history tells.

bool Protocol::stamped(std::size_t i) const {
  const Verb verb = history_[i].request.verb;
  return verb == Verb::take || verb == Verb::renew;
}

bool Protocol::may_be_in_the_row(std::size_t i) const {
  const auto& reply = history_[i].reply;
  return stamped(i) && !(reply && reply->outcome == Outcome::unsent);
}

bool Protocol::told_of_the_row(std::size_t i) const {
  const auto& reply = history_[i].reply;
  return reply && (reply->outcome == Outcome::done ||
                   reply->outcome == Outcome::refused);
}

std::optional<std::size_t> Protocol::last_told(Call call) const {
  for (std::size_t i = history_.size(); i-- > 0;) {
    if (history_[i].call == call && told_of_the_row(i)) return i;
  }
  return std::nullopt;
}

bool Protocol::applied_and_tells(const Exchange& exchange) const {
  const Request& request = exchange.request;
  return exchange.reply->outcome == Outcome::done &&
         ((request.verb == Verb::take && use_.takes_by_update()) ||
          (request.verb == Verb::renew && request.tell));
}

// The last exchange that told which of our stamps the row bears.
std::optional<std::size_t> Protocol::last_own() const {
  for (std::size_t i = history_.size(); i-- > 0;) {
    if (history_[i].own) return i;
  }
  return std::nullopt;
}

// The exchanges whose stamps the row may bear or come to bear, oldest first.
// Each write consumes the version before it, so what was sent before the stamp
// that the row was last known to bear is out.  Of a take's, a later one that
// found a thousand before it has pushed out the oldest.
std::vector<std::size_t> Protocol::remembered() const {
  const auto told = last_own();
  std::vector<std::size_t> all;
  std::size_t last_put = 0;
  for (std::size_t i = told ? *history_[*told].own : 0; i < history_.size();
       ++i) {
    if (may_be_in_the_row(i)) all.push_back(i);
    if (history_[i].request.verb == Verb::take) last_put = i;
  }
  std::size_t let_go = 0;
  while (let_go + kRememberedByTake - 1 < all.size() &&
         last_put > all[let_go + kRememberedByTake - 1]) {
    ++let_go;
  }
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(let_go));
  return all;
}

ServiceTime Protocol::lowest_stamp() const {
  ServiceTime lowest = ServiceTime::max();
  for (const std::size_t i : remembered()) {
    lowest = std::min(lowest, history_[i].request.stamp);
  }
  return lowest;
}

bool Protocol::release_may_be_applied() const {
  for (const Exchange& exchange : history_) {
    if (exchange.request.verb == Verb::release && exchange.reply &&
        exchange.reply->outcome == Outcome::unknown) {
      return true;
    }
  }
  return false;
}

bool Protocol::releasing() const {
  return !history_.empty() && history_.back().call == Call::release;
}

// How often in a row a take went on at once because the row that it was told
// seemed free, before the answer that is being judged.
int Protocol::tries_at_once() const {
  int tries = 0;
  for (std::size_t i = history_.size() - 1; i-- > 0;) {
    const Exchange& exchange = history_[i];
    if (exchange.verdict == Verdict::busy && told_of_the_row(i)) break;
    if (told_of_the_row(i) && !exchange.own && exchange.reply->row) ++tries;
  }
  return tries;
}

// The stamp that the row bore by the last answer but the one being judged.
std::optional<std::size_t> Protocol::confirmed_before() const {
  for (std::size_t i = history_.size() - 1; i-- > 0;) {
    if (history_[i].own) return history_[i].own;
  }
  return std::nullopt;
}

std::vector<ServiceTime> Protocol::own_for_take() const {
  auto all = remembered();
  if (all.size() > kListedAtMost) {  // The first and the last.
    all.erase(all.begin() + 1, all.end() - (kListedAtMost - 1));
  }
  std::vector<ServiceTime> own;
  for (const std::size_t i : all) own.push_back(history_[i].request.stamp);
  return own;
}

// The stamp that the row was last known to bear and every one sent since; but
// if a consistent look told that one, those sent since the look.
std::vector<ServiceTime> Protocol::own_for_renewal() const {
  const std::size_t told = *last_own();
  const std::size_t borne = *history_[told].own;
  const std::size_t since = history_[told].request.consistent ? told : borne;
  std::vector<ServiceTime> own = {history_[borne].request.stamp};
  for (const std::size_t i : remembered()) {
    if (i > since && i != borne) own.push_back(history_[i].request.stamp);
  }
  return own;
}

bool Protocol::settling() const {
  const auto told = last_told(Call::take);
  return told && history_[*told].own && history_[*told].unsettled;
}

// What to send.

Request Protocol::next(Call call, BootTime now, const ServiceClock& clock,
                       const Sightings& sightings) {
  Exchange exchange;
  exchange.call = call;
  exchange.request = wanted(call, now, clock, sightings);
  exchange.at = now;
  exchange.contradictions = clock.contradictions();
  if (clock.known()) exchange.earliest = clock.earliest(now);
  const Request request = exchange.request;
  history_.push_back(std::move(exchange));
  if (call == Call::renew && history_.back().request.verb != Verb::release) {
    apply(clock);
  }
  return request;
}

Request Protocol::wanted(Call call, BootTime now, const ServiceClock& clock,
                         const Sightings& sightings) const {
  if (call == Call::release) return wanted_release();
  if (call == Call::take) return wanted_take(now, clock, sightings);
  const auto told = last_told(Call::renew);
  if (told && history_[*told].reply->outcome == Outcome::refused &&
      !history_[*told].reply->row) {
    return look(true);
  }
  return renewal(now, clock);
}

Request Protocol::wanted_take(BootTime now, const ServiceClock& clock,
                              const Sightings& sightings) const {
  if (use_.calendars && !clock.known()) return look(true);
  if (!may_stamp(now, clock)) return look(true);
  const auto told = last_told(Call::take);
  if (!told) return put(now, clock, sightings);
  const Exchange& last = history_[*told];
  if (settling()) return renewal(now, clock);
  if (last.own) return put(now, clock, sightings);
  if (!last.reply->row) return look(true);
  if (!free_to_take(use_, *last.reply->row, now, clock, sightings)) {
    return look(false);
  }
  return put(now, clock, sightings);
}

// DynamoDB's time is known well enough, or a look has just been answered.
bool Protocol::may_stamp(BootTime now, const ServiceClock& clock) const {
  if (!clock.known()) return clock.silent();
  if (clock.latest(now) - clock.earliest(now) <= 3s) return true;
  for (const Exchange& exchange : history_) {
    const bool looked = exchange.request.verb == Verb::look &&
                        exchange.call != Call::release && exchange.reply;
    if (!looked || now > exchange.reply->received + 30s) continue;
    const Outcome outcome = exchange.reply->outcome;
    if (outcome == Outcome::done) return true;
    if (outcome == Outcome::refused && exchange.call == Call::renew) {
      return true;
    }
  }
  return false;
}

Request Protocol::put(BootTime now, const ServiceClock& clock,
                      const Sightings& sightings) const {
  Request request;
  request.verb = Verb::take;
  request.uuid = uuid_;
  request.stamp = stamp(now, clock);
  request.lease = std::chrono::duration_cast<std::chrono::milliseconds>(ttl_);
  request.earliest = over_before(use_, now, clock);
  if (sightings.stale(now)) {
    request.seen =
        Request::Version{sightings.last().uuid, sightings.last().expires};
  }
  request.own = own_for_take();
  return request;
}

Request Protocol::renewal(BootTime now, const ServiceClock& clock) const {
  Request request;
  request.verb = Verb::renew;
  request.uuid = uuid_;
  request.own = own_for_renewal();
  if (request.own.size() > kListedAtMost || !may_stamp(now, clock)) {
    return look(true);
  }
  request.stamp = stamp(now, clock);
  request.tell = use_.keep && !granted();
  if (granted()) request.changes = changes_;
  if (request.changes) request.token = token();
  return request;
}

Request Protocol::wanted_release() const {
  const auto told = last_told(Call::release);
  if (told && history_[*told].request.verb == Verb::release &&
      !history_[*told].reply->row) {
    return look(true);
  }
  Request request;
  request.verb = Verb::release;
  request.uuid = uuid_;
  request.changes = changes_;
  if (request.changes) request.token = token();
  return request;
}

ServiceTime Protocol::stamp(BootTime now, const ServiceClock& clock) const {
  std::vector<ServiceTime> past;  // Of stamps that are no longer remembered.
  std::vector<ServiceTime> present;
  const auto all = remembered();
  std::int64_t number = 1;
  for (std::size_t i = 0; i < history_.size(); ++i) {
    if (stamped(i)) ++number;
    if (!may_be_in_the_row(i)) continue;
    const bool kept = std::binary_search(all.begin(), all.end(), i);
    (kept ? present : past).push_back(history_[i].request.stamp);
  }
  if (!clock.known() || !use_.tells_end) {
    return kBeyondAllClocks + ServiceTime(number);
  }

  ServiceTime wanted = clock.latest(now) + ttl_ + use_.margin;
  for (const ServiceTime old : past) {
    if (number < 1000 || old >= kBeyondAllClocks) continue;
    wanted = std::max(wanted, old + ServiceTime(1));
  }
  ServiceTime value = wanted;
  while (value.count() % 1000 != number % 1000) value += ServiceTime(1);
  while (std::count(present.begin(), present.end(), value) > 0) {
    value += ServiceTime(1000);
  }
  return value;
}

// What an answer means.

void Protocol::apply(const ServiceClock& clock) {
  if (!granted()) return;
  bounds_.push_back(claim_from(granted_by_, clock));
}

BootTime Protocol::claim_end() const {
  if (!granted() || releasing()) return BootTime::min();
  return *std::min_element(bounds_.begin(), bounds_.end());
}

bool Protocol::hand_over(BootTime now, int limit) {
  if (!granted() || releasing()) return false;
  const bool own_row = use_.keep ||
                       (use_.take == RowUse::Take::usual && use_.keep_data) ||
                       use_.take == RowUse::Take::updates;
  std::size_t first = 0;
  while (history_[first].verdict != Verdict::ours) ++first;
  const nanoseconds age = now - history_[*history_[first].own].at;
  const nanoseconds left = claim_end() - now;
  const bool may = handed_over_ < limit && 2 * age < ttl_ && 2 * left > ttl_;
  if (own_row || !may) return false;
  ++handed_over_;
  return true;
}

BootTime Protocol::renew_at(nanoseconds age) const {
  std::size_t i = history_.size() - 1;
  while (history_[i].verdict != Verdict::ours || !history_[i].reply) --i;
  return history_[*history_[i].own].at + age;
}

// What the answer told that granted the lock.
std::int64_t Protocol::token() const {
  for (const Exchange& exchange : history_) {
    if (exchange.call != Call::take || exchange.verdict != Verdict::ours) {
      continue;
    }
    const auto& row = exchange.reply->row;
    return use_.keep && row ? row->token : 0;
  }
  return 0;
}

bool Protocol::stands() const {
  for (std::size_t i = history_.size(); i-- > 0;) {
    const Exchange& exchange = history_[i];
    if (exchange.call != Call::take || !told_of_the_row(i)) continue;
    if (exchange.own || applied_and_tells(exchange)) return true;
    if (exchange.reply->row) return false;
  }
  return false;
}

Verdict Protocol::heard(Reply&& reply, const ServiceClock& clock,
                        Sightings& sightings) {
  Exchange& exchange = history_.back();
  // Until it is judged, what was to be sent counts as if it had been.
  if (exchange.call != Call::release) apply(clock);
  exchange.reply = std::move(reply);
  switch (exchange.call) {
    case Call::take:
      find_own(exchange);
      exchange.verdict = judge_take(exchange, clock, sightings);
      break;
    case Call::renew:
      find_own(exchange);
      exchange.verdict = judge_renewal(exchange, clock);
      break;
    case Call::release:
      exchange.verdict = judge_release(exchange);
      break;
  }
  return exchange.verdict;
}

// The exchange whose stamp that row bears.
std::optional<std::size_t> Protocol::borne_by(const Row& row) const {
  if (row.kind != Row::Kind::record || row.uuid != uuid_) return std::nullopt;
  const bool counted_on = granted() && use_.keep && row.token != token();
  if (counted_on) return std::nullopt;
  for (const std::size_t i : remembered()) {
    if (history_[i].request.stamp == row.expires) return i;
  }
  return std::nullopt;
}

// Which stamp of ours the row is now known to bear.
void Protocol::find_own(Exchange& exchange) const {
  const Reply& reply = *exchange.reply;
  const bool write = exchange.request.verb != Verb::look;
  const bool applied = reply.outcome == Outcome::done && write;
  // A record that cannot be read has no token to go by.
  const bool readable = !applied_and_tells(exchange) ||
                        (reply.row && reply.row->kind == Row::Kind::record);
  if (applied) {
    if (readable) exchange.own = history_.size() - 1;
  } else if (reply.row) {
    exchange.own = borne_by(*reply.row);
  }
  if (!exchange.own) return;
  for (std::size_t i = *exchange.own + 1; i < history_.size(); ++i) {
    if (use_.keep && may_be_in_the_row(i)) exchange.unsettled = true;
  }
}

Verdict Protocol::judge_take(const Exchange& exchange,
                             const ServiceClock& clock, Sightings& sightings) {
  const Reply& reply = *exchange.reply;
  if (!told_of_the_row(history_.size() - 1)) return Verdict::again;
  if (exchange.own) return judge_own_take(exchange, clock);
  if (!reply.row) return Verdict::again;
  if (applied_and_tells(exchange)) return Verdict::bad_record;
  if (reply.row->kept && !use_.keep) {
    sightings.forget();
    return Verdict::kept_row;
  }
  sightings.see(*reply.row, reply.received);
  if (use_.calendars && !clock.known()) return Verdict::no_date;
  if (reply.row->kind == Row::Kind::unknown) return Verdict::bad_record;
  const bool bare = reply.row->kind == Row::Kind::bare;
  if (bare && !use_.keep) return Verdict::bad_record;
  const bool absent = reply.row->kind == Row::Kind::absent;
  if (absent && use_.must_exist) return Verdict::no_row;
  if (!free_to_take(use_, *reply.row, reply.received, clock, sightings)) {
    return Verdict::busy;
  }
  return tries_at_once() < kTriesAtOnce ? Verdict::again : Verdict::busy;
}

Verdict Protocol::judge_own_take(const Exchange& exchange,
                                 const ServiceClock& clock) {
  if (exchange.unsettled) return Verdict::again;
  const BootTime end = claim_from(*exchange.own, clock);
  if (exchange.reply->received >= end) return Verdict::again;
  grant(*exchange.own, clock);
  return Verdict::ours;
}

Verdict Protocol::judge_renewal(const Exchange& exchange,
                                const ServiceClock& clock) {
  const Reply& reply = *exchange.reply;
  if (!told_of_the_row(history_.size() - 1)) return Verdict::again;
  if (exchange.own) {
    if (exchange.own == confirmed_before()) return Verdict::again;
    if (reply.received >= claim_end()) return Verdict::expired;
    grant(*exchange.own, clock);
    return reply.received < claim_end() ? Verdict::ours : Verdict::expired;
  }
  if (!reply.row) return Verdict::again;
  return reply.row->kind == Row::Kind::absent ? Verdict::deleted
                                              : Verdict::taken;
}

Verdict Protocol::judge_release(const Exchange& exchange) const {
  const Reply& reply = *exchange.reply;
  if (!told_of_the_row(history_.size() - 1)) return Verdict::again;
  if (exchange.request.verb == Verb::release) {
    if (reply.outcome == Outcome::done) return Verdict::released;
    if (release_may_be_applied() || !granted()) return Verdict::released;
    const BootTime end = *std::min_element(bounds_.begin(), bounds_.end());
    if (reply.received >= end) return Verdict::released;
    if (!reply.row) return Verdict::again;
  }
  if (reply.row->kind == Row::Kind::absent) return Verdict::deleted;
  const bool is_ours =
      reply.row->kind == Row::Kind::record && reply.row->uuid == uuid_;
  if (!is_ours) return Verdict::taken;
  const bool is_free = use_.keep && reply.row->expires == ServiceTime::zero();
  if (is_free) return Verdict::released;
  const bool counted_on = use_.keep && reply.row->token != token();
  return counted_on ? Verdict::taken : Verdict::again;
}

BootTime Protocol::claim_from(std::size_t own,
                              const ServiceClock& clock) const {
  const Exchange& sent = history_[own];
  const nanoseconds holds = ttl_ - given_up_of(ttl_);
  std::vector<BootTime> ends = {
      sent.at + holds,
      clock.when_latest_is(lowest_stamp() - nanoseconds(use_.margin))};
  if (clock.contradictions() != sent.contradictions) {
    ends.push_back(clock.when_latest_is(sent.earliest + holds));
  }
  return *std::min_element(ends.begin(), ends.end());
}

void Protocol::grant(std::size_t own, const ServiceClock& clock) {
  bounds_ = {claim_from(own, clock)};
  granted_by_ = own;
}

}  // namespace reference
