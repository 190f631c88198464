// Several hosts that want one lock, a table, and a network between them that
// loses, delays, repeats and reorders what is sent: one history of the
// protocol, drawn from a seed, in which every step of lock::Lease is held
// against the reference and against what the protocol promises.
#ifndef DDBMUTEX_TESTS_SUPPORT_SIMULATED_HOSTS_HPP
#define DDBMUTEX_TESTS_SUPPORT_SIMULATED_HOSTS_HPP

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddbmutex/clock.hpp"
#include "ddbmutex/protocol.hpp"
#include "ddbmutex/record.hpp"
#include "sigv4/boot_clock.hpp"
#include "tests/support/reference_protocol.hpp"
#include "tests/support/simulated_table.hpp"

namespace simulation {

using ddbmutex::BootTime;
using ddbmutex::dynamodb::ServiceClock;
using ddbmutex::dynamodb::ServiceTime;
using ddbmutex::lock::Call;
using ddbmutex::lock::Reply;
using ddbmutex::lock::Request;
using ddbmutex::lock::Row;
using ddbmutex::lock::RowUse;
using ddbmutex::lock::Verdict;
using std::chrono::nanoseconds;

// A step at which the protocol did not do what it must.
struct Difference : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What the histories of a run came to, so that the test can tell whether they
// went where the protocol has something to decide.
struct Tally {
  std::array<std::size_t, 11> verdicts{};
  std::size_t exchanges = 0;
  std::size_t safe_histories = 0;
  std::size_t looks_before_takes = 0;  // Where nothing was heard yet.
  std::size_t beyond_all_clocks = 0;
  std::size_t pinned_takes = 0;
  std::size_t looks_in_renewals = 0;
  std::size_t answers_after_claim = 0;
  std::size_t claims_cut_short = 0;
  std::size_t settlings = 0;        // Renewals before a grant, for the token.
  std::size_t late_takes = 0;       // Of whoever had released already.
  std::size_t kept_grants = 0;      // On rows that are kept.
  std::size_t guards_reopened = 0;  // See check_guards().
  std::size_t changes_applied = 0;
  std::size_t handed_over = 0;      // From thread to thread of a process,
  std::size_t not_handed_over = 0;  // or too late, or too often for that.
  std::size_t shared_grants = 0;  // To ours, where others had the lock before,
  std::size_t foreign_takes = 0;  // and to others.
  std::size_t lapsed_releases = 0;      // Refused when the lease was over.
  std::size_t longest_acquisition = 0;  // In stamped attempts.
  std::size_t paused_claims = 0;        // Of leases from 10 s on, and shorter.
  std::size_t paused_short_claims = 0;
  nanoseconds longest_overlap{};  // Of claims.
};

// What the histories are about.
enum class Theme {
  anything,
  pauses,  // Machines stand still for so short a time that no answer shows it.
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  // Of [0, end).  REQUIRES: end > 0.
  std::int64_t below(std::int64_t end);
  std::int64_t between(std::int64_t first, std::int64_t last);
  bool chance(double p);

 private:
  std::uint64_t state_;
};

// What goes wrong in a history, and how often.
struct Weather {
  explicit Weather(Random& random);
  // Only what the protocol's promise allows for.
  bool safe() const { return !glitches && !freezes && !by_hand; }
  bool safe_once_noticed() const { return !glitches && !skewed && !by_hand; }

  bool by_hand;    // The row is changed by people.
  bool freezes;    // Machines are stopped from outside.
  bool glitches;   // Some Dates are wrong.
  bool skewed;     // Front ends differ, by up to 2 s.
  bool agreeing;   // Front ends differ, by up to a quarter of a second.
  bool foreign;    // Clients that write no lease take part.
  bool reaped;     // DynamoDB's TTL is on.
  bool all_old;    // A refusal tells the row.
  bool storm;      // Answers to renewals are mostly lost.
  bool stubborn;   // Takes are mostly refused, whatever the row.
  bool untold;     // Writes are answered without the row.
  bool changing;   // Holders change attributes of their own.
  bool burst;      // A great many attempts in no time.
  double keeping;  // A host keeps its row.
  double no_date;  // An answer has no Date to be believed.
  double lost, answer_lost, late, twice, unsent, error, stall, stale_read;
  nanoseconds ttl, delay;

  // How the lock is written: as our own; or as others do whose rows tell a
  // version, or an end by their calendars, which may be off by almost `margin`.
  enum class Layout { own, versions, calendars } layout = Layout::own;
  std::chrono::milliseconds margin{};
  bool shared() const { return layout != Layout::own; }
};

class History {
 public:
  // `trace` may be null.
  History(std::uint64_t seed, Theme theme, Tally& tally, std::ostream* trace);
  // Throws Difference.
  void run();

 private:
  struct Host {
    std::string name;
    std::chrono::milliseconds ttl{};
    nanoseconds request_timeout{};
    nanoseconds renew_after{};
    RowUse use;
    bool silent = false;  // Its proxy strips every Date.
    // boot = base_boot + (true time since base) * (1 + ppm / 10^6)
    nanoseconds base{}, base_boot{};
    std::int64_t ppm = 0;
    nanoseconds stopped_until{};
    bool ever_frozen = false;
    bool unnoticed = false;    // Frozen, and no Date has shown it since.
    bool dated_since = false;  // And one was heard at once.
    int contradictions_then = 0;
    nanoseconds stood_still{};  // In all, since the last that was noticed.
    nanoseconds paused{};       // In all, where that is the theme,
    bool cut_off = false;       // while no renewal of its claim comes through.
    std::optional<nanoseconds> told;  // When it last heard a Date at once, not
                                      // since it stands still unnoticed.

    // What a process keeps from one call to the next, and as the reference
    // tells it.
    ServiceClock clock;
    ddbmutex::lock::Observation observation;
    reference::Sightings sightings;

    // One acquisition, and as the reference tells it.
    int acquisitions = 0;
    std::unique_ptr<ddbmutex::lock::Lease> lease;
    std::unique_ptr<reference::Protocol> told_again;
    std::vector<ServiceTime> stamps;  // Sent, as far as we know.
    std::size_t attempts = 0;
    bool granted = false;   // At any time.
    bool claiming = false;  // Its user thinks that it holds the lock.
    bool releasing = false;
    bool fouled = false;  // Somebody else changed its row,
    bool robbed = false;  // before the end of the claim or what is released.
    BootTime released_until = BootTime::min();  // The claim that is.
    bool gave_up = false;  // While a request was under way.
    BootTime over_since = BootTime::max();
    int releases = 0;
    nanoseconds patience_ends{}, hold_ends{};
    nanoseconds taken{};   // By the first thread that has the lease,
    int handed_over = 0;   // which others had after it.
    bool guarded = false;  // Its holder writes on the condition that it is his.

    // The request under way, if any.
    std::size_t exchange = 0;
    Request request;
    Call call = Call::take;
    BootTime sent{};
    bool answered = false;
  };

  struct Message {
    Request request;
    std::size_t host;
    std::size_t exchange;
  };

  // An acquisition that its user was told of.
  struct Grant {
    std::string uuid;
    std::int64_t token;
    bool keep;
    bool guarded;
  };

  struct Answer {
    Reply reply;
    std::optional<ServiceTime> date;
    bool from_service = false;  // Else nothing was heard.
    std::size_t exchange;
  };

  struct Event {
    enum class Kind {
      wake,
      arrive,     // A request at the table; `index` is the message's.
      answer,     // ... its answer at the host; `index` is the answer's.
      process,    // ... which the host looks at only now.
      time_out,   // `index` is the exchange.
      news,       // Another lock's answer taught the host's clock.
      people,     // Somebody changes the row by hand.
      foreigner,  // A client that writes no lease takes the lock.
      reaper,
      freeze,
      pause,
    };
    nanoseconds at;
    std::uint64_t order;
    Kind kind;
    std::size_t host;
    std::size_t index;
    bool answers;

    bool operator<(const Event& other) const;  // Later first.
  };

  void set_up_pauses();
  void set_up_hosts();
  void set_up_row();
  void set_up_faults();
  void schedule(nanoseconds at, Event::Kind kind, std::size_t host,
                std::size_t index = 0, bool answers = false);
  void handle(const Event& event);

  // Clocks.
  BootTime boot(const Host& host) const { return boot_at(host, now_); }
  BootTime boot_at(const Host& host, nanoseconds at) const;
  nanoseconds when_boot_is(const Host& host, BootTime boot) const;
  ServiceTime service() const { return epoch_ + now_; }
  std::optional<ServiceTime> date(const Host& host);

  // The network and the table.
  nanoseconds delay();
  void transmit(Host& host, const Request& request);
  void arrive(const Event& event);
  Answer serve(const Message& message);
  std::optional<Row> row_of_refusal(const SimulatedTable::Content& content);
  std::optional<Row> row_of(const Message& message);
  void note_write(const Message& message,
                  const SimulatedTable::Content& before);
  void note_change(const SimulatedTable::Content& before,
                   const std::string& by);
  bool superseded(const std::string& uuid) const;
  void change_by_hand();
  void write_foreign();
  void share();
  void be_foreign(bool release);
  bool foreign_may_take(const SimulatedTable::Content& now);
  void reap();
  void freeze(Host& host);
  void stop(Host& host, nanoseconds length);
  void plan_pause(Host& host);
  void pause(Host& host);
  void hear_news(Host& host);

  // A host's process.
  std::size_t index_of(const Host& host) const;
  void wake(Host& host);
  void choose_changes(Host& host);
  void begin(Host& host);
  void send(Host& host, Call call);
  void receive(const Event& event);
  void conclude(Host& host, const Answer& answer);
  void go_on(Host& host, Verdict verdict, bool failed);
  void go_on_taking(Host& host, Verdict verdict, bool failed);
  void wait_for_lock(Host& host);
  void go_on_holding(Host& host, Verdict verdict, bool failed);
  nanoseconds hold_of_thread(const Host& host);
  void hand_over(Host& host);
  void plan_hold(Host& host);
  void leave(Host& host);
  void release(Host& host);
  void go_idle(Host& host);

  // What must hold.
  void check_request(const Host& host, const Request& told,
                     const Request& reference);
  void check_stamp(Host& host, const Request& request);
  void check_verdict(const Host& host, Verdict told, Verdict reference,
                     const Answer& answer);
  void check_state(Host& host, const char* after);
  void notice(Host& host, BootTime sent, const Answer& answer);
  bool exempt(const Host& host) const;
  nanoseconds left_open(const Host& host) const;
  bool may_be_taken(const Host& host) const;
  void note_grant(Host& host);
  void check_guards();
  void note_overlap(const Host& host);
  void check_claims();
  void check_clock(const Host& host);
  void check_loss(const Host& host, Verdict verdict);
  void check_frozen(const Host& host, const Answer& answer);
  [[noreturn]] void differ(const Host& host, const std::string& what);
  void expect(bool holds, const Host& host, const char* what) {
    if (!holds) differ(host, what);
  }
  void count(const Host& host, Verdict verdict, const Answer& answer);
  std::ostream& trace(const Host& host);
  void trace_answer(const Host& host, const Answer& answer, Verdict verdict);

  Random random_;
  Random threads_;  // What they do, drawn apart,
  Random pauses_;   // and so are these.
  const Theme theme_;
  Weather weather_;
  Tally& tally_;
  std::ostream* trace_;
  nanoseconds now_{};
  ServiceTime epoch_{};
  std::vector<Host> hosts_;
  SimulatedTable table_;
  // The client of the others: its claim, what it saw and since when.
  nanoseconds foreign_until_{}, foreign_since_{}, calendar_ahead_{};
  std::string foreign_;
  SimulatedTable::Content foreign_saw_;
  std::vector<Grant> grants_;  // In the order of their claims.
  std::int64_t highest_token_ = -1;
  std::vector<Message> messages_;
  std::vector<Answer> answers_;
  std::vector<Event> events_;
  std::uint64_t scheduled_ = 0;
  std::size_t exchanges_ = 0;
  std::size_t exchanges_at_most_ = 0;
};

// Draws the history numbered so from the seed and runs it.
void run_history(std::uint64_t seed, std::uint64_t number, Theme theme,
                 Tally& tally, std::ostream* trace);

}  // namespace simulation

#endif  // DDBMUTEX_TESTS_SUPPORT_SIMULATED_HOSTS_HPP
