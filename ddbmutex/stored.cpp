// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// What users store with a lock, and the calls of DdbMutex that read and change
// it.
#include "stored.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "../sigv4/base64.hpp"
#include "../sigv4/json.hpp"
#include "../sigv4/text.hpp"
#include "impl.hpp"
#include "lock/row.hpp"
#include "row_options.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::ErrorPtr;
using Wire = dynamodb::Attribute;
using dynamodb::Item;

namespace {

constexpr std::size_t kLongestName = 255;  // In DynamoDB's documentation.

// In one update, because the text of an expression has 4 KB at most.
constexpr std::size_t kMostChanges = 100;

bool is_known(const Wire& attribute) {
  return attribute.type < Wire::Type::other &&
         std::all_of(attribute.members.begin(), attribute.members.end(),
                     is_known);
}

// Adds the attribute, without members of unknown types.
void add_known(const Wire& attribute, Item& all) {
  if (attribute.type >= Wire::Type::other) return;
  Wire& copy = all.emplace_back();
  copy.name = attribute.name;
  copy.type = attribute.type;
  copy.value = attribute.value;
  for (const Wire& member : attribute.members) {
    add_known(member, copy.members);
  }
}

// Checks what one call would set and remove.
struct Checker {
  const TableOptions& table;
  const char* const field;  // The option that errors name.
  std::set<std::string> seen{};

  ErrorPtr bad(std::string_view why) const {
    return detail::bad_option({field, std::string(why).c_str()});
  }

  // Adds the name of an attribute.  `data` may be removed, but not set, because
  // another option sets it.
  ErrorPtr add(const std::string& name, bool removed) {
    const std::string why = detail::bad_name(name);
    if (!why.empty()) return bad(why);
    const std::string quoted = sigv4::in_quotes(name);
    if (!seen.insert(name).second) return bad(quoted + " is given twice");
    if (lock::is_record_attribute(*table.rows, name) &&
        !(removed && name == lock::kDataAttribute)) {
      return bad(quoted + " is an attribute of the record");
    }
    if (name == table.key || name == table.sort_key) {
      return bad(quoted + " is the table's key");
    }
    return nullptr;
  }

  // `count`: how many attributes there are.
  ErrorPtr add_all(const std::string& text, std::size_t& count) {
    Item item;
    if (!detail::parse_item(text, item)) {
      return bad("not an item in DynamoDB's JSON");
    }
    count = item.size();
    for (const Wire& attribute : item) {
      if (ErrorPtr wrong = add(attribute.name, false)) return wrong;
      if (!is_known(attribute)) {
        return bad(sigv4::in_quotes(attribute.name) +
                   " is not of a type that DynamoDB has");
      }
    }
    return nullptr;
  }
};

// Null if nothing changes.
lock::ChangesPtr to_changes(const Changes& changes) {
  if (!changes.data && changes.item.empty() && changes.remove.empty()) {
    return nullptr;
  }
  return std::make_shared<lock::Changes>(lock::Changes{
      detail::to_item(changes.data, changes.item), changes.remove});
}

}  // namespace

namespace detail {

const char* name_problem(const std::string& name) {
  return name.empty()
             ? "empty"
             : text_problem(name, kLongestName, "longer than 255 bytes");
}

std::string bad_name(const std::string& name) {
  const char* const problem = name_problem(name);
  if (*problem == '\0') return {};
  return sigv4::join({"a name that is ", problem,
                      name.empty() ? "" : ": " + sigv4::in_quotes(name)});
}

bool parse_item(const std::string& text, Item& item) {
  if (text.empty()) return true;
  const sigv4::Document document((std::string(text)));
  return dynamodb::read_item(document.root(), item) &&
         (item.empty() || item.back().type != Wire::Type::unread);
}

ErrorPtr check_stored(const Options& options, const TableOptions& table) {
  Checker checker{table, "item"};
  std::size_t count = 0;
  if (ErrorPtr bad = checker.add_all(options.item, count)) return bad;
  const bool updates =
      keeps_rows(options.keep_row, table) || options.keep_data.value_or(false);
  return updates && count > kMostChanges
             ? checker.bad("more than 100, with keep_row or keep_data")
             : nullptr;
}

ErrorPtr check_changes(const Changes& changes, const TableOptions& table) {
  Checker checker{table, "changes"};
  std::size_t count = 0;
  if (ErrorPtr bad = checker.add_all(changes.item, count)) return bad;
  if (count + changes.remove.size() > kMostChanges) {
    return checker.bad("more than 100");
  }
  for (const std::string& name : changes.remove) {
    if (ErrorPtr bad = checker.add(name, true)) return bad;
    if (changes.data && name == lock::kDataAttribute) {
      return checker.bad("`data` is both set and removed");
    }
  }
  return nullptr;
}

Item to_item(const std::optional<std::string>& data, const std::string& text) {
  Item all;
  if (data) {
    all.push_back({lock::kDataAttribute,
                   Wire::Type::binary,
                   sigv4::base64_encode(*data),
                   {}});
  }
  Item item;
  parse_item(text, item);
  for (Wire& attribute : item) all.push_back(std::move(attribute));
  return all;
}

std::optional<std::string> data_of(const Item& others) {
  const Wire* data = dynamodb::find(others, lock::kDataAttribute);
  if (data == nullptr || data->type != Wire::Type::binary) return std::nullopt;
  return sigv4::base64_decode(data->value);
}

std::string item_text(const Item& others, const TableOptions& table) {
  Item shown;
  for (const Wire& one : others) {
    if (lock::is_record_attribute(*table.rows, one.name)) continue;
    if (one.name == table.key || one.name == table.sort_key) continue;
    add_known(one, shown);
  }
  if (shown.empty()) return {};
  sigv4::Text text;
  dynamodb::JsonWriter json(text);
  dynamodb::write_item(json, shown);
  return text.take();
}

}  // namespace detail

// --- The calls ---------------------------------------------------------------

std::optional<std::string> DdbMutex::data() const {
  const lock::Mutex* own = impl_->state.peek();
  if (own == nullptr) return std::nullopt;
  return detail::data_of(own->stored());
}

std::string DdbMutex::item() const {
  const lock::Mutex* own = impl_->state.peek();
  if (own == nullptr) return {};
  return detail::item_text(own->stored(), impl_->table->impl_->options);
}

void DdbMutex::renew(const Changes& changes, std::error_code& ec) {
  detail::run(impl_, ec, [&](Impl& impl) {
    const TableOptions& table = impl.table->impl_->options;
    ErrorPtr bad = impl.with_name(detail::check_changes(changes, table));
    return bad ? std::move(bad) : impl.renew(to_changes(changes));
  });
}

void DdbMutex::release(const Changes& changes, std::error_code& ec) {
  detail::run(impl_, ec, [&](Impl& impl) {
    const TableOptions& table = impl.table->impl_->options;
    ErrorPtr bad = detail::check_changes(changes, table);
    auto others = bad ? nullptr : to_changes(changes);
    if (others != nullptr &&
        !detail::keeps_rows(impl.options.keep_row, table)) {
      bad = detail::bad_option(
          {"changes", "the row is not kept, so nothing stays in it"});
    }
    bad = impl.with_name(std::move(bad));
    return bad ? std::move(bad) : impl.release(others);
  });
}

}  // namespace v0
}  // namespace ddbmutex
