// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// JSON by means of RapidJSON, which no other file includes.  Its reader fills a
// NodeList; Value and Elements read those nodes.
//
// RapidJSON 1.1 needs help in four places:
//
// - Its own check of UTF-8 reads past the end of a text that ends within a
//   character.  So the text is checked before it is read.
// - It accepts the second half of a surrogate pair without the first, and makes
//   bytes of it that are not UTF-8.  NodeList refuses them.
// - It does not notice that there is no memory.  JsonMemory throws.
// - It takes a NUL for the end of the text.  Document compares the sizes.
#include "json.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>

// RapidJSON's assertions cannot fail here, and their texts would add 9 KB.
#define RAPIDJSON_ASSERT(condition) static_cast<void>(0)
// A program may have a RapidJSON of another version or with other settings.
#define RAPIDJSON_NAMESPACE ddbmutex_rapidjson
#define RAPIDJSON_NAMESPACE_BEGIN namespace ddbmutex_rapidjson {
#define RAPIDJSON_NAMESPACE_END }
#include <rapidjson/reader.h>
#include <rapidjson/writer.h>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// RapidJSON's allocator for its stacks.  Not in the unnamed namespace, because
// JsonWriter::Impl has a member of it: g++ warns of that in unity builds.
struct JsonMemory {
  static void* Malloc(std::size_t size) { return ::operator new(size); }
  static void* Realloc(void* old, std::size_t old_size, std::size_t size) {
    void* const memory = Malloc(size);
    if (old != nullptr) std::memcpy(memory, old, std::min(old_size, size));
    Free(old);
    return memory;
  }
  static void Free(void* memory) { ::operator delete(memory); }
};

namespace {

namespace rapidjson = ::ddbmutex_rapidjson;
using rapidjson::SizeType;
using Utf8 = rapidjson::UTF8<>;
using Kind = JsonNode::Kind;

// --- Reading ---------------------------------------------------------------

constexpr std::size_t kMostLevels = 1000;

// An upper bound for the nodes of valid JSON.  Each node except the first
// follows one of these characters, and needs two bytes of text.
std::size_t max_nodes(std::string_view text) {
  const auto count = std::count_if(text.begin(), text.end(), [](char c) {
    return c == '{' || c == '[' || c == ',' || c == ':';
  });
  return std::min(static_cast<std::size_t>(count), text.size() / 2) + 1;
}

// Whether RapidJSON has decoded half of a surrogate pair.  REQUIRES: the rest
// of the text is UTF-8.
bool has_surrogate(std::string_view text) {
  for (std::size_t at = text.find('\xed'); at < text.size();
       at = text.find('\xed', at + 1)) {
    if (static_cast<unsigned char>(text[at + 1]) >= 0xa0) return true;
  }
  return false;
}

// Receives RapidJSON's events.  Returning false stops the reader.
class NodeList : public rapidjson::BaseReaderHandler<Utf8, NodeList> {
 public:
  explicit NodeList(std::size_t room)
      : nodes_(new JsonNode[room]), room_(room) {}

  bool Null() { return add(Kind::null, 1, nullptr); }
  bool Bool(bool value) {
    return add(value ? Kind::true_value : Kind::false_value, 1, nullptr);
  }
  bool RawNumber(const char* text, SizeType size, bool) {
    return add(Kind::number, size, text);
  }
  bool String(const char* text, SizeType size, bool) {
    return add(Kind::string, size, text) && !has_surrogate({text, size});
  }
  bool Key(const char* text, SizeType size, bool) {
    return String(text, size, false);
  }
  bool StartObject() { return open(Kind::object); }
  bool StartArray() { return open(Kind::list); }
  bool EndObject(SizeType) { return close(); }
  bool EndArray(SizeType) { return close(); }

  bool is_full() const { return count_ == room_; }
  std::unique_ptr<JsonNode[]> take() { return std::move(nodes_); }

 private:
  bool add(Kind kind, SizeType size, const char* text) {
    if (is_full()) return false;  // The text ends inside a list or object.
    nodes_[count_++] = {kind, size, text};
    return true;
  }
  bool open(Kind kind) {
    if (levels_ == kMostLevels) return false;
    open_[levels_++] = count_;
    return add(kind, 1, nullptr);
  }
  bool close() {
    const std::uint32_t begin = open_[--levels_];
    nodes_[begin].size = count_ - begin;
    return true;
  }

  std::unique_ptr<JsonNode[]> nodes_;
  const std::size_t room_;
  std::uint32_t count_ = 0;
  std::uint32_t open_[kMostLevels];  // The enclosing lists and objects.
  std::size_t levels_ = 0;
};

}  // namespace

std::optional<std::string_view> Value::text() const {
  if (!is(Kind::string)) return std::nullopt;
  return node_->text();
}

std::optional<std::int64_t> Value::number() const {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  constexpr int kFar = 1000;  // No number that we need has such an exponent.
  if (!is(Kind::number)) return std::nullopt;
  std::string_view written = node_->text();
  const bool negative = written.front() == '-';
  if (negative) written.remove_prefix(1);
  const std::size_t e = std::min(written.find_first_of("eE"), written.size());
  int exponent = 0;
  for (const char c : written.substr(e)) {
    if (is_digit(c)) exponent = std::min(10 * exponent + (c - '0'), kFar);
  }
  if (written.find('-') != written.npos) exponent = -exponent;
  const std::size_t point = std::min(written.find('.'), e);
  const auto places = static_cast<std::int64_t>(point) + exponent;
  std::int64_t value = 0;
  // The digits left of the point, after the exponent has moved it: 1.5e3 is
  // 1500, and 15e-1 is 1.
  for (std::int64_t i = 0; i < places; ++i) {
    auto at = static_cast<std::size_t>(i);
    if (at >= point) ++at;
    const int digit = at < e ? written[at] - '0' : 0;
    if (value > (kLargest - digit) / 10) return std::nullopt;
    value = 10 * value + digit;
  }
  return negative ? -value : value;
}

std::size_t Value::size() const {
  std::size_t count = 0;
  for (Elements each(*this); each.next();) ++count;
  return count;
}

Value Value::operator[](const char* name) const {
  Value found;
  for (Elements each(*this); is_object() && each.next();) {
    if (each.name == name) found = each.value;
  }
  return found;
}

std::string_view Value::text(const char* name) const {
  return (*this)[name].text().value_or("");
}

Elements::Elements(Value of) : named_(of.is_object()) {
  if (!named_ && !of.is_list()) return;
  at_ = of.node_ + 1;
  end_ = of.node_->next();
}

bool Elements::next() {
  if (at_ == end_) return false;
  if (named_) name = at_++->text();
  value = Value(at_);
  at_ = at_->next();
  return true;
}

Document::Document(std::string&& text) : text_(std::move(text)) {
  const std::string_view all = text_;
  error_offset_ = sigv4::utf8_part(all).size();
  const bool fits = all.size() <= std::numeric_limits<std::uint32_t>::max();
  if (error_offset_ < all.size() || !fits) return;
  NodeList nodes(max_nodes(all));
  rapidjson::GenericInsituStringStream<Utf8> stream(text_.data());
  JsonMemory memory;
  rapidjson::GenericReader<Utf8, Utf8, JsonMemory> reader(&memory);
  // Numbers are read as text, because DynamoDB's have 38 digits.
  const auto result =
      reader
          .Parse<rapidjson::kParseInsituFlag | rapidjson::kParseIterativeFlag |
                 rapidjson::kParseNumbersAsStringsFlag>(stream, nodes);
  error_offset_ = result.IsError() ? result.Offset() : stream.Tell();
  if (nodes.is_full() && result.Code() == rapidjson::kParseErrorTermination) {
    error_offset_ = all.size();
  }
  if (!result.IsError() && error_offset_ == all.size()) nodes_ = nodes.take();
}

// --- Writing ---------------------------------------------------------------

class JsonWriter::Impl {
 public:
  explicit Impl(Text& json)
      : output{json}, writer(output, &memory, kUsualLevels) {}

  struct Output {
    using Ch = char;
    void Put(char c) { text += c; }
    void Flush() {}
    Text& text;
  };
  static constexpr std::size_t kUsualLevels = 8;
  Output output;
  JsonMemory memory;
  rapidjson::Writer<Output, Utf8, Utf8, JsonMemory> writer;
};

JsonWriter::JsonWriter(Text& json)
    : json_(json), impl_(std::make_unique<Impl>(json)) {}

JsonWriter::~JsonWriter() = default;

void JsonWriter::begin_object() { impl_->writer.StartObject(); }

void JsonWriter::end_object() { impl_->writer.EndObject(); }

void JsonWriter::begin_list() { impl_->writer.StartArray(); }

void JsonWriter::end_list() { impl_->writer.EndArray(); }

// Writes the comma or colon before a value, by writing an empty value.  The
// caller then appends the value itself.
void JsonWriter::begin_value() {
  impl_->writer.RawValue("", 0, rapidjson::kStringType);
}

JsonWriter& JsonWriter::name(std::string_view text) {
  this->text(text);
  return *this;
}

namespace {

constexpr std::array<bool, 256> escaped_characters() {
  std::array<bool, 256> escaped{};
  for (std::size_t c = 0; c < 0x20; ++c) escaped[c] = true;
  escaped['"'] = escaped['\\'] = true;
  return escaped;
}

// A table is faster than comparisons, and nearly all that is sent passes here.
constexpr std::array<bool, 256> kEscaped = escaped_characters();

bool needs_escape(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return kEscaped[static_cast<unsigned char>(c)];
  });
}

}  // namespace

void JsonWriter::begin_text() {
  begin_value();
  json_ += '"';
}

// Copies text without escapes, which is nearly all of it.  RapidJSON would
// spend three times as many instructions.
void JsonWriter::text(std::string_view text) {
  if (needs_escape(text)) {
    impl_->writer.String(text.data(), static_cast<SizeType>(text.size()));
  } else {
    begin_text();
    add_plain(text);
    end_text();
  }
}

void JsonWriter::number(std::int64_t number) { json({Digits(number)}); }

void JsonWriter::boolean(bool value) { impl_->writer.Bool(value); }

void JsonWriter::json(Pieces pieces) {
  begin_value();
  for (const std::string_view piece : pieces) json_ += piece;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
