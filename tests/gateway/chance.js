// Chance that can be had again: numbers in [0, 1) from a seed (Mulberry32).
"use strict";

class Chance {
  constructor(seed) {
    this.state = seed >>> 0;
  }

  next() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = this.state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x100000000;
  }

  between(from, to) {
    return from + (to - from) * this.next();
  }
}

module.exports = { Chance };
