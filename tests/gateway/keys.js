// The keys with which clients may sign: pairs that were told, and those that a
// stand-in for AWS's key services gives out (tests/aws/issued.js).
"use strict";

const { Issued } = require("../aws/issued");

class Keys {
  // `pairs` of {key, secret, token}, "" for no token; `seed` of the issued
  // ones, or undefined: there are none.
  constructor(pairs, seed) {
    this.pairs = new Map();
    for (const pair of pairs) this.add(pair);
    this.issued = seed === undefined ? null : new Issued(seed);
  }

  add(pair) {
    this.pairs.set(pair.key, pair);
  }

  // {key, secret, token, ends}, seconds since 1970 if they end; null if there
  // are no such keys, or their token is another.
  find(key, token) {
    const found = this.pairs.get(key) ?? this.issued?.find(key) ?? null;
    return found?.token === token ? found : null;
  }
}

module.exports = { Keys };
