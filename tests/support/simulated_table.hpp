// One item of a DynamoDB table, and what the protocol's requests do to it: for
// rows that are deleted at the release, and for those that are kept.
//
//   SimulatedTable table;
//   table.apply(request, use);              // done or refused
//   SimulatedTable::read(table.content());  // as a look tells it
#ifndef DDBMUTEX_TESTS_SUPPORT_SIMULATED_TABLE_HPP
#define DDBMUTEX_TESTS_SUPPORT_SIMULATED_TABLE_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ddbmutex/protocol.hpp"
#include "ddbmutex/record.hpp"

class SimulatedTable {
 public:
  using Row = ddbmutex::lock::Row;
  using RowUse = ddbmutex::lock::RowUse;
  using Changes = ddbmutex::lock::Changes;
  using Request = ddbmutex::lock::Request;
  using Reply = ddbmutex::lock::Reply;
  using ServiceTime = ddbmutex::dynamodb::ServiceTime;

  struct Item {
    std::optional<std::string> uuid;
    std::optional<ServiceTime> expires;
    std::optional<std::chrono::milliseconds> lease;
    std::optional<std::int64_t> token;
    bool ttl = false;         // DynamoDB's own clean-up may delete it.
    bool unreadable = false;  // `lease` is of a wrong type.
    std::optional<std::string> data;
    std::optional<std::string> note;  // An attribute of others.
  };
  using Content = std::optional<Item>;

  SimulatedTable() : versions_(1) {}

  const Content& content() const { return versions_.back(); }
  const Content& version(std::size_t i) const { return versions_[i]; }
  std::size_t versions() const { return versions_.size(); }

  // Others share the table: there are no tokens.
  static bool shared(const RowUse& use) {
    return !use.tells_end || use.calendars;
  }

  // What the condition of a request asks of the item.
  static bool holds(const Request& request, const RowUse& use,
                    const Content& now) {
    switch (request.verb) {
      case Request::Verb::take:
        return is_free(use, now) || is_over(request, use, now) ||
               is_as_seen(request, now) || is_own(request, now);
      case Request::Verb::renew:
        return is_own(request, now) && token_is_right(request, use, now);
      case Request::Verb::release:
        return now && now->uuid == request.uuid &&
               token_is_right(request, use, now);
      case Request::Verb::look:
      case Request::Verb::force:  // Not of the protocol, nor is the next.
      case Request::Verb::check:
        return true;
    }
    return false;
  }

  // Evaluates the request and does what it says.
  Reply::Outcome apply(const Request& request, const RowUse& use) {
    if (!holds(request, use, content())) return Reply::Outcome::refused;
    switch (request.verb) {
      case Request::Verb::take:
        set(taken(request, use));
        break;
      case Request::Verb::renew: {
        Item renewed = *content();
        renewed.expires = request.stamp;
        renewed.ttl = !use.keep && !shared(use);
        change(renewed, request.changes.get());
        set(renewed);
        break;
      }
      case Request::Verb::release:
        set(released(request, use));
        break;
      case Request::Verb::look:
      case Request::Verb::force:
      case Request::Verb::check:
        break;
    }
    return Reply::Outcome::done;
  }

  // What a guarded write of that acquisition asks of the item.
  static bool guard_holds(const std::string& uuid, std::int64_t token,
                          bool keep, const Content& now) {
    return now && now->uuid == uuid && now->expires &&
           *now->expires > ServiceTime::zero() &&
           (!keep || now->token == token);
  }

  // By whatever means.
  void set(const Content& content) { versions_.push_back(content); }

  static Row read(const Content& content) {
    Row row;
    if (!content) return row;
    row.kept = content->token.has_value();
    row.token = content->token.value_or(0);
    if (!content->uuid) {
      row.kind = Row::Kind::bare;
      row.problem = "uuid is missing";
      return row;
    }
    row.uuid = *content->uuid;
    if (content->unreadable || !content->expires ||
        *content->expires < ServiceTime::zero()) {
      row.kind = Row::Kind::unknown;
      row.problem = "something is wrong";
      return row;
    }
    row.kind = Row::Kind::record;
    row.expires = *content->expires;
    row.lease = content->lease;
    return row;
  }

 private:
  // The four clauses of a take, in their order.
  static bool is_free(const RowUse& use, const Content& now) {
    if (!use.keep || shared(use)) return !now && !use.must_exist;
    return now ? !now->uuid : !use.must_exist;
  }
  static bool is_over(const Request& request, const RowUse& use,
                      const Content& now) {
    const bool over = now && now->uuid && now->expires && !now->unreadable &&
                      *now->expires >= ServiceTime::zero() &&
                      *now->expires < request.earliest;
    if (!over) return false;
    return use.keep ? now->uuid != request.uuid : !now->token;
  }
  static bool is_as_seen(const Request& request, const Content& now) {
    return request.seen && now && now->uuid == request.seen->uuid &&
           now->expires == request.seen->expires;
  }
  static bool is_own(const Request& request, const Content& now) {
    return now && now->uuid == request.uuid && now->expires &&
           std::count(request.own.begin(), request.own.end(), *now->expires) >
               0;
  }

  // What goes along with a renewal or a release is written by the holder alone.
  static bool token_is_right(const Request& request, const RowUse& use,
                             const Content& now) {
    return !use.keep || shared(use) || !request.changes ||
           now->token == request.token;
  }

  Item taken(const Request& request, const RowUse& use) const {
    Item item;
    if (use.takes_by_update()) item = content().value_or(Item{});
    item.uuid = request.uuid;
    item.expires = request.stamp;
    item.lease = request.lease;
    // Others wait for what they read and no 1 % longer.
    if (!use.tells_end)
      item.lease = 100 * request.lease / 99 + std::chrono::milliseconds(1);
    item.unreadable = false;
    item.ttl = !use.keep && !shared(use);
    if (use.keep && !shared(use)) item.token = item.token.value_or(0) + 1;
    if (!use.keep_data) item.data.reset();
    return item;
  }

  Content released(const Request& request, const RowUse& use) const {
    if (!use.keep) return std::nullopt;
    Item item = *content();
    item.expires = ServiceTime::zero();
    change(item, request.changes.get());
    return item;
  }

  static void change(Item& item, const Changes* changes) {
    if (changes == nullptr) return;
    for (const auto& attribute : changes->set) item.data = attribute.value;
    if (!changes->remove.empty()) item.data.reset();
  }

  std::vector<Content> versions_;
};

#endif  // DDBMUTEX_TESTS_SUPPORT_SIMULATED_TABLE_HPP
