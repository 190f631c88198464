// Keys from a provider of the AWS SDK for C++, for programs that have it anyway
// and want the lock to use what the rest of the program uses.
//
//   flags=$(pkg-config --cflags --libs ddbmutex)
//   c++ -std=c++17 -o report aws_sdk.cpp $flags -laws-cpp-sdk-core
//
// Never run: Debian has no package of the SDK.  It is compiled against what the
// SDK's headers declare of the names below.
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
#include <utility>

#include "ddbmutex.hpp"

namespace {

// For TableOptions::credentials_source.  It is called on a thread of the
// library's own, one call at a time: before the keys run out, and each minute
// if they do not say when.  It may take its time, since the old keys serve
// meanwhile.
std::function<std::optional<ddbmutex::Credentials>()> keys_of(
    std::shared_ptr<Aws::Auth::AWSCredentialsProvider> provider) {
  return [provider =
              std::move(provider)]() -> std::optional<ddbmutex::Credentials> {
    const Aws::Auth::AWSCredentials found = provider->GetAWSCredentials();
    if (found.IsEmpty()) return std::nullopt;
    ddbmutex::Credentials keys;
    // c_str(): an SDK with memory management of its own has its own strings.
    keys.access_key_id = found.GetAWSAccessKeyId().c_str();
    keys.secret_access_key = found.GetAWSSecretKey().c_str();
    keys.session_token = found.GetSessionToken().c_str();
    // The SDK's word for never is the last time point that there is.
    const auto ends = found.GetExpiration().UnderlyingTimestamp();
    if (ends != std::chrono::system_clock::time_point::max()) {
      keys.expires = ends;
    }
    return keys;
  };
}

void report() {
  ddbmutex::TableOptions where;
  where.credentials_source = keys_of(
      std::make_shared<Aws::Auth::DefaultAWSCredentialsProviderChain>());
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
  try {
    report();  // The Table ends in there: it asks the SDK for as long as it is.
  } catch (const std::exception& error) {
    std::fprintf(stderr, "report: %s\n", error.what());
    status = 1;
  }
  Aws::ShutdownAPI(sdk);
  return status;
}
