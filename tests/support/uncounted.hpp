// While one exists, the kernel tells this process nothing of its TCP
// connections, as Linux before 4.1 and some sandboxes do not: the test
// program's own getsockopt() stands before the C library's.
#ifndef DDBMUTEX_TESTS_SUPPORT_UNCOUNTED_HPP
#define DDBMUTEX_TESTS_SUPPORT_UNCOUNTED_HPP

namespace tests {

class Uncounted {
 public:
  Uncounted();
  ~Uncounted();
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_UNCOUNTED_HPP
