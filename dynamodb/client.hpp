// One typed DynamoDB call: signed, sent, and its answer read.
//
// Nothing is tried again here: a conditional write must be made anew for every
// attempt, which only its author can do.  retry.hpp says whether to, and when.
//
// Thread safety: any thread may call any member of Client.
#ifndef DDBMUTEX_DYNAMODB_CLIENT_HPP
#define DDBMUTEX_DYNAMODB_CLIENT_HPP

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dynamodb/answer.hpp"
#include "dynamodb/clock.hpp"
#include "sigv4/credentials.hpp"
#include "sigv4/http.hpp"
#include "sigv4/sigv4.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

struct ClientOptions {
  // "https://dynamodb.eu-west-1.amazonaws.com"; a path is not allowed.
  std::string endpoint;
  std::string region;
  // Asked for every request, by the thread that makes it.
  sigv4::KeySource credentials;
  sigv4::HttpOptions http;
};

// Requests that were sent and have ended, by action.
struct Counts {
  std::array<std::uint64_t, kActions> sent{};
};

class Client {
 public:
  // A call under way.  Ended, and its connection closed, when destroyed.
  class Pending;

  // REQUIRES: is_endpoint(options.endpoint).
  explicit Client(ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Signs and begins to send.
  std::unique_ptr<Pending> begin(Action action, std::string body);
  // What it came to.  What is still under way ends as `why`.
  Answer finish(std::unique_ptr<Pending> pending, sigv4::Transport why);

  // begin, wait until `deadline` or a wake (the waker is not cleared), finish.
  Answer call(Action action, std::string body, BootTime deadline,
              sigv4::Waker& waker);

  // DynamoDB's clock as of now; what the host's calendar says.
  ServiceClock clock() const;
  static ServiceTime calendar();

  Counts counts() const;

  // Called by finish(), with no mutex held, after an answer has contradicted
  // what was known of DynamoDB's clock.  To be set before the first call.
  void on_contradiction(std::function<void()> hook) {
    contradicted_ = std::move(hook);
  }

 private:
  ServiceTime signing_time() const;
  void hear(const sigv4::HttpAnswer& http, std::optional<ServiceTime> date);
  std::vector<std::string> signed_headers(Action action,
                                          const std::string& body,
                                          const sigv4::Credentials& keys,
                                          ServiceTime signed_at);

  const ClientOptions options_;
  const sigv4::Url url_;
  const std::string target_url_;
  sigv4::HttpPool pool_;
  sigv4::SigningKeys keys_;
  std::function<void()> contradicted_;
  mutable std::mutex mutex_;
  ServiceClock clock_;  // GUARDED_BY(mutex_)
  std::array<std::atomic<std::uint64_t>, kActions> sent_{};
};

class Client::Pending {
 public:
  // For sigv4::drive().  Null if there were no keys to begin with.
  sigv4::Exchange* exchange() { return exchange_.get(); }
  bool under_way() const { return exchange_ && exchange_->under_way(); }

 private:
  friend class Client;
  Action action_ = Action::get_item;
  ServiceTime signed_at_{};
  std::unique_ptr<sigv4::Exchange> exchange_;
  std::string no_keys_;  // Why not.
};

// An http or https URL of a host, with no path but "/".
bool is_endpoint(const std::string& url);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_DYNAMODB_CLIENT_HPP
