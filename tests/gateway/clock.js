// The service's clock, which need not be this machine's.
"use strict";

class ServiceClock {
  constructor() {
    this.offset = 0; // ms
    this.shown = true; // In answers, as their Date.
    this.second = NaN;
    this.text = "";
  }

  now() {
    return Date.now() + this.offset;
  }

  // As a Date header has it.
  date() {
    const second = Math.floor(this.now() / 1000);
    if (second !== this.second) {
      this.second = second;
      this.text = new Date(second * 1000).toUTCString();
    }
    return this.text;
  }
}

module.exports = { ServiceClock };
