// A table as a whole: what it is like, its making, its end.
//
// Each call blocks.  Passing faults are tried again, and slow changes waited
// for, until `deadline` or until `waker` (may be null) is woken; the answer
// then tells the last passing fault, else timed_out or cancelled.
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_TABLE_SETUP_HPP
#define DDBMUTEX_TABLE_SETUP_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../sigv4/boot_clock.hpp"
#include "../sigv4/http.hpp"
#include "answer.hpp"
#include "client.hpp"
#include "retry.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// Of tables whose items are found by one string, or by two.
struct TableSchema {
  std::string table;
  std::string key;         // The partition key.
  std::string sort_key{};  // Empty: there is none.
  // The attribute by which DynamoDB deletes what is over; empty: leave that
  // as it is.
  std::string ttl{};
  // Whether a table that is there may have eventually consistent replicas.
  bool allow_replicas = false;
  // Capacity to provision, in units a second; nothing: paid by request.
  struct Throughput {
    std::uint64_t read_units;
    std::uint64_t write_units;
  };
  std::optional<Throughput> throughput{};
  std::vector<std::pair<std::string, std::string>> tags{};
};

// Whether items are found by the string `key` and, unless that is empty, the
// string `sort_key`, and nothing else.
bool is_keyed_by(const TableDescription& table, const std::string& key,
                 const std::string& sort_key);

// One answer: the table, or no_table.
Answer describe_table(Client& client, RetryBudget& budget,
                      const std::string& table, BootTime deadline,
                      sigv4::Waker* waker = nullptr);

// Makes a table as the schema says unless there is one of that name, waits
// until it is ACTIVE and then switches on its TTL, where the engine has such a
// thing.  Without a fault the answer has the table, which is to be looked at:
// one that was there may have another key, or replicas; nothing of it is
// changed then, unless the schema allows them.  Does not send CreateTable where
// the table can be described.
//
// A fault with action update_time_to_live comes after all the rest: the table
// can be used, but DynamoDB will not delete what is over.
Answer create_table(Client& client, RetryBudget& budget,
                    const TableSchema& schema, BootTime deadline,
                    sigv4::Waker* waker = nullptr);

// Deletes it with all it holds and waits until it is gone.  No such table is no
// fault.  A later table of its name is left alone, where the engine's answers
// tell the two apart.
Answer delete_table(Client& client, RetryBudget& budget,
                    const std::string& table, BootTime deadline,
                    sigv4::Waker* waker = nullptr);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_TABLE_SETUP_HPP
