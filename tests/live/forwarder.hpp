// An HTTP proxy on 127.0.0.1 that all processes of a run use.  It counts every
// request that leaves for DynamoDB exactly, even those of a process that is
// killed.  The processes sign for DynamoDB's own host and send to the proxy
// without TLS; it sends on what they have signed, unchanged, by the library's
// own HTTP and TLS.  So DynamoDB checks their signatures, and the proxy needs
// no keys.
//
//   Forwarder forwarder("https://dynamodb.eu-west-1.amazonaws.com", "");
//   run(forwarder.environment());
//   forwarder.stop();
//   forwarder.counts();  // {"GetItem", 12}, ...
#ifndef DDBMUTEX_TESTS_LIVE_FORWARDER_HPP
#define DDBMUTEX_TESTS_LIVE_FORWARDER_HPP

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sigv4/http.hpp"
#include "sigv4/http_pool.hpp"
#include "tests/support/scripted_server.hpp"

namespace live {

// Numbers of requests, by action.
using RequestCounts = std::map<std::string, std::uint64_t>;

// Any thread may call any member.
class Forwarder {
 public:
  // `endpoint`: "https://host" or "https://host:port"; `ca_file` may be empty.
  Forwarder(const std::string& endpoint, const std::string& ca_file);

  // The endpoint that its clients have to use: "http://host".
  const std::string& url() const { return plain_; }
  // The environment that sends them through the proxy: NAME=VALUE.
  std::vector<std::string> environment() const;

  // From now on, one in `many` of DynamoDB's answers is lost, and its
  // connection reset; 0: none.
  void lose_one_answer_in(int many) { lose_one_in_ = many; }

  // Takes no more requests, and waits for those in flight.
  void stop() { server_.stop(); }
  // Those that left for DynamoDB.
  RequestCounts counts() const;
  // How many answers were lost on purpose.
  int lost() const { return lost_; }

 private:
  tests::Reply hand_on(const tests::SeenRequest& request);
  void send(const tests::SeenRequest& request,
            ddbmutex::sigv4::Exchange& exchange) const;
  bool is_to_be_lost();

  const std::string endpoint_;  // Without a '/' at the end.
  const std::string plain_;
  ddbmutex::sigv4::HttpPool pool_;
  std::atomic<int> lose_one_in_{0};
  std::atomic<int> answers_{0};
  std::atomic<int> lost_{0};
  mutable std::mutex mutex_;
  RequestCounts counts_;          // GUARDED_BY(mutex_)
  tests::ScriptedServer server_;  // Last: it uses the others.
};

}  // namespace live

#endif  // DDBMUTEX_TESTS_LIVE_FORWARDER_HPP
