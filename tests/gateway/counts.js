// What the gateway has seen and done, for GET /counts.
"use strict";

class Counts {
  constructor() {
    this.underWay = 0; // Not to be forgotten: they are there.
    this.forget();
  }

  forget() {
    this.requests = Object.create(null); // That came whole, by action.
    this.applied = Object.create(null); // That the engine answered.
    this.faults = Object.create(null); // That were done, by kind.
    this.signatures = { good: 0, bad: 0, early: 0, late: 0, expired: 0 };
  }

  add(what, name) {
    what[name] = (what[name] ?? 0) + 1;
  }

  toJSON() {
    return {
      requests: this.requests,
      faults: this.faults,
      signatures: this.signatures,
      applied: this.applied,
      under_way: this.underWay,
    };
  }
}

module.exports = { Counts };
