// Takes a named lock, says so, and releases it: one PutItem, one DeleteItem.
//
//   take_and_release TABLE NAME
//
// The table (partition key: the string `name`) and the keys are found as AWS's
// own tools find them: in the environment (AWS_REGION, AWS_ACCESS_KEY_ID and so
// on), else in the profile.  Exit status: 0, 1 if somebody
// else holds the lock, 2 if something went wrong.
//
// This is the protocol by hand, below the public class: a lease that is not
// renewed, and a lock that is not waited for.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "dynamodb/client.hpp"
#include "dynamodb/endpoint.hpp"
#include "dynamodb/retry.hpp"
#include "lock/driver.hpp"
#include "lock/protocol.hpp"
#include "sigv4/credentials.hpp"

using namespace ddbmutex;

namespace {

int failure(const char* doing, const lock::Outcome& outcome) {
  std::fprintf(stderr, "%s: %s: %s (request %s)\n", doing,
               name_of(outcome.answer.fault), outcome.answer.message.c_str(),
               outcome.answer.request_id.c_str());
  return 2;
}

int not_taken(const lock::Outcome& outcome, const lock::Lease& lease) {
  if (outcome.verdict == lock::Verdict::busy) {
    const std::string& owner = lease.row().owner;
    std::printf("held by %s\n", owner.empty() ? "another" : owner.c_str());
    return 1;
  }
  if (outcome.verdict == lock::Verdict::bad_record) {
    std::fprintf(stderr, "not a lock: %s\n", lease.row().problem.c_str());
  } else {
    std::fprintf(stderr, "a lock that keeps its row, with a fencing token\n");
  }
  return 2;
}

void print_counts(const dynamodb::Client& client) {
  for (const dynamodb::Action action :
       {dynamodb::Action::put_item, dynamodb::Action::delete_item,
        dynamodb::Action::update_item, dynamodb::Action::get_item}) {
    const auto sent = client.counts().sent[static_cast<std::size_t>(action)];
    std::printf("%s %d\n", name_of(action), static_cast<int>(sent));
  }
}

int take_and_release(dynamodb::Client& client, const std::string& table,
                     const std::string& key) {
  // README: from here
  const std::chrono::milliseconds ttl = std::chrono::seconds(60);
  dynamodb::RetryBudget budget;
  const std::string owner = "process " + std::to_string(getpid());
  lock::Driver driver(client, budget, {{table, key, owner}, ttl / 30});

  lock::Lease lease(lock::fresh_uuid(), ttl);
  lock::Observation observation;
  sigv4::Waker waker;
  const lock::Outcome outcome =
      driver.run(lock::Call::take, lease, observation,
                 BootClock::now() + std::chrono::seconds(5), waker);
  const bool undecided = outcome.verdict == lock::Verdict::again;
  if (outcome.verdict == lock::Verdict::ours) {
    // One host at a time, until lease.claim_end().
  } else if (!undecided) {
    return not_taken(outcome, lease);
  }
  // Undecided: the answer was lost, and the lock may yet be taken.
  const lock::Outcome released =
      driver.run(lock::Call::release, lease, observation,
                 BootClock::now() + std::chrono::seconds(5), waker);
  // README: to here
  if (undecided) return failure("take", outcome);
  if (released.verdict != lock::Verdict::released) {
    return failure("release", released);
  }
  std::printf("taken and released\n");
  print_counts(client);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: take_and_release TABLE NAME\n");
    return 2;
  }
  const dynamodb::Target target = dynamodb::find_target({});
  if (!target.error.empty()) {
    std::fprintf(stderr, "%s\n", target.error.c_str());
    return 2;
  }
  dynamodb::ClientOptions options;
  options.region = target.region;
  options.endpoint = target.endpoint;
  options.credentials = sigv4::usual_keys({});
  dynamodb::Client client(options);
  return take_and_release(client, argv[1], std::string("ddblock-") + argv[2]);
}
