// Picture 1: what a lease is.
#include <cmath>
#include <sstream>

#include "ddbmutex.hpp"
#include "ddbmutex/lock/protocol.hpp"
#include "tests/pictures/pictures.hpp"
#include "tests/pictures/svg.hpp"

namespace pictures {

using namespace std::chrono_literals;

namespace {

// Made up: how long an answer takes to come, and when the holder is killed.
constexpr milliseconds kWay = 300ms;
constexpr seconds kDeath = 8s;

std::string in_seconds(nanoseconds time) {
  std::ostringstream text;
  text << std::chrono::duration<double>(time).count() << " s";
  return text.str();
}

// "0.99 ttl"
std::string share(nanoseconds time, nanoseconds ttl) {
  const long hundredths =
      std::lround(100.0 * static_cast<double>(time.count()) /
                  static_cast<double>(ttl.count()));
  const std::string rest = std::to_string(100 + hundredths % 100).substr(1);
  return std::to_string(hundredths / 100) + "." + rest + " ttl";
}

// A stretch of time as a stretch of the picture.
struct Scale {
  nanoseconds begin, end;
  double left, right;

  double operator()(nanoseconds time) const {
    const std::chrono::duration<double> from = time - begin, all = end - begin;
    return left + (right - left) * (from / all);
  }
};

class LeasePicture {
 public:
  explicit LeasePicture(const Lease& lease)
      : lease_(lease),
        all_{0s, lease.taken + lease.ttl / 6, 96, 820},
        near_{lease.claim_end - kMargin(), lease.taken + kMargin(), 96, 820} {}

  std::string draw() {
    svg_.style(style());
    svg_.rect({0, 0, kWidth, kHeight}, "class='paper' rx='6'");
    draw_holder();
    draw_waiter();
    draw_axis();
    draw_lens();
    draw_margins();
    return svg_.finished();
  }

 private:
  static constexpr double kWidth = 840, kHeight = 352;
  static constexpr double kHolder = 52, kWaiter = 112, kBar = 22;
  static constexpr double kAxis = 164, kLens = 200, kLensEnd = 306;
  static constexpr double kNearHolder = kLens + 22, kNearWaiter = kLens + 72;

  nanoseconds kMargin() const { return lease_.ttl / 100; }

  void say(double x, double y, const std::string& words,
           const std::string& attributes) {
    svg_.text(x, y, words, attributes + " font-size='12.5'");
  }
  void bar(double from, double to, double y, const std::string& attributes) {
    svg_.rect({from, y, to - from, kBar}, attributes);
  }
  void upright(double x, double from, double to,
               const std::string& attributes) {
    svg_.path("M" + number(x) + " " + number(from) + "V" + number(to),
              attributes);
  }

  void draw_holder() {
    const double killed = all_(lease_.killed);
    const double end = all_(lease_.claim_end);
    say(12, kHolder + 15, "holder", "class='ink' font-weight='600'");
    bar(all_(0s), killed, kHolder, "class='p0'");
    bar(killed, end, kHolder, "class='p0' fill-opacity='0.3'");
    upright(all_(lease_.renewed), kHolder - 6, kHolder + kBar,
            "class='inkl' stroke-width='1.5'");
    say(all_(lease_.renewed), kHolder - 12, "renewed",
        "class='ink' text-anchor='end'");
    svg_.path("M" + number(killed - 6) + " " + number(kHolder + 5) +
                  "l12 12m0 -12l-12 12",
              "class='badl' stroke-width='2.5'");
    say(killed + 4, kHolder - 12, "killed", "class='bad'");
    say((killed + end) / 2, kHolder + 15,
        "its claim: " +
            share(ddbmutex::lock::held_for(lease_.ttl), lease_.ttl) +
            " from when the renewal was sent",
        "class='ink' text-anchor='middle'");
  }

  void draw_waiter() {
    const double seen = all_(lease_.seen), taken = all_(lease_.taken);
    say(12, kWaiter + 15, "waiter", "class='ink' font-weight='600'");
    bar(seen, taken, kWaiter,
        "class='p1l' stroke-width='1.2' stroke-dasharray='4 3'");
    bar(taken, all_.right, kWaiter, "class='p1'");
    upright(seen, kWaiter - 6, kWaiter + kBar,
            "class='inkl' stroke-width='1.5'");
    say(seen, kWaiter - 12, "receives that record",
        "class='ink' text-anchor='end'");
    say((seen + taken) / 2, kWaiter + 15,
        "sees it unchanged for " +
            share(ddbmutex::lock::waited_for(lease_.ttl), lease_.ttl),
        "class='ink' text-anchor='middle'");
    say(taken, kWaiter - 12, "takes the lock",
        "class='ink' text-anchor='middle'");
  }

  void draw_axis() {
    std::string ticks;
    for (seconds at = 0s; at < all_.end; at += 10s) {
      const double x = all_(at);
      ticks += "M" + number(x) + " " + number(kAxis - 18) + "v5";
      say(x, kAxis, in_seconds(at), "class='quiet' text-anchor='middle'");
    }
    svg_.path("M" + number(all_.left) + " " + number(kAxis - 18) + "H" +
                  number(all_.right) + ticks,
              "class='quietl' stroke-width='1'");
  }

  // What lies between the two, larger.
  void draw_lens() {
    svg_.path("M" + number(all_(near_.begin)) + " " + number(kAxis - 18) + "L" +
                  number(near_.left) + " " + number(kLens) + "H" +
                  number(near_.right) + "L" + number(all_(near_.end)) + " " +
                  number(kAxis - 18) + "z",
              "class='quiet' fill-opacity='0.13'");
    svg_.rect({near_.left, kLens, near_.right - near_.left, kLensEnd - kLens},
              "class='quiet' fill-opacity='0.13'");
    bar(near_.left, near_(lease_.claim_end), kNearHolder,
        "class='p0' fill-opacity='0.3'");
    bar(near_.left, near_(lease_.taken), kNearWaiter,
        "class='p1l' stroke-width='1.2' stroke-dasharray='4 3'");
    bar(near_(lease_.taken), near_.right, kNearWaiter, "class='p1'");
    say(12, kNearHolder + 15, "holder", "class='ink' font-weight='600'");
    say(12, kNearWaiter + 15, "waiter", "class='ink' font-weight='600'");
  }

  // The margin from one moment to another, with its length above.
  void measure(nanoseconds from, nanoseconds to, double bar_top) {
    const double y = bar_top + kBar / 2;
    const double left = near_(from), right = near_(to);
    svg_.path("M" + number(left) + " " + number(y) + "H" + number(right) +
                  "m-4 -3l4 3l-4 3M" + number(left + 4) + " " + number(y - 3) +
                  "l-4 3l4 3",
              "class='inkl' stroke-width='1.2'");
    say((left + right) / 2, bar_top - 5, "margin " + in_seconds(to - from),
        "class='ink' text-anchor='middle'");
  }

  void draw_margins() {
    const nanoseconds sent_end = lease_.renewed + lease_.ttl;
    const nanoseconds seen_end = lease_.seen + lease_.ttl;
    for (const nanoseconds at : {sent_end, seen_end}) {
      upright(near_(at), kLens, kLensEnd + 24,
              "class='quietl' stroke-width='1' stroke-dasharray='2 3'");
    }
    measure(lease_.claim_end, sent_end, kNearHolder);
    measure(seen_end, lease_.taken, kNearWaiter);
    const double below = kLensEnd + 18;
    say(near_(lease_.claim_end), below, in_seconds(lease_.claim_end),
        "class='ink' text-anchor='middle'");
    say(near_(lease_.taken), below, in_seconds(lease_.taken),
        "class='ink' text-anchor='middle'");
    say(near_(sent_end) - 5, below + 18, "ttl after it was sent",
        "class='quiet' text-anchor='end'");
    say(near_(seen_end) + 5, below + 18, "ttl after it was received",
        "class='quiet'");
  }

  const Lease& lease_;
  const Scale all_, near_;
  Svg svg_{kWidth, kHeight};
};

}  // namespace

Lease::Lease()
    : ttl(ddbmutex::Options().ttl),
      renewed(ttl / 2),
      killed(renewed + kDeath),
      claim_end(renewed + ddbmutex::lock::held_for(ttl)),
      seen(renewed + kWay),
      taken(seen + ddbmutex::lock::waited_for(ttl)) {}

std::string draw(const Lease& lease) { return LeasePicture(lease).draw(); }

}  // namespace pictures
