// A home directory and an environment whose services are stand-ins (aws.hpp),
// and what a source of keys says there.
//
//   Aws aws;
//   Site site(aws);
//   site.write(".aws/credentials", "[default]\n" + pair_of("d"));
//   BOOST_TEST(said(asked(site.chain())) == "d-id d-secret ");
#ifndef DDBMUTEX_TESTS_SUPPORT_CHAIN_KIT_HPP
#define DDBMUTEX_TESTS_SUPPORT_CHAIN_KIT_HPP

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>

#include "extras/parts.hpp"
#include "sigv4/keys/credentials.hpp"
#include "sigv4/keys/from_all.hpp"
#include "tests/support/asking.hpp"
#include "tests/support/aws.hpp"
#include "tests/support/home.hpp"

namespace tests {

// A home whose files nobody else may read.
struct Nest : Home {
  Nest() {
    variables["AWS_EC2_METADATA_DISABLED"] = "true";
    variables["AWS_REGION"] = "eu-west-1";
  }

  std::string write(const std::string& name, const std::string& text,
                    mode_t mode = 0600) const {
    std::filesystem::create_directories((root / name).parent_path());
    const std::string path = Home::write(name, text);
    BOOST_TEST_REQUIRE(chmod(path.c_str(), mode) == 0);
    return path;
  }
  // As texts have it.
  std::string quoted(const std::string& name) const {
    return ddbmutex::sigv4::in_quotes((root / name).string());
  }
  ddbmutex::sigv4::KeySourcePtr chain(
      const ddbmutex::sigv4::ChainOptions& options = {}) const {
    return ddbmutex::sigv4::chain_keys(options, ddbmutex::sigv4::all_parts(),
                                       environment());
  }
};

struct Site : Nest {
  explicit Site(const Aws& aws) {
    variables["AWS_ENDPOINT_URL_STS"] = aws.url("sts");
    variables["AWS_CA_BUNDLE"] = aws.ca_file();
  }
};

// A section with a whole pair that begins with `who`.
inline std::string pair_of(const std::string& who) {
  return "aws_access_key_id = " + who + "-id\naws_secret_access_key = " + who +
         "-secret\n";
}

inline ddbmutex::sigv4::KeyOutcome asked(
    const ddbmutex::sigv4::KeySourcePtr& source) {
  return asked(*source);
}

inline std::string state_of(const ddbmutex::sigv4::KeyOutcome& outcome) {
  constexpr const char* kWords[] = {"found", "none", "failed", "broken"};
  return kWords[static_cast<int>(outcome.state)];
}

inline std::string key_of(const ddbmutex::sigv4::KeyOutcome& outcome) {
  BOOST_TEST(state_of(outcome) == "found", said(outcome));
  return outcome.keys.access_key_id;
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_CHAIN_KIT_HPP
