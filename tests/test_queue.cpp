// ddbmutex/queue: the threads of one process, first come, first served.
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <deque>
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
  BOOST_TEST(!second.waiter.has_turn());

  std::thread([&] { queue.pass(); }).join();
  BOOST_TEST(!queue.kept_by_this_thread());
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
  queue.keep(first->waiter);
  BOOST_TEST(!queue.kept_by_this_thread());
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
  BOOST_TEST(queue.kept_by_this_thread());
  BOOST_TEST(queue.keep(next.waiter));
  BOOST_TEST(!queue.handed_over());
  queue.leave(cancelled.waiter);
  queue.leave(ended.waiter);
  queue.pass();
  BOOST_TEST(last.waiter.has_turn());
}

BOOST_AUTO_TEST_CASE(who_was_handed_what_has_ended_leaves_it) {
  for (const bool passed_before : {false, true}) {
    Queue queue;
    Caller first, next, last;
    queue.enter(first.waiter, true);
    queue.enter(next.waiter, true);
    queue.enter(last.waiter, true);
    queue.keep(first.waiter);
    queue.hand_over(next.waiter);
    queue.end();
    BOOST_TEST(!queue.handed_over());
    BOOST_TEST(last.waiter.cancelled());
    if (passed_before) queue.pass();
    BOOST_TEST(!last.waiter.has_turn());
    BOOST_TEST(!queue.keep(next.waiter));
    queue.leave(next.waiter);
    if (!passed_before) queue.pass();
    BOOST_TEST(last.waiter.has_turn());
    queue.leave(last.waiter);
    queue.cancel();
  }
}

BOOST_AUTO_TEST_CASE(who_leaves_the_line_is_passed_over) {
  Queue queue;
  Caller first, second, third;
  queue.enter(first.waiter, true);
  queue.enter(second.waiter, true);
  queue.enter(third.waiter, true);
  queue.leave(second.waiter);
  queue.leave(first.waiter);
  BOOST_TEST(!second.waiter.has_turn());
  BOOST_TEST(third.waiter.has_turn());
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

BOOST_AUTO_TEST_CASE(ended_queue_lets_nobody_in_nor_keep) {
  Queue queue;
  Caller trying, waiting, later;
  queue.enter(trying.waiter, true);
  queue.enter(waiting.waiter, true);
  queue.end();
  BOOST_TEST(trying.waiter.cancelled());
  BOOST_TEST(!queue.keep(trying.waiter));
  queue.pass();  // Of nobody: the turn is still that of the first.
  BOOST_TEST(!waiting.waiter.has_turn());
  queue.leave(waiting.waiter);
  queue.leave(trying.waiter);
  BOOST_CHECK(queue.enter(later.waiter, true) == Entry::refused);
}

BOOST_AUTO_TEST_CASE(wakers_are_lent_again_asleep) {
  Waits waits;
  sigv4::Waker* first;
  {
    const Waits::One wait(waits);
    first = wait.waker();
    BOOST_REQUIRE(first != nullptr);
    first->wake();
  }
  const Waits::One again(waits);
  BOOST_TEST(again.waker() == first);
  BOOST_TEST(!again.waker()->woken());
}

BOOST_AUTO_TEST_CASE(more_wakers_than_are_kept_can_be_lent) {
  Waits waits;
  std::deque<std::unique_ptr<Waits::One>> lent;
  for (int i = 0; i < 20; ++i)
    lent.push_back(std::make_unique<Waits::One>(waits));
  while (!lent.empty()) {  // Neither the last nor the first lent first.
    lent.erase(lent.begin() + static_cast<std::ptrdiff_t>(lent.size() / 2));
  }
  const Waits::One wait(waits);
  BOOST_TEST(wait.waker() != nullptr);
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
