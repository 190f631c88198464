// Gives out temporary keys, and remembers whose they are.
"use strict";

const { Issued } = require("./issued");

const USUAL_S = 3600;

class Issuer {
  constructor(seed, clock) {
    this.issued = new Issued(seed);
    this.clock = clock;
    this.lifetime = null; // s, of all; null: as they were asked for.
    this.owners = new Map(); // The ARN of a session, by the id of its keys.
  }

  // {key, secret, token, ends}, seconds since 1970.
  issue(owner, seconds = USUAL_S) {
    return this.issueFor(owner, this.lifetime ?? seconds);
  }

  issueFor(owner, seconds) {
    const now = Math.floor(this.clock.now() / 1000);
    const keys = this.issued.keys(now + seconds);
    this.owners.set(keys.key, owner);
    return keys;
  }

  find(key) {
    return this.issued.find(key);
  }

  owner(key) {
    return this.owners.get(key);
  }
}

// "2026-11-21T12:00:00Z"
function isoTime(seconds) {
  return new Date(seconds * 1000).toISOString().replace(".000", "");
}

module.exports = { Issuer, isoTime };
