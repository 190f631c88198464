#include "listing.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "../sigv4/boot_clock.hpp"
#include "../sigv4/text.hpp"
#include "attributes.hpp"
#include "dynamodb/clock.hpp"
#include "layout_options.hpp"
#include "lock/layouts.hpp"
#include "lock/protocol.hpp"
#include "lock/row.hpp"

namespace ddbmutex {
inline namespace v0 {

using lock::Row;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// The string that an item has by that name; empty if it has none.
std::string_view text_of(const dynamodb::Item& item, std::string_view name) {
  const dynamodb::Attribute* attribute = dynamodb::find(item, name);
  const bool text = attribute != nullptr &&
                    attribute->type == dynamodb::Attribute::Type::string;
  return text ? std::string_view(attribute->value) : std::string_view();
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  for (const std::string& known : names) {
    if (known == name) return;
  }
  names.push_back(name);
}

}  // namespace

void detail::tell_item(dynamodb::Item&& item, const TableOptions& options,
                       const dynamodb::Client& client, LockInfo& info) {
  const Row row = lock::read_row(std::move(item), *find_layout(options));
  if (row.kind == Row::Kind::unknown) {
    info.problem = row.problem;
    return;
  }
  info.keep_row = row.kept || row.kind == Row::Kind::bare;
  tell_stored(row.others, options, info);
  if (!row.unread.empty()) {
    info.problem = sigv4::format(
        "%q was not read: more than %s values are stored, or they are nested "
        "more than 32 deep",
        row.unread, dynamodb::kMostOthers);
  }
  if (row.kind != Row::Kind::record) return;
  info.exists = true;
  info.released = row.expires == nanoseconds::zero();
  info.uuid = row.uuid;
  info.owner = row.owner;
  info.lease = row.lease.value_or(milliseconds::zero());
  info.expires = row.expires;
  info.token = static_cast<std::uint64_t>(row.token);
  const dynamodb::ServiceClock clock = client.clock();
  if (!row.lease || info.released || !clock.known() ||
      row.expires >= lock::kBeyondAllClocks) {
    return;  // Nothing says when the holder wrote that.
  }
  const nanoseconds written =
      row.expires - *row.lease -
      options.calendar_margin.value_or(milliseconds::zero());
  info.age = std::max(std::chrono::duration_cast<milliseconds>(
                          clock.middle(BootClock::now()) - written),
                      milliseconds::zero());
}

dynamodb::Selection detail::selection_of(const TableOptions& options,
                                         const std::vector<std::string>& more) {
  dynamodb::Selection selection;
  selection.table = options.name;
  selection.prefix = options.prefix;
  add_once(selection.attributes, options.key);
  if (!options.sort_key.empty()) {
    add_once(selection.attributes, options.sort_key);
  }
  selection.keys = selection.attributes.size();
  selection.wanted = lock::wanted_of(*find_layout(options), true);
  for (const dynamodb::AttributeName& name : find_layout(options)->names) {
    add_once(selection.attributes, name.attribute);
  }
  for (const std::string& name : more) add_once(selection.attributes, name);
  return selection;
}

bool detail::tell_next(dynamodb::Items& items, const TableOptions& options,
                       LockInfo& info) {
  while (dynamodb::Item* item = items.next()) {
    std::string_view name = text_of(*item, options.key);
    // An item whose key is not a string, or is empty, is not a lock.
    if (name.empty() || !sigv4::begins_with(name, options.prefix)) continue;
    name.remove_prefix(options.prefix.size());
    info.name = name;
    info.sort_value = text_of(*item, options.sort_key);
    if (items.too_large()) {
      info.problem = "it is too large to be read";
    } else {
      tell_item(std::move(*item), options, items.client, info);
    }
    return true;
  }
  return false;
}

}  // namespace v0
}  // namespace ddbmutex
