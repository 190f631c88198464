// One typed DynamoDB call: signed, sent, and its answer read.
//
// Nothing is retried here: a conditional write must be made anew for every
// attempt, which only its caller can do.  retry.hpp decides whether and when.
//
// Thread safety: any thread may call any member of Client.
#ifndef DDBMUTEX_CLIENT_HPP
#define DDBMUTEX_CLIENT_HPP

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../sigv4/http.hpp"
#include "../../sigv4/http_answer.hpp"
#include "../../sigv4/http_pool.hpp"
#include "../../sigv4/keys/credentials.hpp"
#include "../../sigv4/keys/keys.hpp"
#include "../../sigv4/log.hpp"
#include "../../sigv4/sigv4.hpp"
#include "../../sigv4/system.hpp"
#include "../../sigv4/url.hpp"
#include "../../sigv4/utc.hpp"
#include "../../sigv4/waiting.hpp"
#include "answer.hpp"
#include "clock.hpp"
#include "endpoint.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// The size of the largest item's JSON, with room for what is around it.  An
// item has up to 400 KB.  As DynamoDB counts ("DynamoDB item sizes and formats"
// in its developer guide), a number of one or two digits has two bytes,
// whatever its exponent.  DynamoDB writes it in plain digits (boto3's issue
// 2500 shows 1E+100): 1.2E-130 has 133 of them.  So a set of such numbers needs
// 136 bytes for each, with quotes and comma.  All else grows less: {"S":""} in
// a list has 9 bytes for one byte, and a control character has 6.
constexpr std::size_t kMostItemBytes = 400 << 10;
constexpr std::size_t kMostAnswerBytes =
    kMostItemBytes / 2 * 136 + (std::size_t{64} << 10);

struct ClientOptions {
  // The region may come with the keys.  The URL may be that of an account: the
  // table's, if the table is named by an ARN, or else the keys'.
  Target target;
  sigv4::KeySourcePtr credentials;
  sigv4::Log log{};
  std::string table{};  // May be empty.
  std::size_t max_answer_bytes = kMostAnswerBytes;
};

// Counts requests that were sent and have ended.
struct Counts {
  std::array<std::uint64_t, kActions> sent{};  // By action.
  std::uint64_t throttled = 0;  // DynamoDB asked for fewer requests.
  std::uint64_t failed = 0;     // Another fault than that and a condition.
  // Heads and bodies, without what TLS and TCP add.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
};

class Client {
 public:
  // A call in flight.  Its destruction ends it and closes its connection.
  class Pending;

  // REQUIRES: the target's endpoint is a base URL, or empty.
  explicit Client(const ClientOptions& options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // A call with the keys, the endpoint and DynamoDB's clock as they are `now`.
  // The caller writes its body.  Does not wait for keys: while they are being
  // fetched, the answer is keys_awaited.
  std::unique_ptr<Pending> prepare(BootTime now);
  // Signs it and begins to send.
  void begin(Pending& pending, Action action, BootTime now,
             Reader reader = nullptr, const Wanted& wanted = {});
  // Waits for keys that are being fetched.  False if there are none.
  bool await_keys(BootTime deadline, sigv4::Waker* waker) {
    return keys_.await(deadline, waker);
  }
  // Whether there certainly are keys.  Does not block.
  bool has_keys(BootTime now) const { return keys_.serve_for_sure(now); }
  // Its answer.  A call that is still in flight ends as `why`.  Needs no
  // memory: an answer that cannot be read for lack of it is no_memory.
  Answer finish(std::unique_ptr<Pending> pending, sigv4::Transport why);

  // Waits for keys, begins, waits until `deadline` or a wake (the waker is not
  // cleared), finishes.
  Answer call(Action action, std::string_view body, BootTime deadline,
              sigv4::Waker& waker, Reader reader = nullptr,
              const Wanted& wanted = {});

  // What is known about the table's key.  A PutItem names no key: in a table
  // whose key is another attribute of the record, each would create an item of
  // its own.  So a take is sent only after a GetItem, which names the key, has
  // succeeded.
  enum class Key { unknown, right, wrong };
  bool key_is_right() const { return key_ == Key::right; }
  // unknown: the next lock sends a GetItem first.  While it is wrong, takes and
  // call() for its items are answered with wrong_key and the message `why`,
  // and not sent.
  void set_key(Key key, std::string&& why = {});
  // Then the pending call has its answer, and begin() sends nothing.
  void answer_if_key_is_wrong(Pending& pending);

  // DynamoDB's clock; the host's wall clock.
  ServiceClock clock() const;
  static ServiceTime calendar();

  // The destructor waits no longer than until then for a fetch of keys.
  void end_by(BootTime time) { keys_.end_by(time); }

  Counts counts() const;
  std::size_t max_answer_bytes() const { return options_.max_answer_bytes; }
  // Where requests go, as far as known yet.
  std::string endpoint() const;
  const sigv4::Log& log() const { return options_.log; }

  // Called by finish(), with no mutex held, after an answer has contradicted
  // what was known of DynamoDB's clock.  To be set before the first call.
  void on_contradiction(void (*hook)(void* of), void* of) {
    contradicted_ = hook;
    contradicted_of_ = of;
  }

 private:
  // Derived from the keys and the day.
  struct Site {
    sigv4::Keys::OutcomePtr keys;
    Target target;            // Its `error`: why nothing can be sent.
    std::string url{};        // Of requests.
    sigv4::UrlParts parts{};  // Views of `url`.
    std::string scope{};      // Of signatures, the day first,
    sigv4::SigningKey key{};
  };
  using SitePtr = std::shared_ptr<const Site>;

  bool lacks_keys(Pending& pending, const sigv4::Keys::Current& current) const;
  SitePtr make_site(const sigv4::Keys::OutcomePtr& keys,
                    std::string_view amz_date);
  static ServiceTime time_by(const ServiceClock& clock, BootTime now);
  void hear(const Answer& answer, const sigv4::HttpAnswer& http);
  void learn_key(const Answer& answer);
  static Answer unread(const Pending& pending);
  void failed(const Pending& pending, Answer& answer);
  void tell(const Answer& answer) const;

  const ClientOptions options_;
  sigv4::HttpPool pool_;
  void (*contradicted_)(void* of) = nullptr;
  void* contradicted_of_ = nullptr;
  std::atomic<Key> key_{Key::unknown};  // Set with the mutex held.
  mutable sigv4::Mutex mutex_;
  // GUARDED_BY(mutex_)
  BootTime key_since_ = BootTime::min();  // When key_ was set.
  std::string key_problem_;               // Why it is wrong.
  ServiceClock clock_;
  BootTime tell_contradictions_from_ = BootTime::min();
  SitePtr site_;  // Of the last keys.
  Counts counts_;
  sigv4::Keys keys_;  // Last: its fetches ask for the clock.
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

  // To be written before it begins.
  sigv4::Text& body() { return exchange_->body(); }
  const ServiceClock& clock() const { return clock_; }

  // For sigv4::drive().
  sigv4::Exchange& exchange() { return *exchange_; }
  // False if begin() had no keys or no endpoint.
  bool under_way() const { return exchange_->under_way(); }

 private:
  friend class Client;
  Answer& no_answer(Fault why);

  sigv4::HttpPool& pool_;
  std::unique_ptr<sigv4::Exchange> exchange_;
  Action action_ = Action::get_item;
  ServiceClock clock_;
  ServiceTime signed_at_{};
  char amz_date_[sigv4::kAmzDateBytes];
  SitePtr site_;
  sigv4::Hex signature_;
  Reader reader_ = nullptr;
  Wanted wanted_{};
  std::unique_ptr<Answer> answer_;  // Why nothing was sent; else null.
};

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_CLIENT_HPP
