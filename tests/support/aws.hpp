// AWS's key services (tests/aws/aws.js) on this machine: STS, EC2's metadata
// service, the agent of containers; and a forward proxy.  A process of ours
// that checks what the real ones check, gives out keys that a tests::Gateway
// takes, and does on command what goes wrong.
//
//   Aws aws;
//   Gateway gateway(engine.url(), aws.gateway_settings());
//   aws.user({"AKIDSOURCE", "its-secret"});
//   aws.role({"arn:aws:iam::123456789012:role/locker"});
//   aws.lifetime(5s);                             // Of keys from now on.
//   aws.fault({"sts", "AssumeRole", "refuse"});   // The next one.
//   ... a program with the variables of aws.environment() ...
//   aws.log().count("sts", "AssumeRole");         // 2
//   gateway.counts().expired_keys();              // 0
//
// Services and operations: "sts" AssumeRole, AssumeRoleWithWebIdentity; "imds"
// PutToken, ListRoles, GetRole, GetRegion; "container" GetCredentials; anywhere
// Redirected (somebody went where a redirect of ours led) and Other.
//
// What goes wrong throws std::runtime_error.
#ifndef DDBMUTEX_TESTS_SUPPORT_AWS_HPP
#define DDBMUTEX_TESTS_SUPPORT_AWS_HPP

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/gateway.hpp"
#include "tests/support/process.hpp"

namespace tests {

struct AwsSettings {
  bool tls = true;              // Listens on https too, but for metadata.
  std::string seed = "issued";  // Of the keys that it gives out.
};

// A pair of keys, or, if they are temporary, with their token and end.
struct AwsKeys {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token{};
  std::int64_t expires = 0;  // Seconds since 1970; 0: never.
  std::string expiration{};  // The same as documents have it.
};

// Those may assume it who have keys, and know the external ID, if there is one.
// Any valid web identity may.
struct AwsRole {
  std::string arn;
  std::string external_id{};
};

// Which requests are hit, and what becomes of them.  tests/aws/mischief.js says
// what each kind does: refuse, redirect, alter.
struct AwsFault {
  std::string service = "*";
  std::string operation = "*";
  std::string kind = "refuse";
  int times = 1;       // So many in a row; 0: all of them.
  int status = 0;      // For refuse and redirect; 0: the kind's own.
  std::string code{};  // For refuse.
  std::string message{};
  std::map<std::string, std::string> set{};  // For alter.
};

// What one request was, as far as it is no secret, and what became of it.
struct AwsRequest {
  std::string service;
  std::string operation;
  // "http", "https"; "expired", "other-host", "unknown-ca": somebody has taken
  // a certificate that is no good.
  std::string door;
  std::string method;
  std::map<std::string, std::string> headers;  // By names in lower case.
  std::map<std::string, std::string> form;     // Or the query, or members.
  std::string key;        // The access key ID that signed well.
  std::string region;     // For which it signed.
  std::string signature;  // "none", "good", "bad"
  std::string token;      // "absent", "wrong", "expired", "valid"
};

// What was asked since it was started, or told to forget.
class AwsLog {
 public:
  // As GET /log tells it.
  explicit AwsLog(const std::string& json);

  // Copied, for `for (... : aws.log().requests())`.
  std::vector<AwsRequest> requests() const { return requests_; }
  int count(const std::string& service,
            const std::string& operation = "*") const;
  // The last one; throws if there is none.
  const AwsRequest& last(const std::string& service,
                         const std::string& operation = "*") const;
  // The proxy's: plain requests, who did not tell the right password, and
  // "host:port" of all, in that order.
  int plain() const { return plain_; }
  int unauthorized() const { return unauthorized_; }
  const std::vector<std::string>& targets() const { return targets_; }

 private:
  std::vector<AwsRequest> requests_;
  int plain_ = 0;
  int unauthorized_ = 0;
  std::vector<std::string> targets_;
};

// Any thread may call any member.  Start it from a thread that outlives it, and
// one at a time: all that serve the same names share their certificates.
class Aws {
 public:
  using Settings = AwsSettings;

  // Runs and listens.
  explicit Aws(const Settings& settings = Settings());
  ~Aws();
  Aws(const Aws&) = delete;
  Aws& operator=(const Aws&) = delete;

  // Of a service: https if there is TLS and it is not metadata.
  std::string url(const std::string& service) const;
  std::string plain_url(const std::string& service) const;
  // https with a certificate that nobody should take: "expired", "other-host"
  // or "unknown-ca".  Behind it is STS.
  std::string url_with(const std::string& certificate) const;
  std::string proxy_url() const;
  // The same proxy behind TLS, with a certificate that is "good" or one of
  // url_with().
  std::string tls_proxy_url(const std::string& certificate) const;
  // By names of variables, what leads a program of AWS's manner here: the
  // URLs of STS and metadata, and the CA.
  std::map<std::string, std::string> environment() const;
  // PEM, of the CA that vouches for https; empty without TLS.
  const std::string& ca_file() const { return ca_file_; }
  // With the server's certificate and key, for a Gateway.
  std::string certificates() const;
  // Of a Gateway that takes its keys, and listens with its certificate.
  GatewaySettings gateway_settings() const;

  // Of the keys that it gives out from now on, whatever is asked for; may be
  // negative: they are over already.
  void lifetime(std::chrono::seconds time);
  // Keys, for a test to hand on as it likes, that end so much later.
  AwsKeys issue(std::chrono::seconds lifetime) const;
  // STS knows that pair.  A Gateway is told by its settings.
  void user(const AwsKeys& keys);
  void role(const AwsRole& role);
  void web_identity(const std::string& token, std::chrono::seconds lifetime);
  void fault(const AwsFault& fault);
  void clear();  // No fault any more.
  // Of a service, or "*": "open"; "refuse": all connections are reset, none is
  // accepted; "hang": all is read and nothing goes on.
  void mode(const std::string& service, const std::string& mode);
  AwsLog log() const;
  void forget();  // The log is empty again.
  // Secrets and tokens of all keys that it has given out.
  std::vector<std::string> secrets() const;

  // An exchange with its control port as it stands (tests/aws/control.js): the
  // answer's body.
  std::string control(const std::string& method, const std::string& path,
                      const std::string& json = {}) const;
  Process& process() { return process_; }

 private:
  const Settings settings_;
  Process process_;
  std::map<std::string, int> plain_;
  std::map<std::string, int> tls_;
  int proxy_ = 0;
  std::map<std::string, int> tls_proxies_;
  int control_ = 0;
  std::string ca_file_;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_AWS_HPP
