// What a Table can be asked about itself and the locks in it.  All of that may
// be sent blindly again, but for force_unlock(), which looks at what came of
// it.
#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ask.hpp"
#include "attributes.hpp"
#include "failure.hpp"
#include "mutex.hpp"
#include "protocol.hpp"
#include "queue.hpp"
#include "record.hpp"
#include "table.hpp"
#include "table_setup.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::bad_option;
using detail::cannot;
using detail::failed;
using detail::Failure;
using detail::NoCancellation;
using detail::quoted;
using dynamodb::Action;
using dynamodb::Answer;
using dynamodb::Fault;
using lock::Row;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// How long passing faults are borne with.
constexpr std::chrono::seconds kPatience{30};
constexpr std::chrono::seconds kCreationPatience{60};

// Of the tags of a table, as DynamoDB's documentation bounds them.
constexpr std::size_t kMostTags = 50;
constexpr std::size_t kLongestTagKey = 128;
constexpr std::size_t kLongestTagValue = 256;

// A call under way, which ends when the table is closed.
class Call {
 public:
  Call(lock::Table& table, std::string doing)
      : table_(table), doing_(std::move(doing)), wait_(table.waits) {}

  bool may_begin() const { return wait_.waker() != nullptr; }
  Failure closed() const { return failed(Errc::closed, doing_); }
  Failure bad_record(const std::string& problem) const {
    return failed(Errc::bad_record, doing_, problem);
  }
  // A call that was woken, was woken by close().
  Failure failure_of(const Answer& answer) const {
    if (answer.fault == Fault::none) return {};
    if (answer.fault == Fault::cancelled) return closed();
    return detail::failure_of(answer, doing_, client().endpoint());
  }

  Answer ask(Action action, const std::string& body,
             bool* maybe_applied = nullptr) const {
    return dynamodb::ask(client(), budget(), action, body, waiting(),
                         maybe_applied);
  }
  // The item as it stands.
  Answer look(const lock::Place& place) const {
    lock::Request look;
    look.consistent = true;
    return ask(Action::get_item, lock::write_request(place, look));
  }

  dynamodb::Client& client() const { return *table_.client; }
  dynamodb::RetryBudget& budget() const { return *table_.budget; }
  sigv4::Waker* waker() const { return wait_.waker(); }
  dynamodb::Waiting waiting() const {
    return {BootClock::now() + kPatience, waker()};
  }

 private:
  lock::Table& table_;
  const std::string doing_;
  const lock::Waits::One wait_;
};

std::string about_table(const char* what, const TableOptions& options) {
  return std::string("cannot ") + what + " table " + quoted(options.name);
}

// --- The table itself --------------------------------------------------------

std::size_t characters(const std::string& utf8) {
  return static_cast<std::size_t>(std::count_if(
      utf8.begin(), utf8.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
}

// Why DynamoDB would refuse them.
Failure check(const Creation& how) {
  if (how.throughput &&
      (how.throughput->read_units == 0 || how.throughput->write_units == 0)) {
    return bad_option("throughput", "less than a unit");
  }
  if (how.tags.size() > kMostTags) return bad_option("tags", "more than 50");
  std::set<std::string> keys;
  for (const auto& [key, value] : how.tags) {
    if (!lock::is_utf8(key) || !lock::is_utf8(value)) {
      return bad_option("tags", "not UTF-8");
    }
    if (key.empty() || characters(key) > kLongestTagKey) {
      return bad_option("tags", "a key is not of 1 to 128 characters");
    }
    if (characters(value) > kLongestTagValue) {
      return bad_option("tags", "a value is longer than 256 characters");
    }
    if (!keys.insert(key).second) {
      return bad_option("tags", quoted(key) + " twice");
    }
  }
  return {};
}

dynamodb::TableSchema schema_of(const TableOptions& options,
                                const Creation& how) {
  dynamodb::TableSchema schema;
  schema.table = options.name;
  schema.key = options.key;
  schema.sort_key = options.sort_key;
  if (how.clean_up) schema.ttl = lock::kTtlAttribute;
  schema.allow_replicas = options.allow_replicas;
  if (how.throughput) {
    schema.throughput = {how.throughput->read_units,
                         how.throughput->write_units};
  }
  schema.tags = how.tags;
  return schema;
}

// Whether locks can live there.
Failure look_at(const dynamodb::TableDescription& table,
                const TableOptions& options) {
  const std::string doing = about_table("use", options);
  if (!dynamodb::is_keyed_by(table, options.key, options.sort_key)) {
    const std::string wanted =
        "its key is not the string `" + options.key + "`";
    return failed(Errc::wrong_table, doing,
                  options.sort_key.empty()
                      ? wanted + " alone"
                      : wanted + " with the string `" + options.sort_key + "`");
  }
  if (table.eventual_replicas && !options.allow_replicas) {
    return failed(Errc::replicated_table, doing,
                  "what is locked in one region is not in the others");
  }
  return {};
}

// Here and below, `Impl` is Table::Impl, whose name is its friends' alone.
template <class Impl>
Failure create(Impl& impl, const Creation& how) {
  if (impl.bad) return impl.bad;
  if (Failure bad = check(how)) return bad;
  const Call call(impl.get(), about_table("create", impl.options));
  if (!call.may_begin()) return call.closed();
  const Answer answer = dynamodb::create_table(
      call.client(), call.budget(), schema_of(impl.options, how),
      BootClock::now() + kCreationPatience, call.waker());
  if (answer.fault != Fault::none) return call.failure_of(answer);
  return look_at(*answer.table, impl.options);
}

template <class Impl>
Failure exists(Impl& impl, bool& there) {
  there = false;
  if (impl.bad) return impl.bad;
  const Call call(impl.get(), about_table("look at", impl.options));
  if (!call.may_begin()) return call.closed();
  const Answer answer =
      dynamodb::describe_table(call.client(), call.budget(), impl.options.name,
                               BootClock::now() + kPatience, call.waker());
  if (answer.fault == Fault::no_table) return {};
  if (answer.fault != Fault::none) return call.failure_of(answer);
  there = true;
  return look_at(*answer.table, impl.options);
}

// --- What stands in it -------------------------------------------------------

// How long ago the holder wrote that.
std::optional<milliseconds> age_of(const Row& row,
                                   const dynamodb::ServiceClock& clock) {
  if (!row.lease || row.expires == nanoseconds::zero()) return std::nullopt;
  if (row.expires >= lock::kBeyondAllClocks || !clock.known()) {
    return std::nullopt;
  }
  const nanoseconds age =
      clock.middle(BootClock::now()) - (row.expires - nanoseconds(*row.lease));
  return std::max(std::chrono::duration_cast<milliseconds>(age),
                  milliseconds::zero());
}

// REQUIRES: the row is understood.
void tell_row(const Row& row, const dynamodb::ServiceClock& clock,
              LockInfo& info) {
  if (row.kind != Row::Kind::record) return;
  info.exists = true;
  info.released = row.expires == nanoseconds::zero();
  info.uuid = row.uuid;
  info.owner = row.owner;
  info.lease = row.lease.value_or(milliseconds::zero());
  info.expires = row.expires;
  info.age = age_of(row, clock);
  info.token = static_cast<std::uint64_t>(row.token);
}

template <class Impl>
Failure inspect(Impl& impl, const std::string& name,
                const std::string& sort_value, LockInfo& info) {
  if (impl.bad) return impl.bad;
  if (Failure bad = impl.check_name(name, sort_value)) return bad;
  const Call call(impl.get(), cannot("inspect", name, impl.options.name));
  if (!call.may_begin()) return call.closed();
  const lock::Place place = impl.place_of(name, sort_value);
  Answer answer = call.look(place);
  if (answer.fault != Fault::none) return call.failure_of(answer);
  info.name = name;
  info.sort_value = place.sort_value;
  if (!answer.item) return {};
  const Row row = lock::read_row(std::move(*answer.item));
  if (row.kind == Row::Kind::unknown) return call.bad_record(row.problem);
  tell_row(row, call.client().clock(), info);
  info.data = detail::data_of(row.others);
  info.attributes = detail::attributes_of(row.others, impl.options);
  return {};
}

// --- All that stands in it ---------------------------------------------------

// Without data and attributes, which may be large.
dynamodb::Selection selection_of(const TableOptions& options) {
  dynamodb::Selection selection;
  selection.table = options.name;
  selection.key_name = options.key;
  selection.attributes = {options.key, "uuid",  "expires",
                          "lease",     "owner", "token"};
  if (!options.sort_key.empty()) {
    selection.attributes.push_back(options.sort_key);
  }
  return selection;
}

// The string that an item has by that name; empty if it has none.
std::string text_of(const dynamodb::Item& item, const std::string& name) {
  const dynamodb::Attribute* attribute = dynamodb::find(item, name);
  const bool text = attribute != nullptr &&
                    attribute->type == dynamodb::Attribute::Type::string;
  return text ? attribute->value : std::string();
}

LockInfo info_of(dynamodb::Item item, const TableOptions& options,
                 const dynamodb::ServiceClock& clock) {
  LockInfo info;
  info.name = text_of(item, options.key).substr(options.prefix.size());
  info.sort_value = text_of(item, options.sort_key);
  const Row row = lock::read_row(std::move(item));
  if (row.kind == Row::Kind::unknown) {
    info.problem = row.problem;
  } else {
    tell_row(row, clock, info);
  }
  return info;
}

template <class Impl>
Failure list(Impl& impl, const dynamodb::Selection& selection,
             const std::function<bool(const LockInfo&)>& each) {
  const TableOptions& options = impl.options;
  const Call call(impl.get(), about_table("list", options));
  if (!call.may_begin()) return call.closed();
  const Answer answer = dynamodb::read_all(
      call.client(), call.budget(), selection, call.waiting(),
      [&](dynamodb::Item&& item) {
        bool more = true;
        const std::string key = text_of(item, options.key);
        if (key.compare(0, options.prefix.size(), options.prefix) == 0) {
          more = each(info_of(std::move(item), options, call.client().clock()));
        }
        return more;
      });
  return call.failure_of(answer);
}

template <class Impl>
Failure list_all(Impl& impl, const std::function<bool(const LockInfo&)>& each) {
  if (impl.bad) return impl.bad;
  dynamodb::Selection selection = selection_of(impl.options);
  selection.prefix = impl.options.prefix;
  return list(impl, selection, each);
}

template <class Impl>
Failure list_of_name(Impl& impl, const std::string& name,
                     const std::function<bool(const LockInfo&)>& each) {
  if (impl.bad) return impl.bad;
  // Any sort value is as good as another here.
  const TableOptions& options = impl.options;
  if (Failure bad = impl.check_name(name, options.sort_key)) return bad;
  dynamodb::Selection selection = selection_of(options);
  selection.key = impl.place_of(name, {}).key;
  return list(impl, selection, each);
}

// --- Force -------------------------------------------------------------------

// Whether the row is as our write leaves it.  Some engines do not tell the row
// when they refuse.
Failure look_for_ours(const Call& call, const lock::Place& place,
                      const std::string& uuid, bool& ours) {
  Answer answer = call.look(place);
  if (answer.fault != Fault::none) return call.failure_of(answer);
  const Row row = answer.item ? lock::read_row(std::move(*answer.item)) : Row{};
  ours = place.use.keep ? row.kind == Row::Kind::record && row.uuid == uuid &&
                              row.expires == nanoseconds::zero()
                        : row.kind == Row::Kind::absent;
  return {};
}

template <class Impl>
Failure force_unlock(Impl& impl, const LockInfo& info, bool& freed) {
  freed = false;
  if (impl.bad) return impl.bad;
  if (!info.exists || info.released || info.uuid.empty()) {
    return bad_option("info", "nothing was held");
  }
  if (Failure bad = impl.check_name(info.name, info.sort_value)) return bad;
  const Call call(impl.get(), cannot("free", info.name, impl.options.name));
  if (!call.may_begin()) return call.closed();
  lock::Place place = impl.place_of(info.name, info.sort_value);
  place.use.keep = info.token > 0;
  bool maybe_applied = false;
  const Answer answer = call.ask(
      place.use.keep ? Action::update_item : Action::delete_item,
      lock::write_force(place, {info.uuid, info.expires}), &maybe_applied);
  if (answer.fault == Fault::condition_failed) {
    if (!maybe_applied) return {};
    return look_for_ours(call, place, info.uuid, freed);
  }
  freed = answer.fault == Fault::none;
  return call.failure_of(answer);
}

}  // namespace

// --- The calls ---------------------------------------------------------------

void Table::create(const Creation& how) {
  const NoCancellation guard;
  if (const Failure failure = v0::create(*impl_, how)) detail::raise(failure);
}

void Table::create(std::error_code& ec) { create({}, ec); }

void Table::create(const Creation& how, std::error_code& ec) {
  const NoCancellation guard;
  impl_->tell(v0::create(*impl_, how), ec);
}

bool Table::exists() {
  const NoCancellation guard;
  bool there;
  if (const Failure failure = v0::exists(*impl_, there)) detail::raise(failure);
  return there;
}

bool Table::exists(std::error_code& ec) {
  const NoCancellation guard;
  bool there;
  impl_->tell(v0::exists(*impl_, there), ec);
  return there;
}

LockInfo Table::inspect(const std::string& name) { return inspect(name, {}); }

LockInfo Table::inspect(const std::string& name, std::error_code& ec) {
  return inspect(name, {}, ec);
}

LockInfo Table::inspect(const std::string& name,
                        const std::string& sort_value) {
  const NoCancellation guard;
  LockInfo info;
  const Failure failure = v0::inspect(*impl_, name, sort_value, info);
  if (failure) detail::raise(failure);
  return info;
}

LockInfo Table::inspect(const std::string& name, const std::string& sort_value,
                        std::error_code& ec) {
  const NoCancellation guard;
  LockInfo info;
  impl_->tell(v0::inspect(*impl_, name, sort_value, info), ec);
  return info;
}

void Table::list(const std::function<bool(const LockInfo&)>& each) {
  const NoCancellation guard;
  if (const Failure failure = list_all(*impl_, each)) detail::raise(failure);
}

void Table::list(const std::function<bool(const LockInfo&)>& each,
                 std::error_code& ec) {
  const NoCancellation guard;
  impl_->tell(list_all(*impl_, each), ec);
}

void Table::list(const std::string& name,
                 const std::function<bool(const LockInfo&)>& each) {
  const NoCancellation guard;
  const Failure failure = list_of_name(*impl_, name, each);
  if (failure) detail::raise(failure);
}

void Table::list(const std::string& name,
                 const std::function<bool(const LockInfo&)>& each,
                 std::error_code& ec) {
  const NoCancellation guard;
  impl_->tell(list_of_name(*impl_, name, each), ec);
}

bool Table::force_unlock(const LockInfo& info) {
  const NoCancellation guard;
  bool freed;
  const Failure failure = v0::force_unlock(*impl_, info, freed);
  if (failure) detail::raise(failure);
  return freed;
}

bool Table::force_unlock(const LockInfo& info, std::error_code& ec) {
  const NoCancellation guard;
  bool freed;
  impl_->tell(v0::force_unlock(*impl_, info, freed), ec);
  return freed;
}

}  // namespace v0
}  // namespace ddbmutex
