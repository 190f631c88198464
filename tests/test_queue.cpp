// ddbmutex/queue: the threads of one process, first come, first served.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <thread>

#include "ddbmutex/lock/queue.hpp"

using namespace ddbmutex;
using lock::Queue;
using lock::Waits;
using Entry = Queue::Entry;

namespace {

struct Caller {
  sigv4::Waker waker;
  lock::Cancel cancel;
  Queue::Waiter waiter{waker, &cancel};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(queue)

BOOST_AUTO_TEST_CASE(first_has_the_turn_and_others_stand_in_line) {
  Queue queue;
  Caller first, second, third;
  BOOST_CHECK(queue.enter(first.waiter, true) == Entry::turn);
  BOOST_CHECK(queue.enter(second.waiter, true) == Entry::line);
  BOOST_CHECK(queue.enter(third.waiter, true) == Entry::line);
  BOOST_TEST(first.waiter.has_turn());

  queue.leave(first.waiter);
  BOOST_TEST(second.waiter.has_turn());
  BOOST_TEST(second.waker.woken());
  BOOST_TEST(!third.waiter.has_turn());
  BOOST_TEST(!third.waker.woken());

  queue.leave(second.waiter);
  BOOST_TEST(third.waiter.has_turn());
  queue.leave(third.waiter);
  BOOST_CHECK(queue.enter(first.waiter, false) == Entry::turn);
}

BOOST_AUTO_TEST_CASE(turn_that_was_kept_passes_only_when_told) {
  Queue queue;
  Caller first, second;
  queue.enter(first.waiter, true);
  BOOST_TEST(!queue.held_by_this_thread());
  BOOST_TEST(queue.become_holder(first.waiter));
  BOOST_TEST(queue.held_by_this_thread());
  std::thread([&] { BOOST_TEST(!queue.held_by_this_thread()); }).join();
  BOOST_CHECK(queue.enter(second.waiter, true) == Entry::line);
  BOOST_TEST(!second.waiter.has_turn());

  std::thread([&] { queue.pass(); }).join();
  BOOST_TEST(!queue.held_by_this_thread());
  BOOST_TEST(second.waiter.has_turn());
}

BOOST_AUTO_TEST_CASE(what_was_kept_is_handed_to_the_first_who_still_waits) {
  Queue queue;
  std::unique_ptr<Caller> first;  // Another thread's.
  std::thread([&] { first = std::make_unique<Caller>(); }).join();
  Caller cancelled, ended, next, last;
  queue.enter(first->waiter, true);
  BOOST_TEST((queue.heir() == nullptr));
  queue.enter(cancelled.waiter, true);
  queue.cancel();
  queue.become_holder(first->waiter);
  BOOST_TEST(!queue.held_by_this_thread());
  BOOST_TEST((queue.heir() == nullptr));
  for (Caller* one : {&ended, &next, &last}) queue.enter(one->waiter, true);
  ended.cancel.cancel();
  BOOST_TEST((queue.heir() == &next.waiter));

  queue.hand_over(next.waiter);
  BOOST_TEST(next.waiter.has_lock());
  BOOST_TEST(queue.handed_over());
  BOOST_TEST(!next.waiter.has_turn());
  BOOST_TEST(next.waker.woken());
  BOOST_TEST(!last.waiter.has_lock());
  BOOST_TEST(!last.waker.woken());
  BOOST_TEST(queue.held_by_this_thread());
  BOOST_TEST(queue.become_holder(next.waiter));
  BOOST_TEST(!queue.handed_over());
  queue.leave(cancelled.waiter);
  queue.leave(ended.waiter);
  queue.pass();
  BOOST_TEST(last.waiter.has_turn());
}

BOOST_AUTO_TEST_CASE(cancel_is_for_those_who_wait_now) {
  Queue queue;
  Caller holder, trying, waiting, later;
  queue.enter(trying.waiter, true);
  queue.enter(waiting.waiter, true);
  queue.cancel();
  BOOST_TEST(trying.waiter.cancelled());
  BOOST_TEST(waiting.waiter.cancelled());
  BOOST_TEST(trying.waker.woken());
  BOOST_TEST(waiting.waker.woken());
  queue.leave(trying.waiter);
  queue.leave(waiting.waiter);
  BOOST_CHECK(queue.enter(later.waiter, true) == Entry::turn);
  BOOST_TEST(!later.waiter.cancelled());
}

BOOST_AUTO_TEST_CASE(closing_wakes_who_waits_and_lets_nobody_begin) {
  Waits waits;
  const Waits::One first(waits), second(waits);
  BOOST_TEST(!waits.closed());
  waits.close();
  BOOST_TEST(waits.closed());
  BOOST_TEST(first.waker()->woken());
  BOOST_TEST(second.waker()->woken());
  const Waits::One late(waits);
  BOOST_TEST(late.waker() == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
