// ddbmutex/queue: the threads of one process, first come, first served.
#include <boost/test/unit_test.hpp>
#include <deque>
#include <thread>

#include "ddbmutex/queue.hpp"

using namespace ddbmutex;
using lock::Queue;
using lock::Waits;
using Entry = Queue::Entry;

namespace {

struct Caller {
  sigv4::Waker waker;
  Queue::Waiter waiter{waker};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(queue)

BOOST_AUTO_TEST_CASE(first_has_the_turn_and_others_stand_in_line) {
  Queue queue;
  Caller first, second, third;
  BOOST_CHECK(queue.enter(first.waiter, true) == Entry::turn);
  BOOST_CHECK(queue.enter(second.waiter, true) == Entry::line);
  BOOST_CHECK(queue.enter(third.waiter, true) == Entry::line);
  BOOST_TEST(queue.has_turn(first.waiter));

  queue.leave(first.waiter);
  BOOST_TEST(queue.has_turn(second.waiter));
  BOOST_TEST(second.waker.woken());
  BOOST_TEST(!queue.has_turn(third.waiter));
  BOOST_TEST(!third.waker.woken());

  queue.leave(second.waiter);
  BOOST_TEST(queue.has_turn(third.waiter));
  queue.leave(third.waiter);
  BOOST_CHECK(queue.enter(first.waiter, false) == Entry::turn);
}

BOOST_AUTO_TEST_CASE(who_will_not_wait_is_refused_while_another_has_the_turn) {
  Queue queue;
  Caller first, second;
  queue.enter(first.waiter, true);
  BOOST_CHECK(queue.enter(second.waiter, false) == Entry::refused);
  queue.leave(first.waiter);
  BOOST_TEST(!second.waker.woken());
  BOOST_CHECK(queue.enter(second.waiter, false) == Entry::turn);
}

BOOST_AUTO_TEST_CASE(turn_that_was_kept_passes_only_when_told) {
  Queue queue;
  Caller first, second;
  queue.enter(first.waiter, true);
  BOOST_TEST(!queue.kept_by_this_thread());
  BOOST_TEST(queue.keep(first.waiter));
  BOOST_TEST(queue.kept_by_this_thread());
  std::thread([&] { BOOST_TEST(!queue.kept_by_this_thread()); }).join();
  BOOST_CHECK(queue.enter(second.waiter, true) == Entry::line);
  BOOST_TEST(!queue.has_turn(second.waiter));

  std::thread([&] { queue.pass(); }).join();
  BOOST_TEST(!queue.kept_by_this_thread());
  BOOST_TEST(queue.has_turn(second.waiter));
}

BOOST_AUTO_TEST_CASE(who_leaves_the_line_is_passed_over) {
  Queue queue;
  Caller first, second, third;
  queue.enter(first.waiter, true);
  queue.enter(second.waiter, true);
  queue.enter(third.waiter, true);
  queue.leave(second.waiter);
  queue.leave(first.waiter);
  BOOST_TEST(!queue.has_turn(second.waiter));
  BOOST_TEST(queue.has_turn(third.waiter));
}

BOOST_AUTO_TEST_CASE(cancel_is_for_those_who_wait_now) {
  Queue queue;
  Caller holder, trying, waiting, later;
  queue.enter(trying.waiter, true);
  queue.enter(waiting.waiter, true);
  queue.cancel();
  BOOST_TEST(queue.cancelled(trying.waiter));
  BOOST_TEST(queue.cancelled(waiting.waiter));
  BOOST_TEST(trying.waker.woken());
  BOOST_TEST(waiting.waker.woken());
  queue.leave(trying.waiter);
  queue.leave(waiting.waiter);
  BOOST_CHECK(queue.enter(later.waiter, true) == Entry::turn);
  BOOST_TEST(!queue.cancelled(later.waiter));
}

BOOST_AUTO_TEST_CASE(ended_queue_lets_nobody_in_nor_keep) {
  Queue queue;
  Caller trying, waiting, later;
  queue.enter(trying.waiter, true);
  queue.enter(waiting.waiter, true);
  queue.end();
  BOOST_TEST(queue.cancelled(trying.waiter));
  BOOST_TEST(!queue.keep(trying.waiter));
  queue.pass();  // Of nobody: the turn is still that of the first.
  BOOST_TEST(!queue.has_turn(waiting.waiter));
  queue.leave(waiting.waiter);
  queue.leave(trying.waiter);
  BOOST_CHECK(queue.enter(later.waiter, true) == Entry::refused);
}

BOOST_AUTO_TEST_CASE(wakers_are_lent_again_asleep) {
  Waits waits;
  sigv4::Waker* first = waits.begin();
  BOOST_REQUIRE(first != nullptr);
  first->wake();
  waits.end(first);
  sigv4::Waker* again = waits.begin();
  BOOST_TEST(again == first);
  BOOST_TEST(!again->woken());
  waits.end(again);
}

BOOST_AUTO_TEST_CASE(more_wakers_than_are_kept_can_be_lent) {
  Waits waits;
  std::deque<sigv4::Waker*> lent;
  for (int i = 0; i < 20; ++i) lent.push_back(waits.begin());
  while (!lent.empty()) {  // Neither the last nor the first lent first.
    const std::size_t middle = lent.size() / 2;
    waits.end(lent[middle]);
    lent.erase(lent.begin() + static_cast<std::ptrdiff_t>(middle));
  }
  BOOST_TEST(waits.begin() != nullptr);
}

BOOST_AUTO_TEST_CASE(closing_wakes_who_waits_and_lets_nobody_begin) {
  Waits waits;
  sigv4::Waker* waker = waits.begin();
  BOOST_TEST(!waits.closed());
  waits.close();
  BOOST_TEST(waits.closed());
  BOOST_TEST(waker->woken());
  BOOST_TEST(waits.begin() == nullptr);
  waits.end(waker);
}

BOOST_AUTO_TEST_CASE(threads_have_numbers_that_are_not_used_again) {
  const std::uint64_t mine = lock::this_thread();
  BOOST_TEST(mine == lock::this_thread());
  std::uint64_t first = 0, second = 0;
  std::thread([&] { first = lock::this_thread(); }).join();
  std::thread([&] { second = lock::this_thread(); }).join();
  BOOST_TEST(first != mine);
  BOOST_TEST(second > first);
}

BOOST_AUTO_TEST_SUITE_END()
