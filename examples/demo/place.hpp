// The DynamoDB that the demo runs on, and a table of its own there.
#ifndef DDBMUTEX_EXAMPLES_DEMO_PLACE_HPP
#define DDBMUTEX_EXAMPLES_DEMO_PLACE_HPP

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "examples/demo/process.hpp"

namespace demo {

constexpr char kLockName[] = "demo";

// No endpoint: it and the keys are found as AWS's tools find them.  Else it is
// an engine of ours, which accepts any keys.
ddbmutex::TableOptions table_options(const std::string& table,
                                     const std::string& endpoint);

class Place {
 public:
  // `engine` is the command of a DynamoDB engine that takes --host and --port;
  // it is started on a free port.  No command: the usual places.
  Place(const std::vector<std::string>& engine, const Folder& folder);
  ~Place();  // Deletes the table, if that was not done; stops the engine.

  void create_table();
  // Not if the engine is ours: its tables end with it.  Throws if the table
  // may still be there.
  void delete_table();

  const std::string& endpoint() const { return endpoint_; }
  const std::string& table() const { return table_; }
  std::string described() const;

  ddbmutex::LockInfo inspect_lock();

 private:
  void start(const std::vector<std::string>& engine, const std::string& log);
  bool is_listening(const std::string& log);

  std::optional<Process> engine_;
  std::string endpoint_;
  std::string table_;
  std::unique_ptr<ddbmutex::Table> handle_;
  bool to_delete_ = false;
};

}  // namespace demo

#endif  // DDBMUTEX_EXAMPLES_DEMO_PLACE_HPP
