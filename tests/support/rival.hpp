// Another library's program that wants the same lock: it sends what that
// library's client sends, as it was recorded of real ones, byte for byte where
// it matters, and believes what they believe.
//
//   Rival rival(Layout::dynamolock, {"locks", "key", "job"}, 2s, ask);
//   if (rival.acquire()) rival.release();
//
// Where a fault of theirs would let two in, it is mended here:
//
//   lockclient   Its release deletes whoever's row is there.
//   lockclient, lease, ddblock
//                A process that was stopped for longer than its lease goes on
//                as if it held the lock; and a heartbeat of the first two takes
//                the lock anew.  Here a lease that is over is over.
#ifndef DDBMUTEX_TESTS_SUPPORT_RIVAL_HPP
#define DDBMUTEX_TESTS_SUPPORT_RIVAL_HPP

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "ddbmutex.hpp"
#include "ddbmutex/dynamodb/answer.hpp"
#include "ddbmutex/lock/row.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/system.hpp"
#include "tests/support/layouts.hpp"

namespace tests {

using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::dynamodb::Action;
using ddbmutex::dynamodb::Answer;

class Rival {
 public:
  struct Place {
    std::string table, key;
  };
  // Sends a request.
  using Ask = std::function<Answer(Action, const std::string& body)>;

  // `calendar_ahead`: of its host's, to that of this one.
  Rival(Layout layout, Place place, std::chrono::milliseconds ttl, Ask ask,
        std::chrono::milliseconds calendar_ahead = {})
      : layout_(layout),
        place_(std::move(place)),
        ttl_(ttl),
        ask_(std::move(ask)),
        ahead_(calendar_ahead),
        owner_("owner-" + ddbmutex::lock::fresh_uuid()) {}

  // One attempt; where versions are seen, one look, and what follows from it.
  bool acquire() {
    const BootTime sent = BootClock::now();
    id_ = fresh_version();
    const bool won = sees_versions()
                         ? acquire_by_version()
                         : ask(Action::put_item, take_by_calendar());
    if (won) end_ = sent + ttl_;
    return won;
  }

  // False if the lock is lost.
  bool heartbeat() {
    const BootTime sent = BootClock::now();
    if (!holds() || !ask(Action::put_item, renewal())) return false;
    if (!holds()) return false;
    id_ = next_;
    end_ = sent + ttl_;
    return true;
  }

  // `keeps`: the row, which dynamolock does unless told otherwise.
  bool release(bool keeps) {
    end_ = BootTime::min();
    if (layout_ == Layout::lease) return true;  // There is none: it lapses.
    return keeps ? ask(Action::update_item, keeping())
                 : ask(Action::delete_item, deletion());
  }
  bool release() { return release(layout_ == Layout::dynamolock); }

  bool holds() const { return BootClock::now() < end_; }
  // What their client would have said instead of an answer; empty if nothing.
  const std::string& complaint() const { return complaint_; }

 private:
  using Fault = ddbmutex::dynamodb::Fault;

  bool sees_versions() const {
    return layout_ == Layout::dynamolock || layout_ == Layout::awslabs;
  }
  std::string table() const {
    return R"x("TableName":")x" + place_.table + '"';
  }
  std::string key() const {
    return std::string("\"") + key_of(layout_) + R"x(":{"S":")x" + place_.key +
           "\"}";
  }
  static std::string s(const std::string& text) {
    return R"x({"S":")x" + text + "\"}";
  }
  std::string n(std::chrono::nanoseconds later) const {
    const auto now = ddbmutex::sigv4::wall_clock().time_since_epoch();
    const std::chrono::nanoseconds time = now + ahead_ + later;
    return R"x({"N":")x" + std::to_string(time.count()) + "\"}";
  }
  std::string lease() const {
    return layout_ == Layout::awslabs
               ? std::to_string(ttl_.count())
               : std::to_string(ttl_.count() / 1000) +
                     (ttl_.count() % 1000 != 0 ? ".5s" : "s");
  }
  // Of those who have it: a version; else who it is, for this call.
  std::string fresh_version() const {
    const std::string random = ddbmutex::lock::fresh_uuid();
    const auto now = ddbmutex::sigv4::wall_clock().time_since_epoch();
    const std::string time =
        std::to_string(std::chrono::nanoseconds(now).count());
    switch (layout_) {
      case Layout::ddblock:
        return time;
      case Layout::dynamolock:
        return time + ":" + random + "AAAAAAAAAAAAAAAAAAAA";
      case Layout::lease:
      case Layout::lockclient:
        return owner_;
      default:
        return random.substr(0, 8) + "-" + random.substr(8, 4) + "-4" +
               random.substr(13, 3) + "-a" + random.substr(17, 3) + "-" +
               random.substr(20);
    }
  }

  // By all but lockclient it is an UpdateItem where the row stays.
  bool ask(Action action, const std::string& body) {
    const bool updates = action == Action::put_item &&
                         body.find("UpdateExpression") != body.npos;
    const Answer answer =
        ask_(updates ? Action::update_item : action, "{" + body + "}");
    complaint_ =
        answer.fault == Fault::none || answer.fault == Fault::condition_failed
            ? ""
            : answer.message;
    return answer.fault == Fault::none;
  }

  std::string take_by_calendar() const {
    if (layout_ == Layout::ddblock) {
      return R"x("ConditionExpression":"#name <> :name OR )x"
             R"x((#name = :name AND #exp < :exp)","ExpressionAttributeNames":)x"
             R"x({"#exp":"expires","#name":"name"},)x"
             R"x("ExpressionAttributeValues":{":exp":)x" +
             n({}) + R"x(,":name":)x" + s(place_.key) +
             R"x(},"Item":{"expires":)x" + n(ttl_) + "," + key() +
             R"x(,"uuid":)x" + s(id_) + "}," + table();
    }
    return layout_ == Layout::lockclient ? lockclient() : leasing();
  }
  // Both take and renew by it.
  std::string lockclient() const {
    return R"x("ConditionExpression":"(#0 <> :0) OR (#1 < :1) OR (#2 = :2)",)x"
           R"x("ExpressionAttributeNames":{"#0":"key","#1":"expiry",)x"
           R"x("#2":"identifier"},"ExpressionAttributeValues":{":0":)x" +
           s(place_.key) + R"x(,":1":)x" + n({}) + R"x(,":2":)x" + s(id_) +
           R"x(},"Item":{"expiry":)x" + n(ttl_) + R"x(,"identifier":)x" +
           s(id_) + "," + key() + "}," + table();
  }
  std::string leasing() const {
    return R"x("ConditionExpression":"(attribute_exists(LockHashKeyName)) and )x"
           R"x((LeaseUntil < :time_now or ProcessID = :process_id)",)x"
           R"x("ExpressionAttributeValues":{":lease_until":)x" +
           n(ttl_) + R"x(,":process_id":)x" + s(id_) + R"x(,":time_now":)x" +
           n({}) + R"x(},"Key":{)x" + key() +
           R"x(},"ReturnValues":"ALL_NEW",)x" + table() +
           R"x(,"UpdateExpression":"SET ProcessID=:process_id, )x"
           R"x(LeaseUntil=:lease_until")x";
  }

  std::string renewal() {
    next_ = fresh_version();
    if (layout_ == Layout::lockclient) return lockclient();
    if (layout_ == Layout::lease) return leasing();
    if (layout_ == Layout::ddblock) {
      next_ = id_;
      return R"x("ConditionExpression":"#name = :name AND #uuid = :uuid",)x"
             R"x("ExpressionAttributeNames":{"#name":"name","#uuid":"uuid"},)x"
             R"x("ExpressionAttributeValues":{":name":)x" +
             s(place_.key) + R"x(,":uuid":)x" + s(id_) +
             R"x(},"Item":{"expires":)x" + n(ttl_) + "," + key() +
             R"x(,"uuid":)x" + s(id_) + "}," + table();
    }
    if (layout_ == Layout::dynamolock) {
      return R"x("ConditionExpression":"((attribute_exists (#0)) AND )x"
             R"x((#1 = :0)) AND (#2 = :1)","ExpressionAttributeNames":)x"
             R"x({"#1":"recordVersionNumber","#2":"ownerName",)x"
             R"x("#3":"leaseDuration","#0":"key"},)x"
             R"x("ExpressionAttributeValues":{":2":)x" +
             s(lease()) + R"x(,":3":)x" + s(next_) + R"x(,":0":)x" + s(id_) +
             R"x(,":1":)x" + s(owner_) + R"x(},"Key":{)x" + key() + "}," +
             table() + R"x(,"UpdateExpression":"SET #3 = :2, #1 = :3\n")x";
    }
    return table() + R"x(,"Key":{)x" + key() +
           R"x(},"ConditionExpression":"attribute_exists(#pk) AND )x"
           R"x(#rvn = :rvn AND #on = :on",)x"
           R"x("UpdateExpression":"SET #ld = :ld, #rvn = :newRvn",)x"
           R"x("ExpressionAttributeNames":{"#on":"ownerName",)x"
           R"x("#rvn":"recordVersionNumber","#ld":"leaseDuration",)x"
           R"x("#pk":"key"},"ExpressionAttributeValues":{":newRvn":)x" +
           s(next_) + R"x(,":ld":)x" + s(lease()) + R"x(,":on":)x" + s(owner_) +
           R"x(,":rvn":)x" + s(id_) + "}";
  }

  std::string deletion() const {
    const std::string where = R"x(,"Key":{)x" + key() + "}," + table();
    switch (layout_) {
      case Layout::ddblock:
        return R"x("ConditionExpression":"#name = :name AND #uuid = :uuid",)x"
               R"x("ExpressionAttributeNames":{"#name":"name","#uuid":"uuid"},)x"
               R"x("ExpressionAttributeValues":{":name":)x" +
               s(place_.key) + R"x(,":uuid":)x" + s(id_) + "}" + where;
      case Layout::lockclient:  // "(#0 = :0) OR (#1 = :1)", were it not mended.
        return R"x("ConditionExpression":"(#0 = :0) AND (#1 = :1)",)x"
               R"x("ExpressionAttributeNames":{"#0":"key","#1":"identifier"},)x"
               R"x("ExpressionAttributeValues":{":0":)x" +
               s(place_.key) + R"x(,":1":)x" + s(id_) + "}" + where;
      default:
        return owned() + "}" + where;
    }
  }
  // Of a row that stays: dynamolock's, and awslabs's if it is told to.
  std::string keeping() const {
    std::string text = owned();
    const auto values = text.find(R"x(,"ExpressionAttributeValues":{)x");
    text.insert(values - 1, R"x(,"#3":"isReleased")x");
    return text + R"x(,":2":{"S":"1"}},"Key":{)x" + key() + "}," + table() +
           R"x(,"UpdateExpression":"SET #3 = :2\n")x";
  }
  // That the row is its own; without the last brace.
  std::string owned() const {
    return R"x("ConditionExpression":"((attribute_exists (#0)) AND (#1 = :0)) )x"
           R"x(AND (#2 = :1)","ExpressionAttributeNames":{"#0":"key",)x"
           R"x("#1":"recordVersionNumber","#2":"ownerName"},)x"
           R"x("ExpressionAttributeValues":{":0":)x" +
           s(id_) + R"x(,":1":)x" + s(owner_);
  }

  std::string new_item() const {
    return R"x("Item":{"ownerName":)x" + s(owner_) + R"x(,"leaseDuration":)x" +
           s(lease()) + R"x(,"recordVersionNumber":)x" + s(id_) + "," + key() +
           others_ + "}," + table();
  }

  bool acquire_by_version() {
    complaint_.clear();
    const Answer looked =
        ask_(Action::get_item, R"x({"ConsistentRead":true,"Key":{)x" + key() +
                                   "}," + table() + "}");
    if (looked.fault != Fault::none) return false;
    const BootTime received = BootClock::now();
    const ddbmutex::dynamodb::Item item =
        looked.item.value_or(ddbmutex::dynamodb::Item{});
    copy_others(item);
    const bool released =
        ddbmutex::dynamodb::find(item, "isReleased") != nullptr;
    if (item.empty() || released) return put_free(item.empty());
    const auto lasts = lease_in(item);
    const std::string version = text_in(item, "recordVersionNumber");
    if (!lasts) {
      complaint_ = "cannot parse lease duration";
      return false;
    }
    if (version != seen_) {
      seen_ = version;
      since_ = received;
    }
    if (received - since_ <= *lasts) return false;
    return put(R"x("ConditionExpression":"(attribute_exists (#0)) AND )x"
               R"x((#1 = :0)","ExpressionAttributeNames":{"#0":"key",)x"
               R"x("#1":"recordVersionNumber"},"ExpressionAttributeValues":)x"
               R"x({":0":)x" +
               s(version) + "}");
  }
  bool put_free(bool none) {
    if (layout_ == Layout::dynamolock) {
      return put(
          R"x("ConditionExpression":"(attribute_not_exists (#0)) OR )x"
          R"x(((attribute_exists (#0)) AND (#1 = :0))",)x"
          R"x("ExpressionAttributeNames":{"#0":"key","#1":"isReleased"},)x"
          R"x("ExpressionAttributeValues":{":0":{"S":"1"}})x");
    }
    return put(none ? R"x("ConditionExpression":"attribute_not_exists(#pk)",)x"
                      R"x("ExpressionAttributeNames":{"#pk":"key"})x"
                    : R"x("ConditionExpression":"attribute_exists(#pk) AND )x"
                      R"x(#ir = :ir","ExpressionAttributeNames":)x"
                      R"x({"#ir":"isReleased","#pk":"key"},)x"
                      R"x("ExpressionAttributeValues":{":ir":{"S":"1"}})x");
  }
  bool put(const std::string& condition) {
    return ask(Action::put_item, condition + "," + new_item());
  }

  // The Go client writes again what attributes it finds, `data` too, but for
  // those of the lock.
  void copy_others(const ddbmutex::dynamodb::Item& item) {
    others_.clear();
    if (layout_ != Layout::dynamolock) return;
    for (const auto& attribute : item) {
      const std::string& name = attribute.name;
      const bool known = name == "ownerName" || name == "leaseDuration" ||
                         name == "recordVersionNumber" ||
                         name == "isReleased" || name == "key";
      if (known) continue;
      ddbmutex::sigv4::Text text;
      ddbmutex::sigv4::JsonWriter json(text);
      ddbmutex::dynamodb::write_value(json, attribute);
      others_ += ",\"" + name + "\":" + text.take();
    }
  }
  static std::string text_in(const ddbmutex::dynamodb::Item& item,
                             const char* name) {
    const auto* attribute = ddbmutex::dynamodb::find(item, name);
    return attribute != nullptr &&
                   attribute->type ==
                       ddbmutex::dynamodb::Attribute::Type::string
               ? attribute->value
               : "";
  }
  // As their own client reads it: each only its own form.
  std::optional<std::chrono::nanoseconds> lease_in(
      const ddbmutex::dynamodb::Item& item) const {
    const std::string text = text_in(item, "leaseDuration");
    std::size_t end = 0;
    try {
      const double number = std::stod(text, &end);
      if (layout_ == Layout::awslabs) {
        if (end != text.size()) return std::nullopt;
        return std::chrono::milliseconds(static_cast<long>(number));
      }
      if (text.substr(end) != "s") return std::nullopt;
      return std::chrono::nanoseconds(static_cast<long>(number * 1e9));
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

  const Layout layout_;
  const Place place_;
  const std::chrono::milliseconds ttl_;
  const Ask ask_;
  const std::chrono::milliseconds ahead_;
  const std::string owner_;
  std::string id_, next_, seen_, others_, complaint_;
  BootTime since_{}, end_ = BootTime::min();
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_RIVAL_HPP
