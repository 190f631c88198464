// Tables of an engine whose key a test chooses.
//
//   const KeyedTable keyed(engine, {{"uuid", "S"}});
//   DdbMutex mutex("x", on_table(keyed.new_table()));
#ifndef DDBMUTEX_TESTS_SUPPORT_KEYED_TABLE_HPP
#define DDBMUTEX_TESTS_SUPPORT_KEYED_TABLE_HPP

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/mutex_kit.hpp"

namespace tests {

inline std::shared_ptr<ddbmutex::Table> table_at_name(const Engine& engine,
                                                      const std::string& name) {
  ddbmutex::TableOptions options = table_options(engine);
  options.name = name;
  return std::make_shared<ddbmutex::Table>(options);
}

// A table with that partition key and, if there is a second part, sort key.
// Deleted in the end.
class KeyedTable {
 public:
  KeyedTable(Engine& engine, const TableKey& key)
      : engine_(engine), name_(engine.create_table(key)) {}
  ~KeyedTable() { engine_.delete_table(name_); }
  KeyedTable(const KeyedTable&) = delete;
  KeyedTable& operator=(const KeyedTable&) = delete;

  const std::string& name() const { return name_; }
  // To its locks as a process of its own.
  std::shared_ptr<ddbmutex::Table> new_table() const {
    return table_at_name(engine_, name_);
  }
  // Its items as JSON, in some order.
  std::string items() const { return engine_.must_call("Scan", about("}")); }

  void remove() {
    engine_.delete_table(name_);
    BOOST_TEST_REQUIRE(eventually([&] {
      return engine_.call("DescribeTable", about("}")).status == 400;
    }));
  }
  void make(const TableKey& key) { engine_.create_table_named(name_, key); }

 private:
  std::string about(const std::string& more) const {
    return R"({"TableName":")" + name_ + '"' + more;
  }

  Engine& engine_;
  const std::string name_;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_KEYED_TABLE_HPP
