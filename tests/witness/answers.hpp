// Asks a witness (witness.py, witness.js): a process that is told one
// combination after the other, a line of JSON each, and answers likewise.
#ifndef DDBMUTEX_TESTS_WITNESS_ANSWERS_HPP
#define DDBMUTEX_TESTS_WITNESS_ANSWERS_HPP

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/aws.hpp"
#include "tests/support/process.hpp"
#include "tests/witness/combination.hpp"
#include "tests/witness/outcome.hpp"

namespace witness {

// A combination with its files in place.
struct Placed {
  const Combination& combination;
  std::map<std::string, std::string> variables;

  // As ddbmutex::sigv4::Environment asks for a variable.
  std::string operator()(const char* name) const {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  }
};

// What the stand-ins were asked on the way to keys, a text each.  Of a
// request's fields those count that the combination says; others are the
// asker's own choice: "*".  So is how often a metadata token is got.
inline std::vector<std::string> way_of(const tests::AwsLog& log,
                                       const Combination& combination) {
  std::vector<std::string> way;
  for (const tests::AwsRequest& request : log.requests()) {
    if (request.operation == "PutToken") continue;
    if (request.operation == "GetRegion") continue;
    std::string step = request.service + " " + request.operation;
    if (!request.key.empty()) {
      step += " by " + (is_issued(request.key) ? "issued" : request.key);
      step += " in " + request.region;
    }
    for (const char* name : {"RoleArn", "RoleSessionName", "ExternalId",
                             "DurationSeconds", "role_name", "account_id"}) {
      const auto field = request.form.find(name);
      if (field == request.form.end()) continue;
      const std::string& value = field->second;
      // An hour is what STS takes if it is not told.
      if (name == std::string("DurationSeconds") && value == "3600") continue;
      const bool is_said = combination.text.find(value) != std::string::npos;
      step += std::string(" ") + name + "=" + (is_said ? value : "*");
    }
    way.push_back(step);
  }
  return way;
}

class Witness {
 public:
  explicit Witness(const std::vector<std::string>& command)
      : process_({command, tests::clean_environment()}) {}

  Outcomes ask(const Placed& placed, const tests::Aws& aws) {
    process_.channel().say(as_json(placed));
    const std::string line = process_.channel().line();
    rapidjson::Document answer;
    answer.Parse(line.data(), line.size());
    Outcomes outcomes = {{"keys", {}}, {"region", {}}, {"endpoint", {}}};
    const auto& keys = member(answer, "keys");
    version_ = text(answer, "version");
    if (!keys.HasMember("refused")) {
      outcomes["keys"] =
          of_keys(text(keys, "id"), text(keys, "secret"), text(keys, "token"),
                  way_of(aws.log(), placed.combination));
    }
    const auto& target = member(answer, "target");
    if (!target.HasMember("refused")) {
      outcomes["region"] = {text(target, "region")};
      outcomes["endpoint"] = of_endpoint(text(target, "url"));
    }
    return outcomes;
  }

  // Of what it asks, once it has been asked.
  const std::string& version() const { return version_; }

 private:
  // What has gone wrong is told without the line: it has keys.
  static const rapidjson::Value& member(const rapidjson::Value& object,
                                        const char* name) {
    if (object.IsObject() && object.HasMember(name) &&
        object[name].IsObject()) {
      return object[name];
    }
    throw std::runtime_error(std::string("witness: tells no ") + name);
  }

  static std::string text(const rapidjson::Value& object, const char* name) {
    if (object.HasMember(name) && object[name].IsString()) {
      return object[name].GetString();
    }
    throw std::runtime_error(std::string("witness: tells no ") + name);
  }

  static std::string as_json(const Placed& placed) {
    rapidjson::StringBuffer text;
    rapidjson::Writer<rapidjson::StringBuffer> writer(text);
    const auto member = [&writer](const std::string& name,
                                  const std::string& value) {
      writer.Key(name.c_str());
      writer.String(value.c_str());
    };
    writer.StartObject();
    member("name", placed.combination.name);
    member("profile", placed.combination.profile);
    member("region", placed.combination.region);
    writer.Key("environment");
    writer.StartObject();
    for (const auto& [name, value] : placed.variables) member(name, value);
    writer.EndObject();
    writer.EndObject();
    return text.GetString();
  }

  tests::Process process_;
  std::string version_;
};

}  // namespace witness

#endif  // DDBMUTEX_TESTS_WITNESS_ANSWERS_HPP
