// Secrets that somebody may show for a time, by the service's clock.
"use strict";

class Tokens {
  constructor(clock) {
    this.clock = clock;
    this.known = new Map(); // By the secret: {ends, about}.
  }

  // `seconds` may be negative: it is over already.
  add(token, seconds, about = {}) {
    this.known.set(token, { ends: this.clock.now() + seconds * 1000, about });
  }

  remove(token) {
    this.known.delete(token);
  }

  clear() {
    this.known.clear();
  }

  // "absent", "wrong", "expired" or "valid".
  judge(token) {
    if (token === undefined || token === "") return "absent";
    const found = this.known.get(token);
    if (found === undefined) return "wrong";
    return this.clock.now() < found.ends ? "valid" : "expired";
  }

  about(token) {
    return this.known.get(token)?.about;
  }
}

module.exports = { Tokens };
