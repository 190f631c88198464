// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Sends calls to DynamoDB: signs a request, sends it, and reads its answer.
//
// It retries nothing: a conditional write must be made anew for every attempt,
// which only its caller can do.  retry.hpp decides whether and when to retry.
//
// Thread safety: any thread may call any member of Client.
#ifndef DDBMUTEX_CLIENT_HPP
#define DDBMUTEX_CLIENT_HPP

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "../../sigv4/http.hpp"
#include "../../sigv4/http_answer.hpp"
#include "../../sigv4/http_pool.hpp"
#include "../../sigv4/keys/credentials.hpp"
#include "../../sigv4/keys/keys.hpp"
#include "../../sigv4/log.hpp"
#include "../../sigv4/sigv4.hpp"
#include "../../sigv4/system.hpp"
#include "../../sigv4/thread.hpp"
#include "../../sigv4/url.hpp"
#include "../../sigv4/utc.hpp"
#include "answer.hpp"
#include "clock.hpp"
#include "endpoint.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// An upper bound for the JSON of one item and what surrounds it.  DynamoDB
// limits an item to 400 KB, where a number of one or two digits counts as two
// bytes, whatever its exponent ("DynamoDB item sizes and formats" in its
// developer guide).  It writes numbers without exponents (boto3's issue 2500
// shows 1E+100), so 1.2E-130 has 133 characters, and 136 bytes in a set, with
// quotes and comma.  Nothing else grows that much: {"S":""} in a list has 9
// bytes for one byte, and a control character has 6.
constexpr std::size_t kMostItemBytes = 400 << 10;
constexpr std::size_t kMostAnswerBytes =
    kMostItemBytes / 2 * 136 + (std::size_t{64} << 10);

// The default timeouts of one request: of a mutex, whose lease ends if it takes
// longer (Options::request_timeout), and of a Table's own calls, which may read
// a page of 1 MB.
constexpr std::chrono::milliseconds kLockRequestTimeout{2000};
constexpr std::chrono::milliseconds kTableRequestTimeout{10000};

struct ClientOptions {
  // The region may be missing; then it comes with the keys.  An account's own
  // endpoint may replace the URL.  The account is that of the table's ARN, else
  // that of the keys.
  Target target;
  sigv4::KeySourcePtr credentials;
  sigv4::LogPtr log{};
  // The table's name or ARN; an ARN names the account.  May be empty.
  std::string table{};
  std::size_t max_answer_bytes = kMostAnswerBytes;
};

// A request that is sent as it is.
struct PlainRequest {
  Action action;
  std::string body;
  BootTime deadline;  // For its answer.
  Reader reader = nullptr;
  Wanted wanted{};
};

// Sends requests, in a thread of its own, for calls that wait.
//
// Thread safety: any thread may call it.
class Carrier {
 public:
  // Waits for keys, sends the request, and waits for its answer until the
  // deadline or until the waker is woken.  It stays woken.
  virtual Answer carry(PlainRequest&& request, sigv4::CallWaker& waker) = 0;

 protected:
  ~Carrier() = default;
};

// What was sent and received so far, without requests in flight.
struct Counts {
  std::array<std::uint64_t, kActions> sent{};  // Requests, by action.
  std::uint64_t throttled = 0;
  std::uint64_t failed = 0;  // Neither throttled nor condition_failed.
};

class Client {
 public:
  // A call in flight.  Its destructor ends the call and closes its connection.
  class Pending;

  // REQUIRES: the target's endpoint is a base URL, or empty.
  explicit Client(const ClientOptions& options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Makes a call with the keys, the endpoint and DynamoDB's clock as they are
  // `now`.  The caller then writes the body.  Does not wait for keys: while
  // they are being fetched, the answer is keys_awaited.
  std::unique_ptr<Pending> prepare(BootTime now);
  // Signs the request and begins to send it.
  void begin(Pending& pending, Action action, BootTime now,
             Reader reader = nullptr, const Wanted& wanted = {});
  // Waits for keys that are being fetched.  False if there are none.
  bool await_keys(BootTime deadline, sigv4::CallWaker& waker) {
    return keys_.await(deadline, waker);
  }
  // Whether there certainly are keys.  Does not block.
  bool has_keys(BootTime now) const { return keys_.certainly_usable(now); }
  // The answer of a call.  A call that is still in flight ends as `why`.  Never
  // fails for lack of memory: an answer that cannot be read then is no_memory.
  Answer finish(std::unique_ptr<Pending> pending, sigv4::Transport why);

  // prepare() and begin() for a request that is sent as it is.
  std::unique_ptr<Pending> start(const PlainRequest& request, BootTime now);

  // Whether the table's key is the one of the options.  A PutItem does not name
  // the key.  If the table's key were another attribute of the record, each
  // PutItem would create an item of its own, and exclude nobody.  So a take is
  // sent only after a GetItem, which names the key, has succeeded.
  enum class TableKey { unknown, right, wrong };
  bool table_key_is_right() const { return table_key_ == TableKey::right; }
  // unknown: the next take sends a GetItem first.  wrong: takes, and start()
  // for an item, Scan or Query, send nothing.  Their answer is wrong_key with
  // the message `why`.
  void set_table_key(TableKey key, std::string&& why = {});
  // True for the first call after a GetItem has found the key wrong. DynamoDB's
  // message does not say which key the table has.  That caller should ask
  // DescribeTable, and pass what it finds to set_table_key().
  bool should_describe_table() {
    return !table_key_is_described_.exchange(true);
  }
  // If the table's key is wrong, sets the answer, so that begin() sends
  // nothing.
  void answer_if_table_key_is_wrong(Pending& pending);

  // To be called before each pause.  Logs that requests have been failing since
  // `since` and are repeated until `until`, and sets `warned`.  Does nothing if
  // `warned` is set, without a logger, or if the next request, at `next`, comes
  // within two seconds of `since`.
  void warn_of_failing(const Answer& last, BootTime since, BootTime next,
                       BootTime until, bool& warned) const;

  ServiceClock clock() const;     // DynamoDB's.
  static ServiceTime calendar();  // The host's wall clock.

  // The destructor waits for a fetch of keys until this time at the latest.
  void stop_waiting_for_keys_at(BootTime time) { keys_.end_by(time); }

  // Closes the connections that are kept, which may write to the network.
  void close_connections() { pool_.clear(); }

  Counts counts() const;
  std::size_t max_answer_bytes() const { return options_.max_answer_bytes; }
  std::string endpoint() const;  // Empty while it is not known.
  const sigv4::LogPtr& log() const { return options_.log; }

  // finish() calls the hook, with no mutex held, after an answer has
  // contradicted what was known of DynamoDB's clock.  REQUIRES: no call was
  // made yet.
  void on_contradiction(std::function<void()> hook) {
    on_contradiction_ = std::move(hook);
  }

 private:
  // What the requests of one day with the same keys have in common.
  struct SigningContext {
    SigningContext(const sigv4::Keys::OutcomePtr& the_keys,
                   const Target& the_target)
        : keys(the_keys), target(the_target) {}

    const sigv4::Keys::OutcomePtr keys;
    Target target;  // If it has an `error`, nothing can be sent.
    std::string url;
    sigv4::UrlParts parts;  // Views of `url`.
    sigv4::SigningKey key;  // Of one day.
  };
  using ContextPtr = std::shared_ptr<const SigningContext>;

  bool lacks_keys(Pending& pending, const sigv4::Keys::Current& current) const;
  ContextPtr make_context(const sigv4::Keys::OutcomePtr& keys,
                          std::string_view amz_date);
  // The time that requests are signed with.
  static std::chrono::seconds signing_time(const ServiceClock& clock,
                                           BootTime now);
  void count_and_learn_time(const Answer& answer);
  void count(const Answer& answer);
  void learn_table_key(const Answer& answer);
  void handle_fault(const Pending& pending, Answer& answer);
  std::string described(const Answer& answer) const;
  void log_fault(const Answer& answer) const;

  const ClientOptions options_;
  sigv4::HttpPool pool_;
  std::function<void()> on_contradiction_;
  // Set with the mutex held.
  std::atomic<TableKey> table_key_{TableKey::unknown};
  std::atomic<bool> table_key_is_described_{true};
  mutable sigv4::Mutex mutex_;
  // GUARDED_BY(mutex_)
  BootTime table_key_since_ = BootTime::min();  // When table_key_ was set.
  std::string table_key_problem_;               // Why it is wrong.
  ServiceClock clock_;
  BootTime log_contradictions_from_ = BootTime::min();
  ContextPtr context_;  // Of the newest keys; null at first.
  Counts counts_;
  sigv4::Keys keys_;  // Destroyed first: its fetches use the clock.
};

class Client::Pending {
 public:
  explicit Pending(sigv4::HttpPool& pool)
      : pool_(pool), exchange_(pool.take()) {}
  ~Pending() {
    if (!under_way()) pool_.give_back(std::move(exchange_));
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  // Written by the caller, before begin().
  sigv4::Text& body() { return exchange_->body(); }
  const ServiceClock& clock() const { return clock_; }

  // For sigv4::drive().
  sigv4::Exchange& exchange() { return *exchange_; }
  // False if there are no keys or no endpoint.
  bool will_be_sent() const { return answer_ == nullptr; }
  // False before begin(), and if nothing was sent.
  bool under_way() const { return exchange_->under_way(); }

 private:
  friend class Client;
  Answer& answer_unsent(Fault fault);

  sigv4::HttpPool& pool_;
  std::unique_ptr<sigv4::Exchange> exchange_;
  Action action_ = Action::get_item;
  ServiceClock clock_;
  std::chrono::seconds signed_at_{};
  std::string amz_date_{};
  ContextPtr context_;
  sigv4::Signed signature_{};
  Reader reader_ = nullptr;
  Wanted wanted_{};
  std::unique_ptr<Answer> answer_;  // Why nothing is sent; else null.
};

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_CLIENT_HPP
