// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Keys from a provider of the AWS SDK for C++, for programs that use the SDK
// and want the lock to use the same keys as the rest of the program.
//
//   flags=$(pkg-config --cflags --libs ddbmutex)
//   c++ -std=c++17 -o report aws_sdk.cpp $flags -laws-cpp-sdk-core
//
// Never run, because Debian has no package of the SDK.  It is compiled against
// declarations of the names below, as the SDK's headers have them.
#include <aws/core/Aws.h>
#include <aws/core/auth/AWSCredentials.h>
#include <aws/core/auth/AWSCredentialsProvider.h>
#include <aws/core/auth/AWSCredentialsProviderChain.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "ddbmutex.hpp"

namespace {

// For TableOptions::credentials_source.  A thread of the library calls it, one
// call at a time: before the keys expire, and every minute if they do not say
// when they do.  It may be slow, because the old keys are used meanwhile.
std::function<std::optional<ddbmutex::Credentials>()> keys_of(
    std::shared_ptr<Aws::Auth::AWSCredentialsProvider> provider) {
  return [provider = std::move(provider)] {
    const Aws::Auth::AWSCredentials found = provider->GetAWSCredentials();
    // The provider may have none for a while only, so lock() retries for
    // Options::patience.
    if (found.IsEmpty()) throw std::runtime_error("the SDK has no keys now");
    ddbmutex::Credentials keys;
    // c_str(): an SDK with its own memory management has its own string type.
    keys.access_key_id = found.GetAWSAccessKeyId().c_str();
    keys.secret_access_key = found.GetAWSSecretKey().c_str();
    keys.session_token = found.GetSessionToken().c_str();
    // The SDK says "never" with the last possible time point.
    const auto ends = found.GetExpiration().UnderlyingTimestamp();
    if (ends != std::chrono::system_clock::time_point::max()) {
      keys.expires = ends;
    }
    return keys;
  };
}

void report(std::shared_ptr<Aws::Auth::AWSCredentialsProvider> provider) {
  ddbmutex::TableOptions where;
  where.credentials_source = keys_of(std::move(provider));
  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>(where);

  ddbmutex::DdbMutex mutex("nightly-report", options);
  const std::lock_guard<ddbmutex::DdbMutex> guard(mutex);
  std::puts("page 1");
}

}  // namespace

int main() {
  Aws::SDKOptions sdk;
  Aws::InitAPI(sdk);
  int status = 0;
  std::weak_ptr<Aws::Auth::AWSCredentialsProvider> in_use;
  try {
    auto provider =
        std::make_shared<Aws::Auth::DefaultAWSCredentialsProviderChain>();
    in_use = provider;
    report(std::move(provider));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "report: %s\n", error.what());
    status = 1;
  }
  // A slow call may still be running after the Table is gone.
  while (!in_use.expired()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  Aws::ShutdownAPI(sdk);
  return status;
}
