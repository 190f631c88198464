#include "tests/support/simulated_hosts.hpp"

#include <algorithm>
#include <sstream>

namespace simulation {

using ddbmutex::lock::kBeyondAllClocks;
using Outcome = Reply::Outcome;
using Verb = Request::Verb;
using namespace std::chrono_literals;

namespace {

const char* name(Verb verb) {
  const char* const names[] = {"take", "renew", "release", "look"};
  return names[static_cast<int>(verb)];
}

const char* name(Verdict verdict) {
  const char* const names[] = {"ours",     "again",   "busy",     "bad_record",
                               "kept_row", "no_row",  "released", "taken",
                               "deleted",  "expired", "no_date"};
  return names[static_cast<int>(verdict)];
}

const char* name(Outcome outcome) {
  const char* const names[] = {"done", "refused", "unknown", "unsent"};
  return names[static_cast<int>(outcome)];
}

std::ostream& operator<<(std::ostream& out, nanoseconds value) {
  return out << value.count();
}

std::ostream& operator<<(std::ostream& out, BootTime value) {
  if (value == BootTime::max()) return out << "never";
  if (value == BootTime::min()) return out << "not granted";
  return out << "boot " << value.time_since_epoch();
}

std::ostream& operator<<(std::ostream& out, const Request& request) {
  out << name(request.verb);
  if (request.verb == Verb::look) {
    return out << (request.consistent ? " consistent" : "");
  }
  out << " uuid=" << request.uuid << " stamp=" << request.stamp;
  if (request.verb == Verb::take) out << " earliest=" << request.earliest;
  if (request.seen) {
    out << " seen=" << request.seen->uuid << "/" << request.seen->expires;
  }
  out << " own=[";
  for (const ServiceTime own : request.own) out << own << " ";
  return out << "]";
}

std::ostream& operator<<(std::ostream& out, const Row& row) {
  const char* const kinds[] = {"absent", "bare", "record", "unknown"};
  out << kinds[static_cast<int>(row.kind)] << " " << row.uuid << "/"
      << row.expires;
  if (row.kept) out << " token=" << row.token;
  out << " lease=";
  return row.lease ? out << nanoseconds(*row.lease) : out << "none";
}

Reply copy_of(const Reply& reply) {
  return {
      reply.outcome,
      reply.row != nullptr ? std::make_unique<const Row>(*reply.row) : nullptr,
      reply.received};
}

bool same(const Request& a, const Request& b) {
  const bool same_seen = a.seen.has_value() == b.seen.has_value() &&
                         (!a.seen || (a.seen->uuid == b.seen->uuid &&
                                      a.seen->expires == b.seen->expires));
  return a.verb == b.verb && a.uuid == b.uuid && a.stamp == b.stamp &&
         a.lease == b.lease && a.earliest == b.earliest && same_seen &&
         a.own == b.own && a.consistent == b.consistent && a.tell == b.tell &&
         a.token == b.token && a.changes == b.changes;
}

bool same(const Row& a, const Row& b) {
  return a.kind == b.kind && a.uuid == b.uuid && a.expires == b.expires &&
         a.lease == b.lease && a.kept == b.kept && a.token == b.token &&
         a.problem == b.problem;
}

// No answer shows that a machine stood still for so long.
constexpr nanoseconds kUnnoticed = 1250ms;

// What a clock whose rate is off by so much shows of that time.
nanoseconds elapsed_by_boot_clock(nanoseconds elapsed, std::int64_t ppm) {
  const std::int64_t millions = elapsed.count() / 1'000'000;
  const std::int64_t rest = elapsed.count() % 1'000'000;
  return elapsed + nanoseconds(millions * ppm + rest * ppm / 1'000'000);
}

}  // namespace

// splitmix64
std::uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::int64_t Random::below(std::int64_t end) {
  return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(end));
}

std::int64_t Random::between(std::int64_t first, std::int64_t last) {
  return first + below(last - first + 1);
}

bool Random::chance(double p) {
  return static_cast<double>(next() >> 11) < p * 9007199254740992.0;
}

Weather::Weather(Random& random)
    : by_hand(random.chance(0.12)),
      freezes(random.chance(0.08)),
      glitches(random.chance(0.08)),
      skewed(random.chance(0.2)),
      agreeing(random.chance(0.3)),
      foreign(random.chance(0.1)),
      reaped(random.chance(0.05)),
      all_old(random.chance(0.75)),
      storm(random.chance(0.03)),
      stubborn(random.chance(0.01)),
      untold(random.chance(0.1)),
      changing(random.chance(0.3)),
      burst(random.chance(0.0005)),
      keeping(random.chance(0.5) ? 0 : (random.chance(0.8) ? 1 : 0.5)),
      no_date(random.chance(0.2) ? 0.3 : 0) {
  const double trouble = random.chance(0.3) ? 0.02 : 0.15;
  lost = trouble;
  answer_lost = trouble;
  late = trouble;
  twice = trouble;
  unsent = trouble / 3;
  error = trouble / 2;
  stall = trouble / 2;
  stale_read = trouble;
  const std::int64_t leases_ms[] = {100, 250, 2000, 10000, 60000, 3600000};
  ttl = std::chrono::milliseconds(leases_ms[random.below(6)] + random.below(3));
  delay = std::min<nanoseconds>(20ms, ttl / 20);
  if (burst) {
    delay = nanoseconds(random.below(3));
    ttl = 60s;
    late = twice = stall = 0;
    answer_lost = 0.99;
    lost = random.chance(0.5) ? 0.7 : 0.9995;
    skewed = freezes = reaped = false;
  }
}

// The hosts and what may befall them.

History::History(std::uint64_t seed, Theme theme, Tally& tally,
                 std::ostream* trace)
    : random_(seed),
      threads_(~seed),
      pauses_(seed + 1),
      theme_(theme),
      weather_(random_),
      tally_(tally),
      trace_(trace) {
  if (theme_ == Theme::pauses) set_up_pauses();
  share();
  epoch_ = 1'700'000'000s + nanoseconds(random_.below(1'000'000'000));
  exchanges_at_most_ = static_cast<std::size_t>(random_.between(10, 80));
  if (weather_.storm) exchanges_at_most_ = 300;
  if (weather_.burst) {
    exchanges_at_most_ = static_cast<std::size_t>(random_.between(1100, 2600));
  }
  events_.reserve(64);
  set_up_hosts();
  set_up_row();
  set_up_faults();
}

// What the protocol promises of pauses is promised where nothing else goes
// wrong that it is not made for.
void History::set_up_pauses() {
  weather_.by_hand = weather_.freezes = weather_.glitches = false;
  weather_.storm = weather_.burst = false;
  constexpr std::int64_t kLeasesMs[] = {1'000,  2'000,  5'000,  8'000,
                                        10'000, 10'000, 20'000, 120'000};
  weather_.ttl =
      std::chrono::milliseconds(kLeasesMs[pauses_.below(8)] + pauses_.below(3));
  weather_.delay = std::min<nanoseconds>(20ms, weather_.ttl / 20);
}

// Some locks are shared with others.  Drawn apart, so that the rest is as it
// was.
void History::share() {
  Random drawn(random_.next());
  if (weather_.burst || drawn.chance(0.7)) return;
  using Layout = Weather::Layout;
  weather_.layout = drawn.chance(0.5) ? Layout::versions : Layout::calendars;
  if (weather_.layout == Layout::calendars) {
    weather_.margin = std::chrono::milliseconds(drawn.between(1000, 5000));
    const std::int64_t off = weather_.margin / 1ms - 500;
    calendar_ahead_ = std::chrono::milliseconds(
        drawn.chance(0.5) ? (drawn.chance(0.5) ? off : -off)
                          : drawn.between(-off, off));
  }
  weather_.foreign = true;
}

void History::set_up_hosts() {
  hosts_.resize(static_cast<std::size_t>(
      weather_.burst ? 1 : random_.between(1, random_.chance(0.3) ? 4 : 2)));
  const bool all_silent = random_.chance(0.08);
  for (Host& host : hosts_) {
    host.name = std::string(1, static_cast<char>('a' + index_of(host)));
    const std::int64_t lease_ms = weather_.ttl / 1ms;
    host.ttl = std::chrono::milliseconds(
        random_.chance(0.8) ? lease_ms : random_.between(100, 2 * lease_ms));
    host.renew_after = nanoseconds(host.ttl) / 2;
    if (random_.chance(0.2)) {
      host.renew_after = nanoseconds(host.ttl) * random_.between(10, 75) / 100;
    }
    host.request_timeout = std::min<nanoseconds>(2s, host.ttl / 4);
    if (random_.chance(0.15)) host.request_timeout = host.ttl * 2;
    if (weather_.storm) host.request_timeout = host.ttl / 60;
    if (weather_.burst) host.request_timeout = weather_.delay * 3;
    host.silent = all_silent || random_.chance(0.05);
    host.use.keep = random_.chance(weather_.keeping);
    host.use.keep_data = random_.chance(host.use.keep ? 0.7 : 0.2);
    host.use.must_exist = host.use.keep && random_.chance(0.1);
    if (weather_.shared()) {
      using Take = RowUse::Take;
      host.use.tells_end = weather_.layout != Weather::Layout::versions;
      host.use.calendars = host.use.tells_end;
      host.use.margin = weather_.margin;
      host.use.take = static_cast<Take>(random_.below(3));
    }
    host.base_boot = nanoseconds(random_.below(1'000'000'000'000'000));
    host.ppm = 10'000 * (random_.chance(0.5) ? 1 : -1);  // As far as allowed.
    if (random_.chance(0.5)) host.ppm = random_.between(-10'000, 10'000);
    // Nothing is promised of a pause and clocks at their worst at once.
    if (theme_ == Theme::pauses) host.ppm /= 2;
    schedule(nanoseconds(random_.below(weather_.ttl.count())),
             Event::Kind::wake, index_of(host));
  }
}

// Most histories begin with no row; some with what others left.
void History::set_up_row() {
  if (!random_.chance(0.2) || weather_.shared()) return;
  SimulatedTable::Item item;
  item.uuid = "left";
  item.expires =
      epoch_ + nanoseconds(random_.between(-3 * weather_.ttl.count(),
                                           2 * weather_.ttl.count()));
  if (random_.chance(0.7)) {
    item.lease = std::chrono::milliseconds(weather_.ttl / 1ms);
  }
  if (random_.chance(0.1)) item.expires = ServiceTime(random_.between(-5, 5));
  item.ttl = true;
  if (random_.chance(weather_.keeping > 0 ? 0.5 : 0.1)) {
    item.token = random_.below(1000);
    item.ttl = false;
  }
  if (random_.chance(0.15)) {  // Others' attributes alone.
    item = SimulatedTable::Item{};
  }
  item.note = "theirs";
  item.unreadable = random_.chance(0.1);
  table_.set(item);
}

void History::set_up_faults() {
  const auto some_time = [this] {
    return nanoseconds(random_.below(8 * weather_.ttl.count()));
  };
  if (weather_.burst) return;
  for (std::int64_t i = random_.below(4); i > 0; --i) {
    if (weather_.by_hand) schedule(some_time(), Event::Kind::people, 0);
    if (weather_.foreign) schedule(some_time(), Event::Kind::foreigner, 0);
    if (weather_.reaped) schedule(some_time(), Event::Kind::reaper, 0);
  }
  for (const Host& host : hosts_) {
    if (weather_.freezes) {
      schedule(some_time(), Event::Kind::freeze, index_of(host));
    }
    if (random_.chance(0.3)) {
      schedule(some_time(), Event::Kind::news, index_of(host));
    }
  }
}

bool History::Event::operator<(const Event& other) const {
  return at != other.at ? at > other.at : order > other.order;
}

void History::schedule(nanoseconds at, Event::Kind kind, std::size_t host,
                       std::size_t index, bool answers) {
  events_.push_back({at, scheduled_++, kind, host, index, answers});
  std::push_heap(events_.begin(), events_.end());
}

void History::run() {
  if (weather_.safe()) ++tally_.safe_histories;
  while (!events_.empty() && exchanges_ < exchanges_at_most_) {
    std::pop_heap(events_.begin(), events_.end());
    const Event event = events_.back();
    events_.pop_back();
    now_ = event.at;
    handle(event);
  }
  tally_.exchanges += exchanges_;
}

void History::handle(const Event& event) {
  Host& host = hosts_[event.host];
  const bool of_host =
      event.kind == Event::Kind::wake || event.kind == Event::Kind::answer ||
      event.kind == Event::Kind::process ||
      event.kind == Event::Kind::time_out || event.kind == Event::Kind::news;
  if (of_host && now_ < host.stopped_until) {
    schedule(host.stopped_until, event.kind, event.host, event.index);
    return;
  }
  switch (event.kind) {
    case Event::Kind::wake:
      return wake(host);
    case Event::Kind::arrive:
      return arrive(event);
    case Event::Kind::answer:
    case Event::Kind::process:
    case Event::Kind::time_out:
      return receive(event);
    case Event::Kind::news:
      return hear_news(host);
    case Event::Kind::people:
      return change_by_hand();
    case Event::Kind::foreigner:
      return event.index == 1 ? be_foreign(true) : write_foreign();
    case Event::Kind::reaper:
      return reap();
    case Event::Kind::freeze:
      return freeze(host);
    case Event::Kind::pause:
      return pause(host);
  }
}

// Clocks.

BootTime History::boot_at(const Host& host, nanoseconds at) const {
  const nanoseconds elapsed = std::max(at - host.base, 0ns);  // 0 if frozen.
  return BootTime(host.base_boot + elapsed_by_boot_clock(elapsed, host.ppm));
}

// The first moment at which the host's clock shows that, or now.
nanoseconds History::when_boot_is(const Host& host, BootTime wanted) const {
  nanoseconds at = std::max(host.base, now_);
  while (boot_at(host, at) < wanted) {
    at += std::max((wanted - boot_at(host, at)) * 98 / 100, 1ns);
  }
  return at;
}

// The Date of an answer that is written now; nothing if it is not to be
// believed.
std::optional<ServiceTime> History::date(const Host& host) {
  if (host.silent || random_.chance(weather_.no_date)) return std::nullopt;
  ServiceTime shown = service();
  if (weather_.skewed)
    shown += std::chrono::milliseconds(random_.between(-1000, 1000));
  if (weather_.agreeing)
    shown += std::chrono::milliseconds(random_.between(0, 1) * 250);
  if (weather_.glitches && random_.chance(0.15)) {
    shown += nanoseconds(
        random_.between(-2 * weather_.ttl.count(), 2 * weather_.ttl.count()));
  }
  return std::chrono::floor<std::chrono::seconds>(shown);
}

// The network and the table.

nanoseconds History::delay() {
  if (weather_.delay == 0ns) return 0ns;
  if (random_.chance(weather_.late)) {
    return nanoseconds(random_.below(2 * weather_.ttl.count()));
  }
  return nanoseconds(random_.below(weather_.delay.count()));
}

void History::transmit(Host& host, const Request& request) {
  const std::size_t self = index_of(host);
  schedule(now_ + host.request_timeout, Event::Kind::time_out, self,
           host.exchange);
  if (random_.chance(weather_.unsent)) {
    answers_.push_back({{Outcome::unsent, {}, {}}, {}, false, host.exchange});
    schedule(now_ + delay(), Event::Kind::answer, self, answers_.size() - 1);
    return;
  }
  messages_.push_back({request, self, host.exchange});
  const bool write = request.verb != Verb::look;
  // The answer to the second copy of a release would say that the lock had been
  // lost; this is why a client must never repeat a request behind our back.
  const bool repeatable = write && request.verb != Verb::release;
  const std::int64_t copies =
      1 +
      static_cast<std::int64_t>(repeatable && random_.chance(weather_.twice));
  const std::int64_t answering = random_.below(copies);
  nanoseconds left = now_;
  if (random_.chance(weather_.stall)) left += delay();
  for (std::int64_t i = 0; i < copies; ++i) {
    if (write && random_.chance(weather_.lost)) continue;
    if (host.cut_off && host.call == Call::renew) continue;
    schedule(left + delay(), Event::Kind::arrive, self, messages_.size() - 1,
             i == answering);
  }
}

void History::arrive(const Event& event) {
  const Message& message = messages_[event.index];
  Answer answer = serve(message);
  const bool renewal = message.request.verb == Verb::renew;
  const bool look = message.request.verb == Verb::look;
  const double lost =
      weather_.storm && renewal
          ? 0.9
          : (weather_.burst && look ? 0.05 : weather_.answer_lost);
  if (!event.answers || random_.chance(lost)) return;
  answers_.push_back(std::move(answer));
  schedule(now_ + delay(), Event::Kind::answer, event.host,
           answers_.size() - 1);
}

// What DynamoDB does with a request that reached it.
History::Answer History::serve(const Message& message) {
  Answer answer;
  answer.exchange = message.exchange;
  answer.from_service = true;
  answer.date = date(hosts_[message.host]);
  answer.reply.outcome = Outcome::unknown;
  if (random_.chance(weather_.error / 2)) return answer;  // 503: not applied.

  const SimulatedTable::Content before = table_.content();
  const bool take = message.request.verb == Verb::take;
  Outcome outcome = Outcome::refused;
  if (!(take && weather_.stubborn && random_.chance(0.8))) {
    outcome = table_.apply(message.request, hosts_[message.host].use);
  }
  if (outcome == Outcome::done) note_write(message, before);
  if (random_.chance(weather_.error)) return answer;  // 500: it was.
  answer.reply.outcome = outcome;
  if (const auto row = outcome == Outcome::refused ? row_of_refusal(before)
                                                   : row_of(message)) {
    answer.reply.row = std::make_unique<const Row>(*row);
  }
  return answer;
}

// Nothing if the engine tells none.
std::optional<Row> History::row_of_refusal(
    const SimulatedTable::Content& content) {
  if (!weather_.all_old) return std::nullopt;
  if (content) return SimulatedTable::read(content);
  // A driver may know that a refusal without an item means that there is none.
  return random_.chance(0.5) ? std::optional<Row>(Row{}) : std::nullopt;
}

// What a look shows, which may be of the past unless it is consistent; what
// other answers tell of the row, which an engine may leave out.
std::optional<Row> History::row_of(const Message& message) {
  const Request& request = message.request;
  if (request.verb != Verb::look) {
    const bool tells =
        request.tell || (request.verb == Verb::take &&
                         hosts_[message.host].use.takes_by_update());
    if (!tells || weather_.untold) return std::nullopt;
    return SimulatedTable::read(table_.content());
  }
  std::size_t version = table_.versions() - 1;
  if (!request.consistent && random_.chance(weather_.stale_read)) {
    version -= std::min(version, static_cast<std::size_t>(random_.below(4)));
  }
  return SimulatedTable::read(table_.version(version));
}

// A write was applied.
void History::note_write(const Message& message,
                         const SimulatedTable::Content& before) {
  const Request& request = message.request;
  const Host& host = hosts_[message.host];
  if (request.verb == Verb::take) {
    note_change(before, request.uuid);
    const bool current = host.lease && host.lease->uuid() == request.uuid;
    if (!current || host.releasing) ++tally_.late_takes;
    expect(host.use.keep || weather_.by_hand || !before || !before->token, host,
           "a row with a token was replaced");
  }
  if (request.changes) {
    ++tally_.changes_applied;
    expect(!host.use.keep || weather_.by_hand || !superseded(request.uuid),
           host, "attributes were changed after another was granted the lock");
  }
  check_guards();
}

// Another was granted the lock since that acquisition was.
bool History::superseded(const std::string& uuid) const {
  return std::any_of(grants_.begin(), grants_.end(), [&](const Grant& grant) {
    return grant.uuid == uuid && grant.token < highest_token_;
  });
}

void History::note_change(const SimulatedTable::Content& before,
                          const std::string& by) {
  if (!before || !before->uuid || *before->uuid == by) return;
  for (Host& host : hosts_) {
    if (!host.lease || host.lease->uuid() != *before->uuid) continue;
    host.fouled = true;
    const BootTime end =
        host.releasing ? host.released_until : host.lease->claim_end();
    if (boot(host) < end) host.robbed = true;
  }
}

void History::change_by_hand() {
  const SimulatedTable::Content before = table_.content();
  SimulatedTable::Item item = before.value_or(SimulatedTable::Item{});
  note_change(before, "people");
  switch (random_.below(8)) {
    case 0:
      return table_.set(std::nullopt);
    case 1:
      item.expires = ServiceTime(random_.between(-1, 1));
      break;
    case 2:
      item.lease = std::chrono::milliseconds(random_.between(1, 5000));
      break;
    case 3:
      item.lease.reset();
      break;
    case 4:
      if (weather_.shared()) break;  // There are none.
      if (item.token) {
        item.token.reset();
      } else {
        item.token = random_.below(1000);
      }
      break;
    case 5:
      item.unreadable = !item.unreadable;
      break;
    case 6:
      item.expires =
          service() + nanoseconds(random_.between(-1, 1) * 10) * 1'000'000'000;
      break;
    default:
      item.uuid = "people" + std::to_string(now_.count());
      item.expires = service() + weather_.ttl;
      item.lease = std::chrono::milliseconds(weather_.ttl / 1ms);
  }
  if (!item.uuid) item.uuid = "somebody";
  if (!item.expires) item.expires = service();
  table_.set(item);
}

// A client that goes by a calendar, and whose calendar is right.
void History::write_foreign() {
  if (weather_.shared()) return be_foreign(false);
  const SimulatedTable::Content before = table_.content();
  if (before && before->expires && *before->expires >= service() - 2s) return;
  note_change(before, "foreign");
  SimulatedTable::Item item;
  if (before && before->token) item = *before;  // It leaves what it knows not.
  item.lease.reset();
  item.unreadable = false;
  item.uuid = "foreign" + std::to_string(now_.count());
  item.expires = service() + weather_.ttl / 2;
  table_.set(item);
}

// Takes the lock as others' clients do, if it may; or gives it back.
void History::be_foreign(bool release) {
  const SimulatedTable::Content before = table_.content();
  const bool versions = weather_.layout == Weather::Layout::versions;
  if (release) {
    foreign_until_ = now_;
    if (!before || before->uuid != foreign_) return;
    SimulatedTable::Item item = *before;
    item.expires = ServiceTime::zero();
    if (random_.chance(0.5)) return table_.set(item);
    return table_.set(std::nullopt);
  }
  if (!foreign_may_take(before)) return;
  note_change(before, "foreign");
  foreign_ = "foreign" + std::to_string(now_.count());
  const auto lease = std::chrono::milliseconds(weather_.ttl / 2ms);
  SimulatedTable::Item item;
  item.uuid = foreign_;
  if (versions) {
    item.lease = lease;
    item.expires = kBeyondAllClocks;
  } else {
    item.expires = service() + calendar_ahead_ + lease;
  }
  table_.set(item);
  ++tally_.foreign_takes;
  foreign_until_ = now_ + lease;
  if (trace_) *trace_ << now_ << " foreign takes it\n";
  if (random_.chance(0.5)) {
    schedule(now_ + nanoseconds(random_.below(nanoseconds(lease).count())),
             Event::Kind::foreigner, 0, 1);
  }
  if (random_.chance(0.6)) {
    schedule(now_ + nanoseconds(random_.below(4 * weather_.ttl.count())),
             Event::Kind::foreigner, 0);
  }
}

// By what it has seen, and a clock that is fast by 1 %, where pauses are the
// theme by half of that; or by its calendar.
bool History::foreign_may_take(const SimulatedTable::Content& now) {
  if (!now || now->expires == ServiceTime::zero()) return true;
  if (weather_.layout == Weather::Layout::calendars) {
    return now->expires && *now->expires < service() + calendar_ahead_;
  }
  const bool seen = foreign_saw_ && foreign_saw_->uuid == now->uuid &&
                    foreign_saw_->expires == now->expires;
  if (!seen) {
    foreign_saw_ = now;
    foreign_since_ = now_;
  }
  if (!now->lease) return false;
  const int rate = theme_ == Theme::pauses ? 200 : 100;
  const nanoseconds over =
      foreign_since_ + nanoseconds(*now->lease) * rate / (rate + 1);
  if (now_ > over) return true;
  schedule(over + 1ns, Event::Kind::foreigner, 0);
  return false;
}

// DynamoDB's own clean-up, a day after the lease.
void History::reap() {
  const SimulatedTable::Content before = table_.content();
  if (!before || !before->ttl || !before->expires ||
      *before->expires + 24h > service()) {
    return;
  }
  note_change(before, "reaper");
  table_.set(std::nullopt);
}

// The machine is stopped from outside: its boot clock stands still.
void History::freeze(Host& host) {
  if (now_ < host.stopped_until) return;
  const nanoseconds length(random_.below(3 * weather_.ttl.count()));
  stop(host, length);
  host.ever_frozen = true;
  // News may have shown the one before.
  if (!host.unnoticed ||
      host.clock.contradictions() != host.contradictions_then) {
    host.stood_still = {};
    if (host.unnoticed) host.told.reset();
  }
  host.stood_still += length;
  host.unnoticed = true;
  host.dated_since = false;
  host.contradictions_then = host.clock.contradictions();
  if (trace_) trace(host) << "frozen for " << length << "\n";
}

void History::stop(Host& host, nanoseconds length) {
  host.base_boot = boot(host).time_since_epoch();
  host.base = now_ + length;
  host.stopped_until = host.base;
}

// Some time in the claim that has just begun, and often so that the claim is
// not renewed any more.
void History::plan_pause(Host& host) {
  if (theme_ != Theme::pauses || pauses_.chance(0.3)) return;
  schedule(now_ + nanoseconds(pauses_.below(nanoseconds(host.ttl).count())),
           Event::Kind::pause, index_of(host));
  if (pauses_.chance(0.5)) host.cut_off = true;
}

// All pauses of a host together are too short to be noticed.
void History::pause(Host& host) {
  const nanoseconds most = kUnnoticed - host.paused;
  if (now_ < host.stopped_until || most <= 0ns) return;
  const nanoseconds length =
      pauses_.chance(0.7) ? most : nanoseconds(pauses_.below(most.count()));
  stop(host, length);
  host.paused += length;
  if (host.claiming) {
    ++(host.ttl < 10s ? tally_.paused_short_claims : tally_.paused_claims);
  }
  if (trace_) trace(host) << "pauses for " << length << "\n";
}

void History::hear_news(Host& host) {
  const nanoseconds asked =
      std::max(0ns, now_ - 2 * nanoseconds(random_.below(std::max<std::int64_t>(
                                   weather_.delay.count(), 1))));
  const BootTime sent = std::max(boot_at(host, asked), BootTime(0ns));
  host.clock.hear(std::min(sent, boot(host)), boot(host), date(host));
  if (trace_) trace(host) << "news for its service clock\n";
  // Whoever drives the lease may learn of it only with its own next request.
  if (host.lease && random_.chance(0.5)) {
    host.lease->apply(host.clock);
    host.told_again->apply(host.clock);
    check_state(host, "apply");
  }
  if (exchanges_ > 0 && random_.chance(0.7)) {
    schedule(now_ + nanoseconds(random_.below(weather_.ttl.count())),
             Event::Kind::news, index_of(host));
  }
}

// A host's process.

std::size_t History::index_of(const Host& host) const {
  return static_cast<std::size_t>(&host - hosts_.data());
}

void History::wake(Host& host) {
  if (host.exchange != 0) return;
  if (!host.lease) return begin(host);
  if (host.releasing) return send(host, Call::release);
  if (!host.claiming) return send(host, Call::take);
  if (random_.chance(0.03)) {  // The process dies.
    host.clock = ServiceClock();
    host.unnoticed = false;
    host.told.reset();
    host.observation = ddbmutex::lock::Observation();
    host.sightings = reference::Sightings();
    return go_idle(host);
  }
  if (boot(host) >= host.lease->claim_end()) {
    host.claiming = false;
    return leave(host);
  }
  if (now_ >= host.hold_ends) return hand_over(host);
  choose_changes(host);
  send(host, Call::renew);
}

// What its next renewals, or its release, are to change besides.
void History::choose_changes(Host& host) {
  if (!weather_.changing || !host.use.keep || random_.chance(0.5)) return;
  std::shared_ptr<ddbmutex::lock::Changes> changes;
  if (random_.chance(0.8)) {
    changes = std::make_shared<ddbmutex::lock::Changes>();
    changes->set.push_back({"data", ddbmutex::dynamodb::Attribute::Type::binary,
                            host.lease->uuid()});
  }
  host.lease->carry(changes);
  host.told_again->carry(changes);
}

void History::begin(Host& host) {
  const std::string uuid = host.name + std::to_string(++host.acquisitions);
  host.lease =
      std::make_unique<ddbmutex::lock::Lease>(uuid, host.ttl, host.use);
  host.told_again =
      std::make_unique<reference::Protocol>(uuid, host.ttl, host.use);
  host.stamps.clear();
  host.attempts = 0;
  host.granted = host.claiming = host.releasing = host.cut_off = false;
  host.fouled = host.robbed = host.gave_up = false;
  host.released_until = BootTime::min();
  host.over_since = BootTime::max();
  host.releases = 0;
  host.patience_ends =
      now_ + nanoseconds(random_.below(4 * weather_.ttl.count()));
  if (weather_.burst) host.patience_ends = 24h;
  if (trace_) trace(host) << "begins " << uuid << "\n";
  send(host, Call::take);
}

void History::send(Host& host, Call call) {
  host.exchange = ++exchanges_;
  host.call = call;
  host.sent = boot(host);
  host.answered = false;
  host.releasing = call == Call::release;
  if (host.told_again->settling() && call == Call::take) ++tally_.settlings;
  host.request =
      host.lease->next(call, host.sent, host.clock, host.observation);
  const Request again =
      host.told_again->next(call, host.sent, host.clock, host.sightings);
  if (trace_) {
    trace(host) << host.exchange << " at " << host.sent << " sends "
                << host.request << "\n";
  }
  const bool unheard = !host.clock.known() && !host.clock.silent();
  if (unheard && call == Call::take) ++tally_.looks_before_takes;
  check_request(host, host.request, again);
  check_stamp(host, host.request);
  check_state(host, "next");
  transmit(host, host.request);
}

// An answer, or the end of waiting for one.
void History::receive(const Event& event) {
  Host& host = hosts_[event.host];
  if (event.kind == Event::Kind::time_out) {
    if (host.exchange != event.index || host.answered) return;
    Answer nothing;
    nothing.exchange = event.index;
    nothing.reply.outcome = Outcome::unknown;
    nothing.reply.received = boot(host);
    return conclude(host, nothing);
  }
  Answer& answer = answers_[event.index];
  if (host.exchange != answer.exchange) return;
  if (event.kind == Event::Kind::answer) {
    if (host.answered) return;
    host.answered = true;
    answer.reply.received = boot(host);
    if (random_.chance(weather_.stall)) {
      return schedule(now_ + delay(), Event::Kind::process, event.host,
                      event.index);
    }
  }
  // A claim that ended while the process stood still is over: whoever drives a
  // Lease looks at the clock just before it tells it of a renewal.
  if (host.call == Call::renew) answer.reply.received = boot(host);
  conclude(host, Answer(std::move(answer)));
}

void History::conclude(Host& host, const Answer& answer) {
  host.exchange = 0;
  const Reply& reply = answer.reply;
  if (answer.from_service) {
    host.clock.hear(host.sent, reply.received, answer.date);
  }
  const BootTime claim_was = host.lease->claim_end();
  const Verdict verdict =
      host.lease->heard(copy_of(reply), host.clock, host.observation);
  const Verdict again =
      host.told_again->heard(copy_of(reply), host.clock, host.sightings);
  trace_answer(host, answer, verdict);
  check_verdict(host, verdict, again, answer);
  if (reply.outcome == Outcome::unsent && !host.stamps.empty() &&
      host.stamps.back() == host.request.stamp) {
    host.stamps.pop_back();
  }
  if (host.claiming && claim_was <= reply.received) {
    expect(verdict != Verdict::ours, host, "a claim that was over was renewed");
  }
  check_loss(host, verdict);
  check_state(host, "heard");
  check_clock(host);
  count(host, verdict, answer);
  const BootTime sent = host.sent;
  go_on(host, verdict,
        !answer.from_service || reply.outcome == Outcome::unknown);
  notice(host, sent, answer);
  check_claims();
  check_frozen(host, answer);
}

// An answer to what was asked after a host was frozen has shown it, or that it
// was too short to show.
void History::notice(Host& host, BootTime sent, const Answer& answer) {
  if (sent.time_since_epoch() < host.base_boot) return;
  if (host.clock.contradictions() != host.contradictions_then) {
    host.unnoticed = false;
  }
  const bool quick = answer.reply.received - sent < 500ms;
  if (!answer.date || !quick) return;
  host.dated_since = true;
  if (!host.unnoticed) host.told = now_;
  if (!host.unnoticed || !host.told) return;
  // Two widths of a Date, two of these answers, and how well front ends agree.
  const nanoseconds most = 2 * (1s + 500ms) + 2 * 250ms;
  expect(weather_.glitches || weather_.skewed ||
             host.stood_still <= most + (now_ - *host.told) / 40,
         host, "a machine that was stopped does not learn of it");
}

// What is given up: a stop that is too short to show lengthens the claims from
// before it.
bool History::exempt(const Host& host) const {
  const BootTime after =
      BootTime(host.base_boot) + ddbmutex::lock::held_for(host.ttl);
  return host.unnoticed &&
         (!host.dated_since || host.lease->claim_end() < after);
}

// For so long a claim may go on while another has the lock already: what a
// holder whose machine stood still has not given up of a short lease.
nanoseconds History::left_open(const Host& host) const {
  const nanoseconds covered =
      std::min<nanoseconds>(kUnnoticed, nanoseconds(host.ttl) / 8);
  return std::max<nanoseconds>(host.paused - covered, 0ns);
}

// Its claim is in the last part of its time, where that is so.
bool History::may_be_taken(const Host& host) const {
  const nanoseconds open = left_open(host);
  return open > 0ns &&
         when_boot_is(host, host.lease->claim_end()) - now_ <= open;
}

void History::go_on(Host& host, Verdict verdict, bool failed) {
  switch (host.call) {
    case Call::take:
      return go_on_taking(host, verdict, failed);
    case Call::renew:
      return go_on_holding(host, verdict, failed);
    case Call::release:
      if (verdict != Verdict::again || host.releases++ > 4) {
        return go_idle(host);
      }
      return send(host, Call::release);
  }
}

void History::go_on_taking(Host& host, Verdict verdict, bool failed) {
  const bool patient = now_ < host.patience_ends;
  if (verdict == Verdict::ours) {
    host.granted = true;
    host.taken = now_;
    host.handed_over = 0;
    note_grant(host);
    if (!patient && random_.chance(0.7)) return release(host);
    host.hold_ends =
        now_ + nanoseconds(random_.below(3 * host.ttl.count() * 1'000'000));
    // Of threads that hand it on, each has it for less.
    if (threads_.chance(0.3)) host.hold_ends = now_ + hold_of_thread(host);
    host.claiming = true;
    plan_pause(host);
    return plan_hold(host);
  }
  if (!patient) return leave(host);
  if (verdict == Verdict::again) {
    if (!failed) return send(host, Call::take);
    return schedule(now_ + weather_.delay, Event::Kind::wake, index_of(host));
  }
  if (verdict != Verdict::busy) return leave(host);
  wait_for_lock(host);
}

// A waiter polls, and wakes just when the record becomes stale.
void History::wait_for_lock(Host& host) {
  if (weather_.burst) {
    return schedule(now_ + weather_.delay, Event::Kind::wake, index_of(host));
  }
  nanoseconds wait(random_.below(weather_.ttl.count()));
  const BootTime stale_at = host.observation.stale_at();
  if (stale_at != BootTime::max() && stale_at - boot(host) < 2 * weather_.ttl &&
      random_.chance(0.5)) {
    wait = when_boot_is(host, stale_at) - now_;
  }
  schedule(now_ + wait, Event::Kind::wake, index_of(host));
}

void History::go_on_holding(Host& host, Verdict verdict, bool failed) {
  if (verdict == Verdict::ours) return plan_hold(host);
  if (verdict != Verdict::again || boot(host) >= host.lease->claim_end()) {
    host.claiming = false;
    return leave(host);
  }
  if (!weather_.burst && random_.chance(weather_.storm ? 0.01 : 0.1)) {
    return release(host);
  }
  if (!failed) return send(host, Call::renew);
  schedule(now_ + weather_.delay, Event::Kind::wake, index_of(host));
}

nanoseconds History::hold_of_thread(const Host& host) {
  return nanoseconds(threads_.below(host.ttl.count() * 1'000'000 / 4));
}

// To another thread of the process, if one wants it and may have it.
void History::hand_over(Host& host) {
  constexpr int kLimit = 3;
  if (host.guarded || threads_.chance(0.2)) return release(host);
  const BootTime left_from = boot(host);
  const bool handed = host.lease->hand_over(left_from, kLimit);
  expect(handed == host.told_again->hand_over(left_from, kLimit), host,
         "hand_over() differs");
  if (!handed) {
    ++tally_.not_handed_over;
    return release(host);
  }
  ++tally_.handed_over;
  expect(++host.handed_over <= kLimit, host, "handed over too often");
  // By a clock that is slow by 1 %, or stood still.
  expect(host.ever_frozen ||
             (now_ - host.taken - host.paused) * 99 / 100 < host.ttl / 2 + 1ns,
         host, "handed over too late");
  expect(host.lease->claim_end() - left_from > host.ttl / 2, host,
         "handed over with too little left");
  note_grant(host);
  host.hold_ends = now_ + hold_of_thread(host);
  plan_hold(host);
}

void History::plan_hold(Host& host) {
  nanoseconds at = when_boot_is(host, host.lease->renew_at(host.renew_after));
  if (random_.chance(weather_.stall)) at += delay();
  if (weather_.storm || weather_.burst) at = now_ + weather_.delay;
  if (!weather_.burst) at = std::min(at, std::max(now_, host.hold_ends));
  schedule(at, Event::Kind::wake, index_of(host));
}

// The lock is given up, or lost; often nothing more is sent for it.
void History::leave(Host& host) {
  if (random_.chance(0.7)) return release(host);
  go_idle(host);
}

void History::release(Host& host) {
  if (host.claiming) choose_changes(host);
  if (!host.releasing) host.released_until = host.lease->claim_end();
  host.claiming = false;
  send(host, Call::release);
}

void History::go_idle(Host& host) {
  host.claiming = false;
  host.lease.reset();
  host.told_again.reset();
  schedule(now_ + nanoseconds(random_.below(weather_.ttl.count())),
           Event::Kind::wake, index_of(host));
}

// What must hold.

void History::check_request(const Host& host, const Request& told,
                            const Request& reference) {
  if (same(told, reference)) return;
  std::ostringstream what;
  what << "the request differs\n  lease:     " << told
       << "\n  reference: " << reference;
  differ(host, what.str());
}

// No two stamps of one uuid are equal, each names its attempt, and none is of
// another clock than DynamoDB's.
void History::check_stamp(Host& host, const Request& request) {
  if (request.verb != Verb::take && request.verb != Verb::renew) return;
  ++host.attempts;
  tally_.longest_acquisition =
      std::max(tally_.longest_acquisition, host.attempts);
  if (request.stamp > kBeyondAllClocks) ++tally_.beyond_all_clocks;
  if (request.seen) ++tally_.pinned_takes;
  expect(std::count(host.stamps.begin(), host.stamps.end(), request.stamp) == 0,
         host, "a stamp was sent twice");
  expect(request.stamp.count() % 1000 ==
             static_cast<std::int64_t>(host.attempts % 1000),
         host, "a stamp's low digits are not the attempt's number");
  if (!host.use.tells_end) {
    expect(request.stamp > kBeyondAllClocks, host, "a stamp of some clock");
  } else if (host.clock.known()) {
    const ServiceTime right =
        host.clock.latest(host.sent) + host.ttl + host.use.margin;
    expect(request.stamp >= right, host, "a stamp is too low");
    expect(host.attempts >= 1000 ||
               request.stamp < right + 1us * (host.stamps.size() + 1),
           host, "a stamp is too high");
  } else {
    expect(host.clock.silent() && !host.use.calendars, host,
           "stamped before anything was heard");
    expect(request.stamp > kBeyondAllClocks, host,
           "a stamp of no clock of DynamoDB's");
  }
  host.stamps.push_back(request.stamp);
}

void History::check_verdict(const Host& host, Verdict told, Verdict reference,
                            const Answer& answer) {
  if (told != reference) {
    differ(host, std::string("the verdict differs: ") + name(told) +
                     ", by the reference " + name(reference));
  }
  const bool names_row = told == Verdict::busy || told == Verdict::bad_record ||
                         told == Verdict::kept_row || told == Verdict::no_row ||
                         told == Verdict::no_date;
  if (names_row) {
    expect(answer.reply.row != nullptr, host, "no row was told");
    expect(same(host.lease->row(), *answer.reply.row), host,
           "row() is not the row that was told");
  }
}

void History::check_state(Host& host, const char* after) {
  const auto& lease = *host.lease;
  std::ostringstream what;
  if (host.observation.stale_at() != host.sightings.stale_at()) {
    what << "stale_at() differs after " << after << ": "
         << host.observation.stale_at() << ", by the reference "
         << host.sightings.stale_at();
    differ(host, what.str());
  }
  if (lease.claim_end() != host.told_again->claim_end()) {
    what << "claim_end() differs after " << after << ": " << lease.claim_end()
         << ", by the reference " << host.told_again->claim_end();
    differ(host, what.str());
  }
  const BootTime renew_at = lease.renew_at(host.renew_after);
  if (host.claiming &&
      renew_at != host.told_again->renew_at(host.renew_after)) {
    what << "renew_at() differs after " << after << ": " << renew_at
         << ", by the reference "
         << host.told_again->renew_at(host.renew_after);
    differ(host, what.str());
  }
  if (!host.granted) {
    expect(host.releasing || lease.stands() == host.told_again->stands(), host,
           "stands() differs");
    return;
  }
  expect(lease.token() == host.told_again->token(), host, "token() differs");
  expect(host.over_since == BootTime::max() ||
             lease.claim_end() <= host.over_since,
         host, "a claim that was over came to life again");
}

// The tokens of successive holders grow.
void History::note_grant(Host& host) {
  host.guarded = threads_.chance(0.3);
  // What was over before its process was told, or may have been while its
  // machine stood still, has its place among the claims elsewhere.
  if (boot(host) >= host.lease->claim_end() || exempt(host)) return;
  if (may_be_taken(host)) return;
  const bool sure = weather_.safe();
  const std::int64_t token = host.lease->token();
  const bool counts = host.use.keep && !weather_.shared();
  if (weather_.shared() && tally_.foreign_takes > 0) ++tally_.shared_grants;
  if (counts) {
    ++tally_.kept_grants;
    expect(!sure || token > highest_token_, host, "a token came again");
    highest_token_ = std::max(highest_token_, token);
  } else {
    expect(token == 0, host, "a row that is not kept has a token");
  }
  for (const Grant& grant : grants_) {
    expect(!grant.guarded || grant.uuid != host.lease->uuid(), host,
           "what one thread has guarded passes while another has the lock");
  }
  grants_.push_back({host.lease->uuid(), token, counts, host.guarded});
  check_guards();
}

// What a holder writes on the condition that the lock is still his is written
// if it is, and on kept rows never again once another was granted it.  Where
// rows are deleted, a take that comes late re-opens what it guards.
void History::check_guards() {
  const auto holds = [this](const Grant& grant) {
    return SimulatedTable::guard_holds(grant.uuid, grant.token, grant.keep,
                                       table_.content());
  };
  for (std::size_t i = 0; i < grants_.size(); ++i) {
    if (weather_.by_hand || !holds(grants_[i])) continue;
    expect(!grants_[i].keep || grants_[i].token >= highest_token_,
           hosts_.front(),
           "a guarded write came through after another was granted the lock");
    const bool reopened = !grants_[i].keep && i + 1 < grants_.size() &&
                          grants_[i].uuid != grants_.back().uuid;
    if (reopened) ++tally_.guards_reopened;
  }
  for (const Host& host : hosts_) {
    if (!weather_.safe() || !host.claiming) continue;
    if (boot(host) >= host.lease->claim_end()) continue;
    if (may_be_taken(host)) continue;
    expect(holds({host.lease->uuid(), host.lease->token(),
                  host.use.keep && !weather_.shared(), true}),
           host, "a guarded write of the holder's would be refused");
  }
}

// Another claims the lock while a claim that may be taken goes on.
void History::note_overlap(const Host& host) {
  for (const Host& other : hosts_) {
    if (&other == &host || !other.lease || !other.claiming) continue;
    if (boot(other) >= other.lease->claim_end()) continue;
    const nanoseconds left = when_boot_is(host, host.lease->claim_end()) - now_;
    tally_.longest_overlap = std::max(tally_.longest_overlap, left);
  }
}

// At most one host believes that it holds the lock.
void History::check_claims() {
  const Host* holder = nullptr;
  for (Host& host : hosts_) {
    if (!host.lease || !host.granted) continue;
    const bool over = boot(host) >= host.lease->claim_end();
    if (over) host.over_since = std::min(host.over_since, boot(host));
    if (!host.claiming || over) continue;
    if (exempt(host)) continue;
    if (may_be_taken(host)) {
      note_overlap(host);
      continue;
    }
    // Calendars and front ends that differ are not both allowed for.
    const bool right = weather_.layout == Weather::Layout::versions ||
                       (!weather_.skewed && !weather_.agreeing);
    expect(now_ >= foreign_until_ || !weather_.safe() || !right, host,
           "a claim while another library's client holds the lock");
    if (holder != nullptr &&
        (weather_.safe() || weather_.safe_once_noticed())) {
      differ(host, "two claims at once, the other is " + holder->name + "'s");
    }
    holder = &host;
  }
}

// The input of both: DynamoDB's clock as this host knows it.
void History::check_clock(const Host& host) {
  if (weather_.glitches || host.ever_frozen || !host.clock.known()) return;
  const nanoseconds skew = host.paused + (weather_.skewed ? 1s : 0s);
  expect(host.clock.earliest(boot(host)) <= service() + skew, host,
         "earliest() is too late");
  expect(host.clock.latest(boot(host)) >= service() - skew, host,
         "latest() is too early");
  expect(
      weather_.skewed || host.paused > 0ns || host.clock.contradictions() == 0,
      host, "front ends that agree contradict each other");
}

// Lost to somebody only if somebody touched the row.  Where stamps go back
// because of a wrong Date, a take of the same call that comes late may find a
// row over that is to be deleted.
void History::check_loss(const Host& host, Verdict verdict) {
  if (verdict != Verdict::taken && verdict != Verdict::deleted) return;
  if (weather_.glitches && !host.use.keep) return;
  expect(!host.granted || host.fouled, host,
         "told lost though nobody else changed the row");
  // Of a lease that is open at its end, another may have had the row before the
  // holder heard that it was his.
  expect(!host.releasing || host.robbed || !weather_.safe() ||
             left_open(host) > 0ns,
         host,
         "told lost though nobody changed the row before the end of the claim");
}

// A machine that was stopped from outside: once an answer shows that every
// stamp is over, so is the claim.
void History::check_frozen(const Host& host, const Answer& answer) {
  if (!host.ever_frozen || weather_.glitches || weather_.skewed) return;
  if (!answer.date || !host.lease || !host.claiming) return;
  if (boot(host) >= host.lease->claim_end()) return;
  expect(
      *std::max_element(host.stamps.begin(), host.stamps.end()) > *answer.date,
      host, "the claim outlives its stamps though a Date showed it");
}

void History::differ(const Host& host, const std::string& what) {
  std::ostringstream message;
  message << "host " << host.name << " after " << exchanges_
          << " exchanges: " << what;
  throw Difference(message.str());
}

void History::count(const Host& host, Verdict verdict, const Answer& answer) {
  ++tally_.verdicts[static_cast<std::size_t>(verdict)];
  const bool renewal = host.call == Call::renew;
  if (renewal && host.request.verb == Verb::look) ++tally_.looks_in_renewals;
  if (renewal && verdict == Verdict::expired && answer.from_service) {
    ++tally_.answers_after_claim;
  }
  if (host.releasing && host.granted && verdict == Verdict::released &&
      answer.reply.outcome == Outcome::refused &&
      boot(host) >= host.released_until) {
    ++tally_.lapsed_releases;
  }
  // Had the boot clock alone ended the claim, it would be longer.
  if (verdict == Verdict::ours &&
      host.lease->claim_end() - host.lease->granted_at() <
          ddbmutex::lock::held_for(host.ttl) - nanoseconds(host.ttl) / 100) {
    ++tally_.claims_cut_short;
  }
}

void History::trace_answer(const Host& host, const Answer& answer,
                           Verdict verdict) {
  if (!trace_) return;
  const Reply& reply = answer.reply;
  trace(host) << "  received at " << reply.received << ": "
              << name(reply.outcome);
  if (reply.row) *trace_ << ", row " << *reply.row;
  *trace_ << (answer.date ? ", Date" : "") << " -> " << name(verdict)
          << ", claim until " << host.lease->claim_end() << "\n";
}

std::ostream& History::trace(const Host& host) {
  return *trace_ << "[" << now_ << "] " << host.name << " ";
}

void run_history(std::uint64_t seed, std::uint64_t number, Theme theme,
                 Tally& tally, std::ostream* trace) {
  Random mixed(seed + number * 0x9e3779b97f4a7c15u);
  History history(mixed.next() ^ mixed.next(), theme, tally, trace);
  history.run();
}

}  // namespace simulation
