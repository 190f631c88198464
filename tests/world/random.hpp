// Numbers that follow from a seed alone, on every machine (the standard's
// distributions differ from library to library).
#ifndef DDBMUTEX_TESTS_WORLD_RANDOM_HPP
#define DDBMUTEX_TESTS_WORLD_RANDOM_HPP

#include <chrono>
#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace world {

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, OOPSLA 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  // A stream of its own for each part of a life, so that leaving out a part
  // changes nothing in the others.
  Random(std::uint64_t seed, std::uint64_t part, std::uint64_t number = 0)
      : state_(mix(seed + mix(part + mix(number)))) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    return mix(state_);
  }
  // From 0 up to, but not including, `end`; 0 if `end` is 0.
  std::uint64_t below(std::uint64_t end) {
    if (end == 0) return 0;
    return upper_half_of_product(next(), end);
  }
  double share() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool chance(double probability) { return share() < probability; }
  std::chrono::nanoseconds between(std::chrono::nanoseconds least,
                                   std::chrono::nanoseconds most) {
    const auto width = static_cast<std::uint64_t>((most - least).count());
    return least + std::chrono::nanoseconds(below(width + 1));
  }
  // As often from 1 ms to 10 ms as from 1 h to 10 h.
  std::chrono::nanoseconds spread(std::chrono::nanoseconds least,
                                  std::chrono::nanoseconds most) {
    const auto low = static_cast<double>(least.count());
    const auto high = static_cast<double>(most.count());
    return std::chrono::nanoseconds(static_cast<std::int64_t>(
        low * std::exp(share() * std::log(high / low))));
  }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[below(all.size())];
  }

 private:
  // The product has 128 bits, for which a machine of 32 bits has no type.
  static std::uint64_t upper_half_of_product(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t low = (a & kLow) * (b & kLow);
    const std::uint64_t one = (a >> 32) * (b & kLow) + (low >> 32);
    const std::uint64_t other = (a & kLow) * (b >> 32) + (one & kLow);
    return (a >> 32) * (b >> 32) + (one >> 32) + (other >> 32);
  }
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

  static constexpr std::uint64_t kLow = 0xffffffff;

  std::uint64_t state_;
};

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_RANDOM_HPP
