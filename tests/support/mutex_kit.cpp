#include "tests/support/mutex_kit.hpp"

#include <algorithm>
#include <ctime>
#include <stdexcept>
#include <utility>

#include "ddbmutex/dynamodb/answer.hpp"

namespace tests {

// --- Tables and mutexes ----------------------------------------------------

ddbmutex::TableOptions table_options(const std::string& url) {
  ddbmutex::TableOptions options;
  options.endpoint = url;
  options.region = "us-east-1";
  options.credentials = {"AKIDEXAMPLE", "secret", ""};
  return options;
}

ddbmutex::TableOptions table_options(const Engine& engine) {
  ddbmutex::TableOptions options = table_options(engine.url());
  options.name = engine.table();
  options.region = engine.region();
  if (const auto keys = engine.credentials()) {
    options.credentials = {keys->access_key_id, keys->secret_access_key,
                           keys->session_token};
  }
  return options;
}

ddbmutex::TableOptions table_options(const Gate& gate) {
  ddbmutex::TableOptions options = table_options(gate.engine());
  options.endpoint = gate.server().url();
  return options;
}

ddbmutex::TableOptions table_options(const ScriptedServer& server) {
  return table_options(server.url());
}

std::shared_ptr<ddbmutex::Table> new_table(
    const ddbmutex::TableOptions& options) {
  return std::make_shared<ddbmutex::Table>(options);
}

std::shared_ptr<ddbmutex::Table> with_clock(
    std::shared_ptr<ddbmutex::Table> table) {
  table->inspect(kAsksTheTime);
  return table;
}

ddbmutex::Options on_table(std::shared_ptr<ddbmutex::Table> table,
                           std::chrono::milliseconds ttl) {
  ddbmutex::Options options;
  options.table = std::move(table);
  options.ttl = ttl;
  options.request_timeout = ttl * 2 / 5;
  return options;
}

std::string fresh_name() { return ddbmutex::lock::fresh_uuid(); }

Rivals::Rivals(EngineKind kind)
    : engine(Engine::running(kind)),
      ours(name, on_table(table_at(engine))),
      theirs(name, on_table(table_at(engine))) {}

Rivals::~Rivals() = default;

// --- Rows, past the library ------------------------------------------------

std::string place_in(const Engine& engine, const char* item_or_key,
                     const std::string& name) {
  return R"({"TableName":")" + engine.table() + R"(",")" + item_or_key +
         R"(":{"name":{"S":"ddblock-)" + name + R"("})";
}

std::optional<ddbmutex::dynamodb::Item> item_of(Engine& engine,
                                                const std::string& name) {
  using namespace ddbmutex::dynamodb;
  auto http = engine.call(
      "GetItem", place_in(engine, "Key", name) + R"(},"ConsistentRead":true})");
  if (http.status != 200) throw std::runtime_error("GetItem: " + http.body);
  return read_answer(Action::get_item, std::move(http), {}).item;
}

ddbmutex::lock::Row row_of(Engine& engine, const std::string& name) {
  const auto item = item_of(engine, name);
  return item ? ddbmutex::lock::read_row(*item) : ddbmutex::lock::Row{};
}

std::string raw_row(Engine& engine, const std::string& name) {
  auto item = item_of(engine, name);
  if (!item) return "";
  std::sort(item->begin(), item->end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string text;
  for (const auto& attribute : *item) {
    text += attribute.name + " " +
            std::to_string(static_cast<int>(attribute.type)) + " " +
            attribute.value + "\n";
  }
  return text;
}

bool is_free(Engine& engine, const std::string& name) {
  return row_of(engine, name).kind == ddbmutex::lock::Row::Kind::absent;
}

void write_row(Engine& engine, const std::string& name,
               const std::string& attributes) {
  engine.must_call("PutItem",
                   place_in(engine, "Item", name) + "," + attributes + "}}");
}

void delete_row(Engine& engine, const std::string& name) {
  engine.must_call("DeleteItem", place_in(engine, "Key", name) + "}}");
}

std::chrono::nanoseconds calendar() {
  return std::chrono::system_clock::now().time_since_epoch();
}

std::string record(const std::string& uuid, std::chrono::nanoseconds expires,
                   std::chrono::milliseconds lease) {
  return R"("uuid":{"S":")" + uuid + R"("},"expires":{"N":")" +
         std::to_string(expires.count()) + R"("},"lease":{"N":")" +
         std::to_string(lease.count()) + R"("},"owner":{"S":"elsewhere:7"})";
}

std::string live_record() {
  return record("theirs", calendar() + std::chrono::hours(1));
}

std::string record_without_lease(std::chrono::nanoseconds expires) {
  return R"("uuid":{"S":"u"},"expires":{"N":")" +
         std::to_string(expires.count()) + "\"}";
}

// --- Replies of a service that is no engine --------------------------------

Reply failure(int status, const std::string& code, const std::string& more) {
  return Reply::error(status, R"({"__type":"com.amazon.coral.service#)" + code +
                                  R"(","message":"as the test wants")" + more +
                                  "}");
}

Reply server_failure() { return failure(500, "InternalServerError"); }

Reply hanging() {
  Reply reply;
  reply.hangs = true;
  return reply;
}

Reply refusal(const std::string& attributes) {
  return failure(400, "ConditionalCheckFailedException",
                 R"(,"Item":{"name":{"S":"ddblock-x"},)" + attributes + "}");
}

Reply found(const std::string& attributes) {
  return Reply::ok(R"({"Item":{"name":{"S":"ddblock-x"},)" + attributes + "}}");
}

Reply held_by_another(const SeenRequest& request) {
  return action_of(request) == "GetItem" ? found(live_record())
                                         : refusal(live_record());
}

std::string http_date(std::chrono::seconds ahead) {
  const std::time_t when = std::time(nullptr) + ahead.count();
  std::tm utc{};
  gmtime_r(&when, &utc);
  char text[64];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return text;
}

// --- Errors ----------------------------------------------------------------

std::optional<ddbmutex::Error> error_of(
    ddbmutex::sigv4::FunctionRef<void()> call) {
  try {
    call();
  } catch (const ddbmutex::Error& error) {
    return error;
  }
  return std::nullopt;
}

std::string thrown_by(ddbmutex::sigv4::FunctionRef<void()> call) {
  const auto error = error_of(call);
  return error ? error->code().message() : "none";
}

std::string words(ddbmutex::Errc code) {
  return make_error_code(code).message();
}

// --- Threads ---------------------------------------------------------------

Told::Told() = default;
Told::~Told() = default;

void Told::add(std::string what) {
  const std::lock_guard<std::mutex> guard(mutex_);
  all_.push_back(std::move(what));
  changed_.notify_all();
}

std::string Told::text() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::string text;
  for (const std::string& what : all_) text += (text.empty() ? "" : " ") + what;
  return text;
}

bool Told::wait_for(std::size_t count) const {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, kPlenty, [&] { return all_.size() >= count; });
}

Event::Event() = default;
Event::~Event() = default;

void Event::set() {
  const std::lock_guard<std::mutex> guard(mutex_);
  set_ = true;
  changed_.notify_all();
}

bool Event::is_set() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return set_;
}

bool Event::wait() const {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, kPlenty, [&] { return set_; });
}

}  // namespace tests
