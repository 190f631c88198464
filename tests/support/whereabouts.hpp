// Where the locks of a test are: for this process, and for programs of ours
// that are told by their environment.
#ifndef DDBMUTEX_TESTS_SUPPORT_WHEREABOUTS_HPP
#define DDBMUTEX_TESTS_SUPPORT_WHEREABOUTS_HPP

#include <memory>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/process.hpp"

namespace tests {

struct Whereabouts {
  std::string url;
  std::string table;
  std::string region = "us-east-1";
  ddbmutex::Credentials keys = {"AKIDEXAMPLE", "secret", ""};
};

Whereabouts at(const Engine& engine);

// For a program that is told the table otherwise.
std::vector<std::string> environment_of(const Whereabouts& where);

std::shared_ptr<ddbmutex::Table> table_at(const Whereabouts& where);

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_WHEREABOUTS_HPP
