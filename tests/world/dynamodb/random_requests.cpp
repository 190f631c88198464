#include "tests/world/dynamodb/random_requests.hpp"

#include <utility>

namespace world {
namespace dynamodb {
namespace {

std::string in_quotes(const std::string& text) { return '"' + text + '"'; }

// ,"member":"text"
std::string with(const char* member, const std::string& text) {
  return text.empty() ? "" : ",\"" + std::string(member) + "\":" + text;
}

std::string with_text(const char* member, const std::string& text) {
  return text.empty() ? "" : with(member, in_quotes(text));
}

std::string members_of(const std::map<std::string, std::string>& all) {
  std::string members;
  for (const auto& [name, json] : all) {
    members += (members.empty() ? "" : ",") + in_quotes(name) + ":" + json;
  }
  return members;
}

}  // namespace

// --- Names and values --------------------------------------------------------

std::string RandomRequests::name(const std::string& attribute) {
  // Some of these are reserved, and refused where they stand for themselves.
  if (one_in(4)) return attribute;
  const std::string mark = "#" + attribute.substr(0, 2);
  names_[mark] = in_quotes(attribute);
  return mark;
}

std::string RandomRequests::value(const std::string& json) {
  const std::string mark = ":" + std::to_string(values_.size());
  values_[mark] = json;
  return mark;
}

std::string RandomRequests::bindings() const {
  std::string text;
  if (!names_.empty()) {
    text += with("ExpressionAttributeNames", "{" + members_of(names_) + "}");
  }
  if (!values_.empty()) {
    text += with("ExpressionAttributeValues", "{" + members_of(values_) + "}");
  }
  return text;
}

std::string RandomRequests::attribute() {
  return any({"uuid", "expires", "lease", "owner", "token", "note", "kvs",
              "words", "ids", "bytes", "flag"});
}

std::string RandomRequests::path() {
  std::string path = name(one_in(12) ? "name" : attribute());
  while (one_in(6)) path += any({".inner", "[0]", "[1]", "[7]"});
  return path;
}

// What SET does behind the end of a list, the tests of the simulation show.
std::string RandomRequests::target() {
  std::string path = name(one_in(12) ? "name" : attribute());
  if (one_in(6)) path += any({".inner", "[0]"});
  return path;
}

std::string RandomRequests::number() {
  if (one_in(2)) return any({"0", "1", "2", "10", "1795312221289328903"});
  if (one_in(2)) return std::to_string(below(5));
  return any({"-1", "0.5", "1.50", "-0", "1e2", "100", "007", "12.340e-3",
              "99999999999999999999999999999999999999", "1E-130", "9.9e125"});
}

std::string RandomRequests::typed(int depth) {
  const std::size_t kind = below(depth < 2 ? 14 : 11);
  if (kind < 4) {
    return R"({"S":")" +
           std::string(
               any({"", "a", "ab", "abc", "b", "S", "N", "1", "\xc3\xa4"})) +
           "\"}";
  }
  if (kind < 7) return R"({"N":")" + number() + "\"}";
  switch (kind) {
    case 7:
      return any({R"({"B":""})", R"({"B":"AQI="})", R"({"B":"AQ=="})"});
    case 8:
      return any({R"({"BOOL":true})", R"({"BOOL":false})", R"({"NULL":true})"});
    case 9:
      return any({R"({"SS":["a"]})", R"({"SS":["b","a"]})",
                  R"({"SS":["c","b","abc"]})", R"({"BS":["AQ==","AQI="]})"});
    case 10:
      return any({R"({"NS":["1"]})", R"({"NS":["2","1.0"]})",
                  R"({"NS":["1e1","3"]})"});
    case 11:
      return R"({"L":[]})";
    case 12:
      return R"({"L":[)" + typed(depth + 1) + "," + typed(depth + 1) + "]}";
    default:
      return R"({"M":{"inner":)" + typed(depth + 1) + "}}";
  }
}

std::string RandomRequests::table() {
  return with_text("TableName", one_in(60)   ? "nowhere"
                                : is_sorted_ ? "sorted"
                                             : "locks")
      .substr(1);
}

std::string RandomRequests::key() {
  is_sorted_ = one_in(4);
  const Texts all = {"a", "b", "c", "d", "e", "f", "g", "h"};
  place_ = R"("name":{"S":")" + std::string(all[below(key_count_)]) + "\"}";
  if (is_sorted_) {
    place_ += R"(,"part":{"S":")" + std::string(any({"1", "2", "3"})) + "\"}";
  }
  return R"("Key":{)" + place_ + "}";
}

std::string RandomRequests::item() {
  key();
  std::map<std::string, std::string> attributes;
  if (one_in(2)) {  // A record.
    attributes = {{"uuid", R"({"S":"a"})"},
                  {"expires", R"({"N":")" + number() + "\"}"},
                  {"lease", R"({"N":"2"})"},
                  {"owner", R"({"S":"host"})"}};
  }
  for (std::size_t i = below(4); i > 0; --i) {
    attributes[attribute()] = typed(0);
  }
  const std::string others = members_of(attributes);
  return R"("Item":{)" + place_ + (others.empty() ? "" : ",") + others + "}";
}

// --- Expressions -------------------------------------------------------------

std::string RandomRequests::operand() {
  if (one_in(8)) return "size(" + path() + ")";
  return one_in(4) ? path() : value(typed(1));
}

std::string RandomRequests::test() {
  const auto subject = [this] {
    return one_in(8) ? "size(" + path() + ")" : path();
  };
  switch (below(10)) {
    case 0:
      return "attribute_exists(" + path() + ")";
    case 1:
      return "attribute_not_exists (" + path() + ")";
    case 2:
      return "attribute_type(" + path() + ", " +
             value(R"({"S":")" +
                   std::string(any({"S", "N", "L", "SS", "BOOL", "Q"})) +
                   "\"}") +
             ")";
    case 3:
      return "begins_with(" + path() + ", " + operand() + ")";
    case 4:
      return "contains(" + path() + "," + operand() + ")";
    case 5:
      return subject() + " BETWEEN " + operand() + " AND " + operand();
    case 6:
      return subject() + " IN (" + operand() + ", " + operand() + ")";
    default:
      return subject() + any({" = ", "=", " <> ", " < ", " <= ", " > ", ">="}) +
             operand();
  }
}

std::string RandomRequests::condition(int depth) {
  if (depth == 0 || one_in(3)) return test();
  switch (below(4)) {
    case 0:
      return "NOT " + test();
    case 1:
      return "(" + condition(depth - 1) + any({") AND ", ") or "}) + test();
    case 2:
      return test() + any({" AND ", " OR ", " and "}) + condition(depth - 1);
    default:
      return test() + " OR NOT (" + condition(depth - 1) + ")";
  }
}

// As the library and other clients ask: each is one of theirs.
std::string RandomRequests::library_condition() {
  const auto bind = [this](const char* mark, const char* attribute) {
    names_[mark] = in_quotes(attribute);
  };
  bind("#u", "uuid");
  values_[":u"] = R"({"S":")" + std::string(any({"a", "abc"})) + "\"}";
  if (one_in(3)) return "#u = :u";
  bind("#e", "expires");
  values_[":e"] = R"({"N":")" + number() + "\"}";
  if (one_in(4)) return "#u = :u AND #e = :e";
  values_[":0"] = R"({"N":")" + number() + "\"}";
  if (one_in(4)) return "#u = :u AND #e IN (:0, :e)";
  bind("#n", "name");
  if (one_in(4))
    return "((attribute_exists (#n)) AND (#u = :u)) AND (#e = :0) "
           "OR #e > :e";
  bind("#k", "token");
  bind("#l", "lease");
  values_[":y"] = R"({"S":"S"})";
  values_[":i"] = R"({"N":"1"})";
  values_[":x"] = R"({"N":"31536000000"})";
  return "attribute_not_exists(#n) OR (#e >= :0 AND #e < :e AND "
         "attribute_type(#u, :y) AND size(#u) <= :x AND "
         "(attribute_not_exists(#k) OR #k BETWEEN :i AND :x) AND #u <> :u AND "
         "(attribute_not_exists(#l) OR #l BETWEEN :i AND :x))";
}

std::string RandomRequests::library_update() {
  names_["#ex"] = R"("expires")";
  values_[":z"] = R"({"N":")" + number() + "\"}";
  if (one_in(3)) return "SET #ex = :z";
  names_["#ow"] = R"("owner")";
  values_[":o"] = R"({"S":"host"})";
  if (one_in(3)) return "REMOVE #ow\\nSET #ex = :z, leaseUntil = :o";
  names_["#to"] = R"("token")";
  values_[":1"] = R"({"N":"1"})";
  return "SET #ex = :z, #ow = :o ADD #to :1 REMOVE ttl1, note";
}

std::string RandomRequests::update() {
  std::string text;
  if (!one_in(3)) {
    text += "SET " + target() + " = ";
    switch (below(6)) {
      case 0:
        text += path() + any({" + ", " - "}) + operand();
        break;
      case 1:
        text += "if_not_exists(" + path() + ", " + operand() + ")";
        break;
      case 2:
        text += "list_append(" + path() + ", " + operand() + ")";
        break;
      case 3:
        text += path();
        break;
      default:
        text += value(typed(0));
    }
  }
  if (one_in(4)) text += " REMOVE " + path() + ", " + path();
  if (one_in(3)) text += " ADD " + path() + " " + value(typed(1));
  if (one_in(5)) text += " delete " + path() + " " + value(typed(1));
  return text;
}

std::string RandomRequests::projection() {
  std::string text = path();
  while (one_in(2)) text += ", " + path();
  return text;
}

std::string RandomRequests::returning(const Texts& values) {
  std::string text = one_in(2) ? with_text("ReturnValues", any(values)) : "";
  if (!one_in(3)) {
    text += with_text("ReturnValuesOnConditionCheckFailure",
                      any({"ALL_OLD", "ALL_OLD", "NONE"}));
  }
  return text;
}

// --- Requests ----------------------------------------------------------------

RandomRequest RandomRequests::get() {
  const std::string where = key();
  std::string body = table() + "," + where + R"(,"ConsistentRead":true)";
  if (one_in(2)) body += with_text("ProjectionExpression", projection());
  return {"GetItem", "{" + body + bindings() + "}"};
}

RandomRequest RandomRequests::put() {
  const std::string what = item();
  std::string body = table() + "," + what;
  if (!one_in(3)) {
    body += with_text("ConditionExpression",
                      one_in(2) ? library_condition() : condition(2));
  }
  body += returning({"NONE", "ALL_OLD", "ALL_OLD", "ALL_NEW", "UPDATED_OLD"});
  return {"PutItem", "{" + body + bindings() + "}"};
}

RandomRequest RandomRequests::change() {
  const std::string where = key();
  std::string body =
      table() + "," + where +
      with_text("UpdateExpression", one_in(2) ? library_update() : update());
  if (one_in(2)) {
    body += with_text("ConditionExpression",
                      one_in(2) ? library_condition() : condition(2));
  }
  body += returning(
      {"NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW", "ALL"});
  return {"UpdateItem", "{" + body + bindings() + "}"};
}

RandomRequest RandomRequests::removal() {
  const std::string where = key();
  std::string body = table() + "," + where;
  if (!one_in(4)) {
    body += with_text("ConditionExpression",
                      one_in(2) ? library_condition() : condition(1));
  }
  body += returning({"NONE", "ALL_OLD", "UPDATED_NEW"});
  return {"DeleteItem", "{" + body + bindings() + "}"};
}

RandomRequest RandomRequests::scan() {
  is_sorted_ = one_in(2);
  std::string body = table();
  if (one_in(2)) body += with("Limit", std::to_string(below(5)));
  if (one_in(2)) body += with_text("FilterExpression", condition(1));
  if (one_in(3)) body += with_text("ProjectionExpression", projection());
  return {"Scan", "{" + body + bindings() + "}"};
}

RandomRequest RandomRequests::query() {
  is_sorted_ = !one_in(4);
  std::string body = table();
  names_["#n"] = R"("name")";
  std::string of_key =
      "#n = " + value(R"({"S":")" + std::string(any({"a", "b"})) + "\"}");
  if (one_in(2)) {
    const std::string bound = value(R"({"S":"2"})");
    of_key += " AND ";
    of_key += one_in(3) ? "begins_with(part, " + bound + ")"
                        : std::string(any({"part = ", "part < ",
                                           "part>=", "part <> ", "note > "})) +
                              bound;
  }
  body += with_text("KeyConditionExpression", of_key);
  if (one_in(3)) body += with("Limit", std::to_string(1 + below(3)));
  if (one_in(3)) body += with_text("FilterExpression", condition(0));
  if (one_in(3)) body += with_text("ProjectionExpression", projection());
  return {"Query", "{" + body + bindings() + "}"};
}

std::string RandomRequests::part() {
  names_.clear();
  values_.clear();
  std::string body, kind;
  switch (below(4)) {
    case 0:
      kind = "Put";
      body = item();
      break;
    case 1:
      kind = "Update";
      body = key();
      body += with_text("UpdateExpression",
                        one_in(2) ? library_update() : update());
      break;
    case 2:
      kind = "Delete";
      body = key();
      break;
    default:
      kind = "ConditionCheck";
      body = key();
      body += with_text("ConditionExpression", library_condition());
  }
  if (kind != "ConditionCheck" && one_in(2)) {
    body += with_text("ConditionExpression",
                      one_in(2) ? library_condition() : condition(1));
  }
  if (one_in(2)) {
    body += with_text("ReturnValuesOnConditionCheckFailure", "ALL_OLD");
  }
  return "{" + in_quotes(kind) + ":{" + table() + "," + body + bindings() +
         "}}";
}

RandomRequest RandomRequests::transaction() {
  key_count_ = 8;  // Two writes of one item are refused.
  std::string parts = part();
  while (!one_in(3)) parts += "," + part();
  std::string body = R"({"TransactItems":[)" + parts + "]";
  if (one_in(2)) {
    body +=
        with_text("ClientRequestToken", std::to_string(token_series_) + "-" +
                                            std::to_string(below(10)));
  }
  return {"TransactWriteItems", body + "}"};
}

// Something small is changed, so that often nothing else is wrong.
void RandomRequests::spoil(std::string& body) {
  static const std::vector<std::pair<const char*, const char*>> kFaults = {
      {R"("S":)", R"("N":)"},
      {R"("N":)", R"("S":)"},
      {R"("S":")", R"("X":")"},
      {R"({"S":"a"})", R"({"S":"a","N":"1"})"},
      {R"({"S":"a"})", R"({"S":5})"},
      {R"({"S":"a"})", R"("a")"},
      {R"({"S":"a"})", R"({"SS":["a","a"]})"},
      {R"({"S":"a"})", R"({"SS":[]})"},
      {R"({"S":"a"})", R"({"S":""})"},
      {R"({"S":"b"})", R"({"NULL":false})"},
      {R"({"S":"abc"})", R"({"B":"AQI"})"},
      {R"("N":")", R"("N":"x)"},
      {R"("N":"1)", R"("N":"123456789012345678901234567890123456789)"},
      {R"("N":"0)", R"("N":"1e126)"},
      {R"("N":"2)", R"("N":"1e-131)"},
      {R"("name":)", R"("nome":)"},
      {R"("name":)", R"("other":{"S":"a"},"name":)"},
      {R"("ExpressionAttributeNames":{)",
       R"("ExpressionAttributeNames":{"#unused":"a",)"},
      {R"("ExpressionAttributeValues":{)",
       R"("ExpressionAttributeValues":{":unused":{"S":"a"},)"},
      {R"(:{"#)", R"(:{"#zz)"},
      {R"(:{":)", R"(:{":zz)"},
      {R"("TableName":"locks")", R"("TableName":5)"},
      {R"("TableName":"locks")", R"("Other":5)"},
      {R"("ALL_OLD")", R"("ALL")"},
      {R"(true)", R"("true")"},
      {" = ", " == "},
      {" AND ", " "},
      {" AND ", " AND AND "},
      {"SET ", "SET SET "},
      {"SET ", "SET x = :zz SET "},
      {"(", "(("},
      {")", ""},
      {", ", " "},
      {"#", ""},
      {":{", ":[{"},
      {"}", ""},
      {"attribute_", "attribut_"},
      {"size(", "length("},
  };
  for (int attempt = 0; attempt < 5; ++attempt) {
    const auto& [from, to] = kFaults[below(kFaults.size())];
    const std::string what = from;
    std::size_t at = body.find(what, below(body.size()));
    if (at == body.npos) at = body.find(what);
    if (at == body.npos) continue;
    body.replace(at, what.size(), to);
    return;
  }
}

RandomRequest RandomRequests::next() {
  names_.clear();
  values_.clear();
  key_count_ = 3;
  const std::size_t kind = below(20);
  RandomRequest request = kind < 3    ? get()
                          : kind < 8  ? put()
                          : kind < 13 ? change()
                          : kind < 15 ? removal()
                          : kind < 16 ? scan()
                          : kind < 18 ? query()
                                      : transaction();
  if (one_in(6)) spoil(request.body);
  return request;
}

}  // namespace dynamodb
}  // namespace world
