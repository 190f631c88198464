#include "examples/ddbmutex/told.hpp"

#include <openssl/evp.h>
#include <rapidjson/encodings.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

namespace command {
namespace {

using ddbmutex::LockInfo;
using std::chrono::milliseconds;

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// A character of UTF-8.  `bytes` is empty if the text does not begin with one.
struct Character {
  std::string_view bytes;
  unsigned code = 0;
};

Character first_character(std::string_view text) {
  rapidjson::MemoryStream stream(text.data(), text.size());
  Character first;
  if (rapidjson::UTF8<>::Decode(stream, &first.code)) {
    first.bytes = text.substr(0, stream.Tell());
  }
  return first;
}

// Control characters, which a terminal obeys, and characters that end a line,
// reorder the text around them (U+202E shows "gpj.exe" as "exe.jpg") or are
// invisible.  The library escapes the same ones in errors (sigv4/text.cpp), but
// has no public function for that.
bool is_hidden(unsigned code) {
  constexpr struct {
    unsigned first, last;
  } kHidden[] = {
      {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},       {0x61c, 0x61c},
      {0x200b, 0x200b}, {0x200e, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
      {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff},
  };
  return std::any_of(std::begin(kHidden), std::end(kHidden),
                     [code](const auto& range) {
                       return code >= range.first && code <= range.last;
                     });
}

// Calls `each` for every character and joins the results.  Bytes that are not
// UTF-8 are replaced.
template <class Each>
std::string mapped(std::string_view text, const Each& each) {
  std::string all;
  while (!text.empty()) {
    const Character first = first_character(text);
    all += first.bytes.empty() ? kReplacement : each(first);
    text.remove_prefix(std::max<std::size_t>(first.bytes.size(), 1));
  }
  return all;
}

// Of characters; all are taken to be one column wide.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
      }));
}

std::string number(const char* format, long long a, long long b) {
  char text[64];
  std::snprintf(text, sizeof text, format, a, b);
  return text;
}

std::string words_or_dash(std::optional<milliseconds> time,
                          const char* behind = "") {
  return time ? in_words(*time) + behind : "-";
}

// Whether the item is not a lock, or is too large to be read.  A lock that can
// be read may have a problem too: an attribute that was left out.
bool is_unreadable(const LockInfo& info) {
  return !info.problem.empty() && !info.exists && !info.keep_row;
}

std::string holder_of(const LockInfo& info) {
  return info.owner.empty() ? "unknown" : printable(info.owner);
}

}  // namespace

State state_of(const LockInfo& info) {
  // It has other attributes, but neither a record nor a token.
  const bool is_bare = info.keep_row && !info.exists && info.token == 0;
  if (is_unreadable(info) || is_bare) return State::no_lock;
  if (!info.exists || info.released) return State::free;
  return info.expired ? State::expired : State::held;
}

const char* name_of(State state) {
  constexpr const char* kNames[] = {"free", "held", "expired", "not a lock"};
  return kNames[static_cast<int>(state)];
}

std::string need_of(const LockInfo& info, Layout layout) {
  if (is_unreadable(info)) return "";  // Nothing would do.
  if (info.keep_row) return "--keep-row";
  return layout == Layout::lease && !info.exists ? "an item" : "";
}

std::optional<milliseconds> remaining_of(const LockInfo& info) {
  if (!info.left) return {};
  return std::max(*info.left, milliseconds(0));
}

// --- For people --------------------------------------------------------------

std::string in_words(milliseconds time) {
  const long long ms = time.count();
  if (ms < 1000) return number("%lldms", ms, 0);
  if (ms < 60'000) return number("%lld.%llds", ms / 1000, ms / 100 % 10);
  const long long s = ms / 1000;
  if (s < 3600) return number("%lldm%02llds", s / 60, s % 60);
  if (s < 86'400) return number("%lldh%02lldm", s / 3600, s / 60 % 60);
  return number("%lldd%02lldh", s / 86'400, s / 3600 % 24);
}

std::string printable(std::string_view text) {
  return mapped(text, [](const Character& character) {
    return is_hidden(character.code) ? kReplacement : character.bytes;
  });
}

std::string cut(const std::string& text, std::size_t width) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) continue;
    if (characters++ == width) return text.substr(0, i);
  }
  return text;
}

std::string label_of(const LockInfo& info) {
  std::string label = printable(info.name);
  if (!info.sort_value.empty())
    label += " [" + printable(info.sort_value) + "]";
  return label;
}

namespace {

// ", needs --keep-row"
std::string needs(const LockInfo& info, Layout layout) {
  const std::string need = need_of(info, layout);
  return need.empty() ? "" : ", needs " + need;
}

}  // namespace

std::string sentence_of(const LockInfo& info, Layout layout) {
  const std::string more = needs(info, layout);
  const State state = state_of(info);
  if (state == State::free) return "free" + more;
  if (state == State::no_lock) {
    return name_of(state) +
           (info.problem.empty() ? more : ": " + printable(info.problem));
  }
  if (state == State::expired) {
    return "expired, was held by " + holder_of(info) + more;
  }
  const auto left = remaining_of(info);
  return "held by " + holder_of(info) +
         (left ? ", " + in_words(*left) + " left" : "") + more;
}

std::string holder_in_words(const LockInfo& info) {
  const State state = state_of(info);
  if (state == State::free) return "nobody holds it at this moment";
  if (state == State::no_lock) return "its item is not a lock";
  if (state == State::expired) {
    return holder_of(info) + " has not renewed its lease, which ended " +
           in_words(-info.left.value_or(milliseconds(0))) + " ago";
  }
  return "held by " + holder_of(info) +
         (info.age ? ", taken or last renewed " + in_words(*info.age) + " ago"
                   : "; its item does not say since when");
}

std::string lines_of(const LockInfo& info, Layout layout) {
  std::string lines;
  const auto add = [&lines](const char* what, const std::string& value) {
    if (!value.empty()) lines += what + value + "\n";
  };
  const State state = state_of(info);
  add("name   ", label_of(info));
  add("state  ", name_of(state));
  if (state == State::no_lock) add("why    ", printable(info.problem));
  if (info.exists && !info.released) {
    add("holder ", holder_of(info));
    add("lease  ",
        in_words(info.lease) +
            (info.age ? ", renewed " + in_words(*info.age) + " ago" : ""));
    add("left   ", words_or_dash(remaining_of(info)));
    add("uuid   ", printable(info.uuid));
  }
  if (info.token != 0) add("token  ", std::to_string(info.token));
  if (info.data) add("data   ", printable(*info.data));
  const std::string need = need_of(info, layout);
  if (need == "--keep-row") {
    add("needs  ",
        "--keep-row, for `run`: whoever locks this item has to keep it");
  } else if (!need.empty()) {
    add("needs  ", need + " of that name: in this layout `run` makes none");
  }
  return lines;
}

std::vector<std::string> rows_of(const std::vector<LockInfo>& infos,
                                 std::size_t width, Layout layout) {
  constexpr std::size_t kColumns = 5;
  using Row = std::array<std::string, kColumns>;
  std::vector<Row> rows = {{"NAME", "STATE", "RENEWED", "LEFT", "HOLDER"}};
  for (const LockInfo& info : infos) {
    const State state = state_of(info);
    const bool has_holder = state == State::held || state == State::expired;
    rows.push_back(
        {label_of(info), name_of(state) + needs(info, layout),
         words_or_dash(has_holder ? info.age : std::nullopt, " ago"),
         words_or_dash(has_holder ? remaining_of(info) : std::nullopt),
         has_holder ? holder_of(info) : "-"});
  }
  std::array<std::size_t, kColumns> widths = {};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < kColumns; ++i) {
      widths[i] = std::max(widths[i], width_of(row[i]) + 2);
    }
  }
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < kColumns; ++i) {
      line += row[i];
      const std::size_t there = width_of(row[i]);
      if (there < widths[i]) line.append(widths[i] - there, ' ');
    }
    lines.push_back(cut(line, width));
  }
  return lines;
}

// --- For programs ------------------------------------------------------------

namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

void write(Writer& writer, std::string_view text) {
  const std::string valid =
      mapped(text, [](const Character& character) { return character.bytes; });
  writer.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}

void write(Writer& writer, std::optional<milliseconds> time) {
  if (time) {
    writer.Int64(time->count());
  } else {
    writer.Null();
  }
}

std::string base64(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // Its NUL too.
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  text.pop_back();
  return text;
}

void write_record(Writer& writer, const LockInfo& info) {
  writer.Key("holder");
  write(writer, info.owner);
  writer.Key("lease_ms");
  write(writer, info.lease);
  writer.Key("age_ms");
  write(writer, info.age);
  writer.Key("left_ms");
  write(writer, remaining_of(info));
  writer.Key("uuid");
  write(writer, info.uuid);
}

// "\u202e"; a code beyond 16 bits becomes a pair of surrogates.
std::string json_escape(unsigned code) {
  const auto unit = [](unsigned value) {
    return number("\\u%04llx", value, 0);
  };
  if (code < 0x10000) return unit(code);
  return unit(0xd800 + ((code - 0x10000) >> 10)) +
         unit(0xdc00 + (code & 0x3ff));
}

// The writer escapes only the control characters below U+0020.
std::string text_of(const rapidjson::StringBuffer& json) {
  return mapped(json.GetString(), [](const Character& character) {
    return is_hidden(character.code) ? json_escape(character.code)
                                     : std::string(character.bytes);
  });
}

}  // namespace

std::string json_of(const LockInfo& info, const std::string& more,
                    Layout layout) {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  writer.StartObject();
  writer.Key("name");
  write(writer, info.name);
  if (!info.sort_value.empty()) {
    writer.Key("sort_value");
    write(writer, info.sort_value);
  }
  writer.Key("state");
  write(writer, std::string_view(name_of(state_of(info))));
  if (const std::string need = need_of(info, layout); !need.empty()) {
    writer.Key("needs");
    write(writer, std::string_view(need));
  }
  if (info.exists && !info.released) write_record(writer, info);
  if (info.token != 0) {
    writer.Key("token");
    writer.Uint64(info.token);
  }
  if (info.data) {
    writer.Key("data");
    write(writer, base64(*info.data));
  }
  if (!info.item.empty()) {
    writer.Key("attributes");
    writer.RawValue(info.item.data(), info.item.size(), rapidjson::kObjectType);
  }
  if (!info.problem.empty()) {
    writer.Key("problem");
    write(writer, info.problem);
  }
  writer.EndObject();
  std::string text = text_of(buffer);
  if (!more.empty()) text.insert(text.size() - 1, "," + more);
  return text;
}

std::string json_of(const std::string& text) {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  write(writer, std::string_view(text));
  return text_of(buffer);
}

}  // namespace command
