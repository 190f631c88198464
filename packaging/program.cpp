// Whether a program is linked with the library and runs, on a machine that has
// no DynamoDB: it asks for a lock where nobody listens, and is told so.
#include <chrono>
#include <cstdio>
#include <memory>
#include <system_error>

#include "ddbmutex.hpp"

int main() {
  ddbmutex::TableOptions nowhere;
  nowhere.endpoint = "http://127.0.0.1:9";
  nowhere.region = "us-east-1";
  nowhere.credentials = {"id", "secret", ""};

  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>(nowhere);
  options.patience = std::chrono::milliseconds(0);
  ddbmutex::DdbMutex mutex("job", options);
  std::error_code error;
  mutex.lock(error);
  std::printf("%s\n", mutex.last_error().c_str());
  return error == ddbmutex::Errc::unreachable ? 0 : 1;
}
