// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Many locks on one Table: several threads of several processes transfer money
// between accounts at once, and none is lost.
//
//   transfers TABLE DIRECTORY COUNT
//
// DIRECTORY contains the accounts 0 to 9, each a file with a balance.  A
// transfer locks only the two accounts that it changes; transfers between
// others go on meanwhile.  Its two mutexes exist only as long as it runs.  A
// mutex that is not locked costs only memory: the connections and threads
// belong to the Table that all mutexes share.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddbmutex.hpp"

namespace {

constexpr int kThreads = 4;
constexpr int kAccounts = 10;

struct Bank {
  std::shared_ptr<ddbmutex::Table> table;
  std::string directory;
};

std::string file_of(const Bank& bank, int account) {
  return bank.directory + "/" + std::to_string(account);
}

long balance(const Bank& bank, int account) {
  long amount = 0;
  if (!(std::ifstream(file_of(bank, account)) >> amount)) {
    throw std::runtime_error("cannot read " + file_of(bank, account));
  }
  return amount;
}

void set_balance(const Bank& bank, int account, long amount) {
  std::ofstream file(file_of(bank, account));
  file << amount << std::flush;
  if (!file) throw std::runtime_error("cannot write " + file_of(bank, account));
}

void transfer(const Bank& bank, int from, int to) {
  ddbmutex::Options options;
  options.table = bank.table;
  ddbmutex::DdbMutex from_mutex("account-" + std::to_string(from), options);
  ddbmutex::DdbMutex to_mutex("account-" + std::to_string(to), options);
  // Both or none, so that two transfers never wait for each other forever.
  std::scoped_lock both(from_mutex, to_mutex);
  const long amount = std::min(balance(bank, from), 1L);
  set_balance(bank, from, balance(bank, from) - amount);
  set_balance(bank, to, balance(bank, to) + amount);
}

void transfer_at_random(const Bank& bank, int count) {
  std::minstd_rand random(std::random_device{}());
  std::uniform_int_distribution<int> any(0, kAccounts - 1);
  std::uniform_int_distribution<int> another(1, kAccounts - 1);
  for (int i = 0; i < count; ++i) {
    const int from = any(random);
    transfer(bank, from, (from + another(random)) % kAccounts);
  }
}

void print(const ddbmutex::Stats& sent) {
  std::printf("sent: PutItem %llu, DeleteItem %llu, all %llu\n",
              static_cast<unsigned long long>(sent.put_item),
              static_cast<unsigned long long>(sent.delete_item),
              static_cast<unsigned long long>(sent.requests()));
}

void run(const char* table, const char* directory, int count) {
  ddbmutex::TableOptions options;
  options.name = table;
  const Bank bank{std::make_shared<ddbmutex::Table>(options), directory};
  std::vector<std::future<void>> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(std::async(std::launch::async, transfer_at_random,
                                 std::cref(bank), count));
  }
  for (auto& thread : threads) thread.get();  // Rethrows what the thread threw.
  print(bank.table->stats());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: transfers TABLE DIRECTORY COUNT\n");
    return 2;
  }
  try {
    run(argv[1], argv[2], atoi(argv[3]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "transfers: %s\n", error.what());
    return 1;
  }
}
