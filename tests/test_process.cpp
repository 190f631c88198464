// sigv4/process: what a forked child must know of its parent's state.
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <functional>

#include "sigv4/process.hpp"
#include "sigv4/system.hpp"

using namespace ddbmutex;
using sigv4::PerProcess;
using sigv4::this_process;

namespace {

// Whether `check` is true in a child of this process.
bool in_a_child(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = -1;
  while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct Counted {
  explicit Counted(int the_value) : value(the_value) { ++made; }
  ~Counted() { ++destroyed; }
  const int value;
  static int made, destroyed;
};
int Counted::made = 0;
int Counted::destroyed = 0;

}  // namespace

BOOST_AUTO_TEST_SUITE(process)

BOOST_AUTO_TEST_CASE(every_process_has_another_number_and_keeps_it) {
  const std::uint64_t parent = this_process();
  BOOST_TEST(parent == this_process());
  BOOST_TEST(in_a_child([parent] {
    const std::uint64_t child = this_process();
    return child != parent && child == this_process() &&
           in_a_child([parent, child] {
             return this_process() != parent && this_process() != child;
           });
  }));
  BOOST_TEST(parent == this_process());
}

BOOST_AUTO_TEST_CASE(child_sees_nothing_of_its_parent_and_destroys_nothing) {
  Counted::made = Counted::destroyed = 0;
  {
    PerProcess<Counted> state;
    BOOST_TEST(state.peek() == nullptr);
    Counted& mine = state.get(1);
    BOOST_TEST(&mine == state.peek());
    BOOST_TEST(&mine == &state.get(2));
    BOOST_TEST(in_a_child([&] {
      return state.peek() == nullptr && state.get(3).value == 3 &&
             state.get(4).value == 3 && Counted::destroyed == 0;
    }));
    BOOST_TEST(state.peek()->value == 1);
  }
  BOOST_TEST(Counted::made == 1);
  BOOST_TEST(Counted::destroyed == 1);
}

BOOST_AUTO_TEST_SUITE_END()
