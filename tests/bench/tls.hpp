// TLS for the server of the bench.
//
//   ConstantServer server(tls_of(certificate_in(directory)));
//
// Its clients find the certificate by AWS_CA_BUNDLE.
#ifndef DDBMUTEX_TESTS_BENCH_TLS_HPP
#define DDBMUTEX_TESTS_BENCH_TLS_HPP

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "tests/bench/constant_server.hpp"
#include "tests/bench/contest.hpp"

namespace bench {

// A PEM file with a new key and the certificate of 127.0.0.1 that it signs.
inline std::string certificate_in(const std::string& directory) {
  const std::string path = directory + "/server.pem";
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
      "-nodes -days 2 -subj /CN=127.0.0.1 "
      "-addext subjectAltName=IP:127.0.0.1 -keyout '" +
      path + "' -out '" + path + ".cert' 2>/dev/null && cat '" + path +
      ".cert' >>'" + path + "'";
  if (std::system(command.c_str()) != 0)
    unsound("openssl makes no certificate");
  setenv("AWS_CA_BUNDLE", path.c_str(), 1);
  return path;
}

class TlsConnection : public ConstantConnection {
 public:
  TlsConnection(int fd, Tally& tally, SSL_CTX* context)
      : ConstantConnection(fd, tally), tls_(SSL_new(context)) {
    SSL_set_fd(tls_, fd);
    SSL_accept(tls_);  // If it fails, so does the first look for a request.
  }
  ~TlsConnection() override { SSL_free(tls_); }

 protected:
  // A client's request is one record, which leaves nothing behind that poll()
  // would not see.
  ssize_t receive(char* to, std::size_t size) override {
    return SSL_read(tls_, to, static_cast<int>(size));
  }
  bool send_all(std::string_view bytes) override {
    return SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size())) ==
           static_cast<int>(bytes.size());
  }

 private:
  SSL* const tls_;
};

inline Connect tls_of(const std::string& certificate) {
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()),
                                         SSL_CTX_free);
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) !=
          1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), certificate.c_str(),
                                  SSL_FILETYPE_PEM) != 1) {
    unsound("no certificate in " + certificate);
  }
  return [context](int fd, Tally& tally) {
    return std::make_unique<TlsConnection>(fd, tally, context.get());
  };
}

}  // namespace bench

#endif  // DDBMUTEX_TESTS_BENCH_TLS_HPP
