#include "tests/support/aws.hpp"

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "tests/support/control_port.hpp"

namespace tests {
namespace {

using Json = rapidjson::Writer<rapidjson::StringBuffer>;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error("aws: " + what);
}

// This file is tests/support/aws.cpp.
std::string program() {
  const std::string file = __FILE__;
  return file.substr(0, file.rfind("support/")) + "aws/aws.js";
}

// A directory for the certificates of all stand-ins of this program: making
// them takes longer than all else that a stand-in does.  Its name tells who it
// belongs to (tests/gateway/authority.js takes those away that were left
// behind).
class Certificates {
 public:
  Certificates() {
    const std::string name = "ddbmutex-gateway-" + std::to_string(owner_) + "-";
    path_ = std::filesystem::temp_directory_path() / (name + "XXXXXX");
    if (mkdtemp(path_.data()) == nullptr) fail("no directory " + path_);
  }
  ~Certificates() {
    std::error_code ignored;
    if (getpid() == owner_) std::filesystem::remove_all(path_, ignored);
  }
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  const std::string& path() const { return path_; }

 private:
  const pid_t owner_ = getpid();
  std::string path_;
};

ProcessSettings process_settings(const AwsSettings& settings) {
  std::vector<std::string> command = {"/usr/bin/env", "node", program(),
                                      "--issued=" + settings.seed};
  static const Certificates certificates;
  if (settings.tls) command.push_back("--tls=" + certificates.path());
  return {command, clean_environment()};
}

// --- Reading ---------------------------------------------------------------

rapidjson::Document parse(const std::string& json) {
  rapidjson::Document parsed;
  parsed.Parse(json.data(), json.size());
  if (parsed.HasParseError() || !parsed.IsObject()) fail("it speaks no JSON");
  return parsed;
}

const rapidjson::Value& member(const rapidjson::Value& object,
                               const char* name) {
  const auto found = object.FindMember(name);
  if (found == object.MemberEnd()) fail(std::string("it tells no ") + name);
  return found->value;
}

std::string text(const rapidjson::Value& object, const char* name) {
  const rapidjson::Value& value = member(object, name);
  if (!value.IsString()) fail(std::string(name) + " is no text");
  return {value.GetString(), value.GetStringLength()};
}

int number(const rapidjson::Value& object, const char* name) {
  const rapidjson::Value& value = member(object, name);
  if (!value.IsInt()) fail(std::string(name) + " is no number");
  return value.GetInt();
}

std::map<std::string, int> ports(const rapidjson::Value& told,
                                 const char* name) {
  std::map<std::string, int> all;
  for (const auto& one : member(told, name).GetObject()) {
    all[one.name.GetString()] = one.value.GetInt();
  }
  return all;
}

std::map<std::string, std::string> texts(const rapidjson::Value& object,
                                         const char* name) {
  std::map<std::string, std::string> all;
  for (const auto& one : member(object, name).GetObject()) {
    const char* key = one.name.GetString();
    all[key] = text(member(object, name), key);
  }
  return all;
}

AwsRequest request(const rapidjson::Value& entry) {
  AwsRequest request;
  request.service = text(entry, "service");
  request.operation = text(entry, "operation");
  request.door = text(entry, "door");
  request.method = text(entry, "method");
  request.headers = texts(entry, "headers");
  request.form = texts(entry, "form");
  request.key = text(entry, "key");
  request.region = text(entry, "region");
  request.signature = text(entry, "signature");
  request.token = text(entry, "token");
  return request;
}

bool is_of(const AwsRequest& request, const std::string& service,
           const std::string& operation) {
  return request.service == service &&
         (operation == "*" || request.operation == operation);
}

// --- Writing ---------------------------------------------------------------

// {"a":"x","n":5,...}
class Object {
 public:
  Object() { json_.StartObject(); }

  Object& add(const char* name, const std::string& value) {
    json_.Key(name);
    write(value);
    return *this;
  }
  Object& add(const char* name, std::int64_t value) {
    json_.Key(name);
    json_.Int64(value);
    return *this;
  }
  Object& add(const char* name,
              const std::map<std::string, std::string>& values) {
    json_.Key(name);
    json_.StartObject();
    for (const auto& one : values) {
      json_.Key(one.first.c_str());
      write(one.second);
    }
    json_.EndObject();
    return *this;
  }
  // If it is there.
  Object& add_if(const char* name, const std::string& value) {
    return value.empty() ? *this : add(name, value);
  }
  Object& add_if(const char* name, std::int64_t value) {
    return value == 0 ? *this : add(name, value);
  }

  std::string end() {
    json_.EndObject();
    return text_.GetString();
  }

 private:
  void write(const std::string& value) {
    json_.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  }

  rapidjson::StringBuffer text_;
  Json json_{text_};
};

std::string rule(const AwsFault& fault) {
  Object rule;
  rule.add("service", fault.service)
      .add("operation", fault.operation)
      .add("fault", fault.kind)
      .add("times", fault.times)
      .add_if("status", fault.status)
      .add_if("code", fault.code)
      .add_if("message", fault.message);
  if (!fault.set.empty()) rule.add("set", fault.set);
  return rule.end();
}

std::string local(const char* scheme, int port) {
  return std::string(scheme) + "://127.0.0.1:" + std::to_string(port);
}

}  // namespace

// --- The log ---------------------------------------------------------------

AwsLog::AwsLog(const std::string& json) {
  const rapidjson::Document told = parse(json);
  for (const auto& entry : member(told, "requests").GetArray()) {
    requests_.push_back(request(entry));
  }
  const rapidjson::Value& proxy = member(told, "proxy");
  plain_ = number(proxy, "plain");
  unauthorized_ = number(proxy, "unauthorized");
  for (const auto& target : member(proxy, "targets").GetArray()) {
    targets_.push_back(target.GetString());
  }
}

int AwsLog::count(const std::string& service,
                  const std::string& operation) const {
  const auto is_meant = [&](const AwsRequest& one) {
    return is_of(one, service, operation);
  };
  return static_cast<int>(
      std::count_if(requests_.begin(), requests_.end(), is_meant));
}

const AwsRequest& AwsLog::last(const std::string& service,
                               const std::string& operation) const {
  for (auto one = requests_.rbegin(); one != requests_.rend(); ++one) {
    if (is_of(*one, service, operation)) return *one;
  }
  fail(service + " was not asked for " + operation);
}

// --- The stand-ins ---------------------------------------------------------

Aws::Aws(const Settings& settings)
    : settings_(settings), process_(process_settings(settings)) {
  const rapidjson::Document told = parse(first_line("aws", process_));
  plain_ = ports(told, "ports");
  tls_ = ports(told, "tls");
  proxy_ = number(told, "proxy");
  tls_proxies_ = ports(told, "proxies");
  control_ = number(told, "control");
  if (settings.tls) ca_file_ = text(told, "ca");
}

Aws::~Aws() {
  try {
    process_.channel().hang_up();
    process_.wait();
  } catch (const std::runtime_error&) {
    // It hangs: ~Process() kills it.
  }
}

std::string Aws::url(const std::string& service) const {
  const auto found = tls_.find(service);
  return found == tls_.end() ? plain_url(service)
                             : local("https", found->second);
}

std::string Aws::plain_url(const std::string& service) const {
  const auto found = plain_.find(service);
  if (found == plain_.end()) fail(service + " is no service of it");
  return local("http", found->second);
}

std::string Aws::url_with(const std::string& certificate) const {
  const auto found = tls_.find(certificate);
  if (found == tls_.end()) fail("it has no such certificate: " + certificate);
  return local("https", found->second);
}

std::string Aws::proxy_url() const { return local("http", proxy_); }

std::string Aws::tls_proxy_url(const std::string& certificate) const {
  return local("https", tls_proxies_.at(certificate));
}

std::map<std::string, std::string> Aws::environment() const {
  std::map<std::string, std::string> variables = {
      {"AWS_ENDPOINT_URL_STS", url("sts")},
      {"AWS_EC2_METADATA_SERVICE_ENDPOINT", url("imds")}};
  if (!ca_file_.empty()) variables["AWS_CA_BUNDLE"] = ca_file_;
  return variables;
}

std::string Aws::certificates() const {
  return std::filesystem::path(ca_file_).parent_path();
}

GatewaySettings Aws::gateway_settings() const {
  GatewaySettings settings;
  settings.tls = settings_.tls;
  settings.issued_seed = settings_.seed;
  settings.certificates = certificates();
  return settings;
}

void Aws::lifetime(std::chrono::seconds time) {
  control("POST", "/lifetime", Object().add("seconds", time.count()).end());
}

AwsKeys Aws::issue(std::chrono::seconds lifetime) const {
  const std::string wish = Object().add("seconds", lifetime.count()).end();
  const rapidjson::Document keys = parse(control("POST", "/issue", wish));
  return {text(keys, "AccessKeyId"), text(keys, "SecretAccessKey"),
          text(keys, "SessionToken"), member(keys, "expires").GetInt64(),
          text(keys, "Expiration")};
}

void Aws::user(const AwsKeys& keys) {
  control("POST", "/users",
          Object()
              .add("key", keys.access_key_id)
              .add("secret", keys.secret_access_key)
              .add("token", keys.session_token)
              .end());
}

void Aws::role(const AwsRole& role) {
  control("POST", "/roles",
          Object()
              .add("arn", role.arn)
              .add_if("external_id", role.external_id)
              .end());
}

void Aws::web_identity(const std::string& token,
                       std::chrono::seconds lifetime) {
  control("POST", "/web-identity",
          Object().add("token", token).add("seconds", lifetime.count()).end());
}

void Aws::fault(const AwsFault& fault) {
  control("POST", "/rules", rule(fault));
}

void Aws::clear() { control("DELETE", "/rules"); }

void Aws::mode(const std::string& service, const std::string& mode) {
  control("POST", "/mode",
          Object().add("service", service).add("mode", mode).end());
}

AwsLog Aws::log() const { return AwsLog(control("GET", "/log")); }

void Aws::forget() { control("POST", "/forget"); }

std::vector<std::string> Aws::secrets() const {
  const rapidjson::Document told = parse(control("GET", "/secrets"));
  std::vector<std::string> secrets;
  for (const auto& secret : member(told, "secrets").GetArray()) {
    secrets.push_back(secret.GetString());
  }
  return secrets;
}

std::string Aws::control(const std::string& method, const std::string& path,
                         const std::string& json) const {
  return call_control("aws", control_, method, path, json);
}

}  // namespace tests
