// Requests drawn from a seed, to compare the simulated DynamoDB with an engine:
// as the library and other clients send them, and others of the same forms, on
// rows of any content.
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_RANDOM_REQUESTS_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_RANDOM_REQUESTS_HPP

#include <cstddef>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace world::dynamodb {

struct RandomRequest {
  std::string operation;  // "PutItem"
  std::string body;
};

// Of the tables "locks", whose key is `name`, and "sorted", whose sort key is
// `part`.
class RandomRequests {
 public:
  explicit RandomRequests(unsigned seed) : random_(seed) {}

  RandomRequest next() {
    forget();
    key_count_ = 3;
    const std::size_t kind = below(20);
    RandomRequest request = kind < 3    ? get()
                            : kind < 8  ? put()
                            : kind < 13 ? update_item()
                            : kind < 15 ? deletion()
                            : kind < 17 ? page(kind == 16)
                                        : transaction();
    request.body = "{" + request.body + "}";
    return request;
  }
  // From now on, transactions have tokens that none before had.
  void use_new_tokens() { ++token_series_; }

 private:
  using Text = std::string;
  using Members = std::map<Text, Text>;

  std::size_t below(std::size_t count) { return random_() % count; }
  bool one_in(std::size_t count) { return below(count) == 0; }
  Text any(const std::vector<const char*>& texts) {
    return texts[below(texts.size())];
  }

  // --- JSON

  static Text quoted(const Text& text) { return '"' + text + '"'; }
  static Text string(const Text& text) { return R"({"S":")" + text + "\"}"; }
  Text number() { return R"({"N":")" + digits() + "\"}"; }
  static Text with(const char* member, const Text& json) {
    return ",\"" + Text(member) + "\":" + json;
  }
  static Text joined(const Members& members) {
    Text text;
    for (const auto& [name, json] : members) {
      text += (text.empty() ? "" : ",") + quoted(name) + ":" + json;
    }
    return text;
  }

  // --- Names and values

  void forget() {
    names_.clear();
    values_.clear();
  }
  Text attribute() {
    return any({"uuid", "expires", "lease", "owner", "token", "note", "kvs",
                "words", "ids", "bytes", "flag"});
  }
  // Its placeholder: some of them are reserved words.
  Text path() {
    const Text name = attribute();
    const Text mark = "#" + name.substr(0, 2);
    names_[mark] = quoted(name);
    return mark;
  }
  Text bound(const Text& json) {
    const Text mark = ":" + std::to_string(values_.size());
    values_[mark] = json;
    return mark;
  }
  Text bindings() const {
    Text text;
    if (!names_.empty()) {
      text += with("ExpressionAttributeNames", "{" + joined(names_) + "}");
    }
    if (!values_.empty()) {
      text += with("ExpressionAttributeValues", "{" + joined(values_) + "}");
    }
    return text;
  }

  Text digits() {
    if (one_in(2)) {
      return any({"0", "1", "2", "10", "-2", "-10", "1795312221289328903"});
    }
    if (one_in(2)) return std::to_string(below(5));
    return any({"-1", "0.5", "1.50", "-0", "1e2", "100", "007", "12.340e-3",
                "99999999999999999999999999999999999999", "1E-130", "9.9e125"});
  }
  Text value(int depth) {
    const std::size_t kind = below(depth < 2 ? 12 : 9);
    if (kind < 4) {
      return string(
          any({"", "a", "ab", "abc", "b", "S", "N", "1", "\xc3\xa4"}));
    }
    if (kind < 7) return number();
    switch (kind) {
      case 7:
        return any({R"({"B":""})", R"({"B":"AQI="})", R"({"B":"AQ=="})",
                    R"({"BOOL":true})", R"({"BOOL":false})",
                    R"({"NULL":true})"});
      case 8:
        return any({R"({"SS":["a"]})", R"({"SS":["b","a"]})",
                    R"({"BS":["AQ==","AQI="]})", R"({"NS":["2","1.0"]})",
                    R"({"NS":["1e1","3"]})"});
      case 9:
        return R"({"L":[]})";
      case 10:
        return R"({"L":[)" + value(depth + 1) + "," + value(depth + 1) + "]}";
      default:
        return R"({"M":{"inner":)" + value(depth + 1) + "}}";
    }
  }
  // --- Where it is

  Text table() {
    return R"("TableName":)" + quoted(is_sorted_ ? "sorted" : "locks");
  }
  Text key_members() {
    is_sorted_ = one_in(4);
    const Text name(1, static_cast<char>('a' + below(key_count_)));
    return R"("name":)" + string(name) +
           (is_sorted_ ? with("part", string(any({"1", "2", "3"}))) : "");
  }
  Text key() { return R"("Key":{)" + key_members() + "}"; }
  Text item() {
    const Text key = key_members();
    Members others;
    if (one_in(2)) {  // A record.
      others = {{"uuid", string("a")},
                {"expires", number()},
                {"lease", R"({"N":"2"})"},
                {"owner", string("host")}};
    }
    for (std::size_t i = below(4); i > 0; --i) others[attribute()] = value(0);
    return R"("Item":{)" + key + (others.empty() ? "" : ",") + joined(others) +
           "}";
  }

  // --- Expressions

  Text test() {
    switch (below(6)) {
      case 0:
        return "attribute_exists(" + path() + ")";
      case 1:
        return "attribute_not_exists (" + path() + ")";
      case 2:
        return "attribute_type(" + path() + ", " +
               bound(string(any({"S", "N", "L", "SS", "BOOL"}))) + ")";
      case 3:
        return "size(" + path() + ") <= " + bound(number());
      default:
        return path() + any({" = ", " <> ", " < ", " <= ", " > ", " >= "}) +
               bound(value(1));
    }
  }
  Text any_condition() {
    switch (below(4)) {
      case 0:
        return "NOT " + test();
      case 1:
        return "(" + test() + any({") AND ", ") OR "}) + test();
      default:
        return test();
    }
  }
  // As the library and other clients ask: each is one of theirs.
  Text clients_condition() {
    names_["#u"] = R"("uuid")";
    values_[":u"] = string(any({"a", "abc"}));
    if (one_in(6)) return "begins_with(#u, :u)";
    if (one_in(3)) return "#u = :u";
    names_["#e"] = R"("expires")";
    values_[":e"] = number();
    if (one_in(4)) return "#u = :u AND #e = :e";
    values_[":0"] = number();
    if (one_in(4)) return "#u = :u AND #e IN (:0, :e)";
    names_["#n"] = R"("name")";
    if (one_in(4)) {
      return "((attribute_exists (#n)) AND (#u = :u)) AND (#e = :0) "
             "OR #e > :e";
    }
    names_["#k"] = R"("token")";
    names_["#l"] = R"("lease")";
    values_[":y"] = string("S");
    values_[":i"] = R"({"N":"1"})";
    values_[":x"] = R"({"N":"31536000000"})";
    return "attribute_not_exists(#n) OR (#e >= :0 AND #e < :e AND "
           "attribute_type(#u, :y) AND size(#u) <= :x AND "
           "(attribute_not_exists(#k) OR #k BETWEEN :i AND :x) AND #u <> :u "
           "AND (attribute_not_exists(#l) OR #l BETWEEN :i AND :x))";
  }
  Text condition() {
    return with("ConditionExpression",
                quoted(one_in(2) ? clients_condition() : any_condition()));
  }
  Text clients_update() {
    names_["#ex"] = R"("expires")";
    values_[":z"] = number();
    if (one_in(3)) return "SET #ex = :z";
    names_["#ow"] = R"("owner")";
    values_[":o"] = string("host");
    if (one_in(3)) return "REMOVE #ow\\nSET #ex = :z, leaseUntil = :o";
    names_["#to"] = R"("token")";
    values_[":1"] = R"({"N":"1"})";
    return "SET #ex = :z, #ow = :o ADD #to :1 REMOVE ttl1, note";
  }
  Text any_update() {
    switch (below(3)) {
      case 0:
        return "REMOVE " + path();
      case 1:
        return "ADD " + path() + " " + bound(number());
      default:
        return "SET " + path() + " = " + bound(value(0));
    }
  }
  Text update() {
    return with("UpdateExpression",
                quoted(one_in(2) ? clients_update() : any_update()));
  }
  Text returning(const std::vector<const char*>& values) {
    Text text;
    if (one_in(2)) text += with("ReturnValues", quoted(any(values)));
    return text + on_failure();
  }
  Text projection() {
    Text paths = path();
    while (one_in(2)) paths += ", " + path();
    return with("ProjectionExpression", quoted(paths));
  }
  Text on_failure() {
    if (one_in(3)) return "";
    return with("ReturnValuesOnConditionCheckFailure",
                quoted(any({"ALL_OLD", "ALL_OLD", "NONE"})));
  }

  // --- Requests.  What a request is about decides the table, so it is drawn
  // first.

  RandomRequest get() {
    Text body = key() + with("ConsistentRead", "true");
    if (one_in(2)) body += projection();
    return {"GetItem", table() + "," + body + bindings()};
  }
  RandomRequest put() {
    Text body = item();
    if (!one_in(3)) body += condition();
    body += returning({"NONE", "ALL_OLD"}) + bindings();
    return {"PutItem", table() + "," + body};
  }
  RandomRequest update_item() {
    Text body = key() + update();
    if (one_in(2)) body += condition();
    body +=
        returning({"NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD"}) + bindings();
    return {"UpdateItem", table() + "," + body};
  }
  RandomRequest deletion() {
    Text body = key();
    if (!one_in(4)) body += condition();
    body += returning({"NONE", "ALL_OLD"}) + bindings();
    return {"DeleteItem", table() + "," + body};
  }
  RandomRequest page(bool is_query) {
    is_sorted_ = one_in(2);
    Text body = table();
    if (is_query) {
      names_["#n"] = R"("name")";
      const Text name = bound(string(any({"a", "b"})));
      body += with("KeyConditionExpression", quoted("#n = " + name));
    }
    if (one_in(2)) {
      body += with("FilterExpression", quoted(any_condition()));
    }
    if (one_in(3)) body += projection();
    return {is_query ? "Query" : "Scan", body + bindings()};
  }
  Text part() {
    forget();
    const Text kind = any({"Put", "Update", "Delete", "ConditionCheck"});
    Text body = kind == "Put" ? item() : key();
    if (kind == "Update") body += update();
    if (kind == "ConditionCheck" || one_in(2)) body += condition();
    return R"({")" + kind + R"(":{)" + table() + "," + body + on_failure() +
           bindings() + "}}";
  }
  RandomRequest transaction() {
    key_count_ = 8;
    Text parts = part();
    while (one_in(2)) parts += "," + part();
    Text body = R"("TransactItems":[)" + parts + "]";
    if (one_in(3)) {
      body += with("ClientRequestToken", quoted(any({"one", "two", "three"}) +
                                                std::to_string(token_series_)));
    }
    return {"TransactWriteItems", body};
  }

  std::mt19937 random_;
  bool is_sorted_ = false;  // The table that the request is of.
  int token_series_ = 0;
  std::size_t key_count_ = 3;  // Of those from which it is drawn.
  Members names_, values_;     // By placeholder.
};

}  // namespace world::dynamodb

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_RANDOM_REQUESTS_HPP
