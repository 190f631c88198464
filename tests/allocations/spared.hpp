// The functions of OpenSSL in which no allocation fails, because libcurl or
// OpenSSL would then leak, crash or abort, without any fault of ours.  Each is
// defined here, in front of OpenSSL's own, which it calls.  What they allocate
// still counts as memory that may leak: the judge is as strict as elsewhere.
//
// Include it in one source file only.  Add a function only after its defect was
// seen in a program that calls libcurl alone.
#ifndef DDBMUTEX_TESTS_ALLOCATIONS_SPARED_HPP
#define DDBMUTEX_TESTS_ALLOCATIONS_SPARED_HPP

#include "tests/allocations/allocator.hpp"

#ifdef DDBMUTEX_TESTS_FAIL_MALLOC

#include <dlfcn.h>
#include <openssl/bio.h>
#include <openssl/conf.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

namespace allocations {

// The function of that name and type that this program would call if it did
// not define one of its own.
template <class Function>
Function* next(Function* /*type*/, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace allocations

extern "C" {

// If it fails, libcurl forgets the BIO that it was to print to (seen in
// x509_name_oneline() of 8.14.1, not in 8.22.0).
int X509_NAME_print_ex(BIO* out, const X509_NAME* name, int indent,
                       unsigned long flags) {
  const allocations::Counting spared(false);
  return allocations::next(X509_NAME_print_ex, "X509_NAME_print_ex")(
      out, name, indent, flags);
}

// If there is no BIO to print a certificate's issuer to, libcurl forgets the
// subject that it has printed (seen in Curl_oss_check_peer_cert() of 8.14.1).
BIO* BIO_new(const BIO_METHOD* method) {
  const auto next = allocations::next(BIO_new, "BIO_new");
  if (method != BIO_s_mem()) return next(method);
  const allocations::Counting spared(false);
  return next(method);
}

// It cannot report that it has failed.  The connection has no record layer
// then, and SSL_set0_rbio() crashes (seen in OpenSSL 3.5.9 and 3.6.5).
void SSL_set_connect_state(SSL* connection) {
  const allocations::Counting spared(false);
  allocations::next(SSL_set_connect_state, "SSL_set_connect_state")(connection);
}

// A thread that reads the list of modules for the first time, and has no memory
// to note that it does, aborts the process (seen in OpenSSL 3.5.9).
int CONF_modules_load(const CONF* conf, const char* program,
                      unsigned long flags) {
  const allocations::Counting spared(false);
  return allocations::next(CONF_modules_load, "CONF_modules_load")(
      conf, program, flags);
}

}  // extern "C"

#endif

#endif  // DDBMUTEX_TESTS_ALLOCATIONS_SPARED_HPP
