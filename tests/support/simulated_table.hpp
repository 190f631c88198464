// One item of a DynamoDB table, and what the protocol's requests do to it.
#ifndef DDBMUTEX_TESTS_SUPPORT_SIMULATED_TABLE_HPP
#define DDBMUTEX_TESTS_SUPPORT_SIMULATED_TABLE_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lock/protocol.hpp"
#include "lock/record.hpp"

class SimulatedTable {
 public:
  using Row = ddbmutex::lock::Row;
  using Request = ddbmutex::lock::Request;
  using Reply = ddbmutex::lock::Reply;
  using ServiceTime = ddbmutex::dynamodb::ServiceTime;

  struct Item {
    std::optional<std::string> uuid;
    std::optional<ServiceTime> expires;
    std::optional<std::chrono::milliseconds> lease;
    bool token = false;
    bool unreadable = false;  // Some attribute is of a wrong type.
  };
  using Content = std::optional<Item>;

  SimulatedTable() : versions_(1) {}

  const Content& content() const { return versions_.back(); }
  const Content& version(std::size_t i) const { return versions_[i]; }
  std::size_t versions() const { return versions_.size(); }

  // What the condition of a request asks of the item: the deleted-row policy's
  // ConditionExpressions, clause by clause.
  static bool holds(const Request& request, const Content& now) {
    const bool uuid_is_ours = now && now->uuid == request.uuid;
    const bool own =
        uuid_is_ours && now->expires &&
        std::count(request.own.begin(), request.own.end(), *now->expires) > 0;
    switch (request.verb) {
      case Request::Verb::take:
        if (!now || own) return true;
        if (now->expires && *now->expires >= ServiceTime::zero() &&
            *now->expires < request.earliest && now->uuid && !now->token) {
          return true;
        }
        return request.seen && now->uuid == request.seen->uuid &&
               now->expires == request.seen->expires;
      case Request::Verb::renew:
        return own;
      case Request::Verb::release:
        return uuid_is_ours;
      case Request::Verb::look:
        return true;
    }
    return false;
  }

  // Evaluates the request and does what it says.
  Reply::Outcome apply(const Request& request) {
    if (!holds(request, content())) return Reply::Outcome::refused;
    if (request.verb == Request::Verb::release) set(std::nullopt);
    if (request.verb == Request::Verb::take) {
      set(Item{request.uuid, request.stamp, request.lease, false, false});
    }
    if (request.verb == Request::Verb::renew) {
      Item renewed = *content();
      renewed.expires = request.stamp;
      set(renewed);
    }
    return Reply::Outcome::done;
  }

  // By whatever means.
  void set(const Content& content) { versions_.push_back(content); }

  static Row read(const Content& content) {
    Row row;
    if (!content) return row;
    row.kind = Row::Kind::record;
    if (content->token) row.kind = Row::Kind::kept;
    if (content->unreadable || !content->uuid || !content->expires ||
        *content->expires < ServiceTime::zero()) {
      row.kind = Row::Kind::unknown;
      row.problem = "something is wrong";
      return row;
    }
    row.uuid = *content->uuid;
    row.expires = *content->expires;
    row.lease = content->lease;
    return row;
  }

 private:
  std::vector<Content> versions_;
};

#endif  // DDBMUTEX_TESTS_SUPPORT_SIMULATED_TABLE_HPP
