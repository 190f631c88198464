#include "tests/support/gateway.hpp"

#include <poll.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "sigv4/boot_clock.hpp"
#include "tests/support/control_port.hpp"
#include "tests/support/waiting.hpp"

using ddbmutex::BootClock;

namespace tests {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error("gateway: " + what);
}

// This file is tests/support/gateway.cpp.
std::string program() {
  const std::string file = __FILE__;
  return file.substr(0, file.rfind("support/")) + "gateway/gateway.js";
}

ProcessSettings process_settings(const std::string& engine_url,
                                 const GatewaySettings& settings) {
  std::vector<std::string> command = {
      "/usr/bin/env",
      "node",
      program(),
      "--engine=" + engine_url,
      "--key=" + settings.keys.access_key_id,
      "--secret=" + settings.keys.secret_access_key,
      "--token=" + settings.keys.session_token,
      "--seed=" + std::to_string(settings.seed),
      "--slow-tables=" + std::to_string(settings.slow_tables.count())};
  if (!settings.issued_seed.empty()) {
    command.push_back("--issued=" + settings.issued_seed);
  }
  if (settings.tls) command.push_back("--tls");
  if (!settings.certificates.empty()) {
    command.push_back("--certificates=" + settings.certificates);
  }
  if (settings.sign) command.push_back("--sign");
  return {command, clean_environment()};
}

rapidjson::Document parse(const std::string& json) {
  rapidjson::Document parsed;
  parsed.Parse(json.data(), json.size());
  if (parsed.HasParseError() || !parsed.IsObject()) fail("it said " + json);
  return parsed;
}

int number(const rapidjson::Value& object, const char* name) {
  const auto member = object.FindMember(name);
  if (member == object.MemberEnd()) return 0;
  return member->value.IsInt() ? member->value.GetInt() : 0;
}

std::map<std::string, int> numbers(const rapidjson::Value& object,
                                   const char* name) {
  std::map<std::string, int> all;
  const auto member = object.FindMember(name);
  if (member == object.MemberEnd() || !member->value.IsObject()) {
    fail(std::string("it does not count ") + name);
  }
  for (const auto& one : member->value.GetObject()) {
    all[one.name.GetString()] = number(member->value, one.name.GetString());
  }
  return all;
}

int one_of(const std::map<std::string, int>& all, const std::string& name) {
  const auto found = all.find(name);
  return found != all.end() ? found->second : 0;
}

int sum(const std::map<std::string, int>& all) {
  int total = 0;
  for (const auto& one : all) total += one.second;
  return total;
}

using Json = rapidjson::Writer<rapidjson::StringBuffer>;

void write_ms(Json& json, const Fault& fault) {
  if (fault.from.count() == 0 && fault.to.count() == 0) return;
  json.Key("ms");
  json.StartArray();
  json.Int64(fault.from.count());
  json.Int64(fault.to.count() == 0 ? fault.from.count() : fault.to.count());
  json.EndArray();
}

std::string rule(const Fault& fault) {
  rapidjson::StringBuffer text;
  Json json(text);
  json.StartObject();
  json.Key("action");
  json.String(fault.action.c_str());
  json.Key("fault");
  json.String(fault.kind.c_str());
  if (fault.probability) {
    json.Key("probability");
    json.Double(*fault.probability);
  } else {
    json.Key("nth");
    json.Int(fault.nth);
    json.Key("times");
    json.Int(fault.times);
  }
  write_ms(json, fault);
  if (fault.retry_after.count() != 0) {
    json.Key("retry_after_ms");
    json.Int64(fault.retry_after.count());
  }
  json.EndObject();
  return text.GetString();
}

}  // namespace

// --- Counts ----------------------------------------------------------------

GatewayCounts::GatewayCounts(const std::string& json) {
  const rapidjson::Document counts = parse(json);
  requests_ = numbers(counts, "requests");
  faults_ = numbers(counts, "faults");
  applied_ = numbers(counts, "applied");
  signatures_ = numbers(counts, "signatures");
  under_way_ = number(counts, "under_way");
}

int GatewayCounts::requests(const std::string& action) const {
  return one_of(requests_, action);
}
int GatewayCounts::all_requests() const { return sum(requests_); }
int GatewayCounts::faults(const std::string& kind) const {
  return one_of(faults_, kind);
}
int GatewayCounts::all_faults() const { return sum(faults_); }
int GatewayCounts::applied(const std::string& action) const {
  return one_of(applied_, action);
}
int GatewayCounts::good_signatures() const {
  return one_of(signatures_, "good");
}
int GatewayCounts::bad_signatures() const { return one_of(signatures_, "bad"); }
int GatewayCounts::early_signatures() const {
  return one_of(signatures_, "early");
}
int GatewayCounts::late_signatures() const {
  return one_of(signatures_, "late");
}
int GatewayCounts::expired_keys() const {
  return one_of(signatures_, "expired");
}

// --- The gateway -----------------------------------------------------------

Gateway::Gateway(const std::string& engine_url, const Settings& settings)
    : settings_(settings), process_(process_settings(engine_url, settings)) {
  const rapidjson::Document ports = parse(first_line("gateway", process_));
  http_ = number(ports, "http");
  https_ = number(ports, "https");
  control_ = number(ports, "control");
  if (settings.tls) ca_file_ = ports["ca"].GetString();
}

Gateway::~Gateway() {
  try {
    process_.channel().hang_up();
    process_.wait();
  } catch (const std::runtime_error&) {
    // It hangs: ~Process() kills it.
  }
  if (ca_file_.empty() || !settings_.certificates.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(std::filesystem::path(ca_file_).parent_path(),
                              ignored);
}

std::string Gateway::url() const {
  if (https_ == 0) return plain_url();
  return "https://127.0.0.1:" + std::to_string(https_);
}

std::string Gateway::plain_url() const {
  return "http://127.0.0.1:" + std::to_string(http_);
}

Whereabouts Gateway::where(const std::string& table) const {
  Whereabouts where;
  where.url = plain_url();
  where.table = table;
  where.keys = settings_.keys;
  return where;
}

ddbmutex::TableOptions Gateway::table_options(const std::string& table) const {
  ddbmutex::TableOptions options;
  options.name = table;
  options.region = Whereabouts().region;
  options.endpoint = url();
  options.credentials = settings_.keys;
  options.ca_file = ca_file_;
  return options;
}

std::vector<std::string> Gateway::environment() const {
  Whereabouts over_tls = where("");
  over_tls.url = url();
  std::vector<std::string> environment = environment_of(over_tls);
  if (https_ != 0) environment.push_back("AWS_CA_BUNDLE=" + ca_file_);
  return environment;
}

void Gateway::fault(const std::string& action, const std::string& kind,
                    int times) {
  Fault fault;
  fault.action = action;
  fault.kind = kind;
  fault.times = times;
  add(fault);
}

void Gateway::add(const Fault& fault) {
  control("POST", "/rules", rule(fault));
}

void Gateway::clear() { control("DELETE", "/rules"); }

void Gateway::let_go() { control("POST", "/go"); }

void Gateway::mode(const std::string& mode) {
  control("POST", "/mode", R"({"mode":")" + mode + R"("})");
}

void Gateway::clock_offset(std::chrono::seconds offset) {
  control("POST", "/clock",
          R"({"offset_s":)" + std::to_string(offset.count()) + "}");
}

void Gateway::dates(bool shown) {
  control("POST", "/clock", shown ? R"({"date":true})" : R"({"date":false})");
}

void Gateway::forget() { control("POST", "/forget"); }

Gateway::Counts Gateway::counts() const {
  return Counts(control("GET", "/counts"));
}

void Gateway::wait_until_quiet() const {
  const auto end = BootClock::now() + kPlenty;
  while (counts().under_way() != 0) {
    if (BootClock::now() >= end) fail("there is always something under way");
    poll(nullptr, 0, 5);
  }
}

std::string Gateway::control(const std::string& method, const std::string& path,
                             const std::string& json) const {
  return call_control("gateway", control_, method, path, json);
}

}  // namespace tests
