// Keys in PEM, for what `aws login` keeps.
#ifndef DDBMUTEX_TESTS_SUPPORT_LOGIN_KIT_HPP
#define DDBMUTEX_TESTS_SUPPORT_LOGIN_KIT_HPP

#include <string>

namespace tests {

// A new private key of that curve, as AWS's tools write it (SEC 1).
std::string pem_of(const char* curve);

std::string rsa_pem();

// Its public half.
std::string public_pem(const std::string& pem);

// The same with a password.
std::string locked_pem(const std::string& pem);

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_LOGIN_KIT_HPP
