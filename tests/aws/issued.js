// Temporary keys that one program gives out and another knows again: all that
// is told by a key's id, and a seed that both were given.
//
//   const issued = new Issued("seed");
//   const { key, secret, token } = issued.keys(unixSeconds);
//   issued.find(key);  // {key, secret, token, ends: unixSeconds}, or null.
//
// An id is "ASIA" and sixteen characters of base32: when the keys end (4 bytes,
// seconds since 1970) and a number (6).  Strange ids of that form are found as
// well, but nobody can know the secret and the token that would go with them.
"use strict";

const crypto = require("node:crypto");

const START = "ASIA";
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const TOKEN_START = "IQoJb3JpZ2luX2VjE";
// So that a secret is known for one wherever it should not be: tests/run looks.
const SECRET_START = "SeCrEt";

// Ten bytes are sixteen characters.
function encode(bytes) {
  let bits = BigInt("0x" + bytes.toString("hex"));
  let text = "";
  for (let i = 0; i < 16; ++i) {
    text = ALPHABET[Number(bits & 31n)] + text;
    bits >>= 5n;
  }
  return text;
}

function decode(text) {
  let bits = 0n;
  for (const character of text) {
    bits = (bits << 5n) | BigInt(ALPHABET.indexOf(character));
  }
  return Buffer.from(bits.toString(16).padStart(20, "0"), "hex");
}

class Issued {
  constructor(seed) {
    this.seed = seed;
  }

  // Different ones each time.
  keys(ends) {
    const bytes = crypto.randomBytes(10);
    bytes.writeUInt32BE(ends, 0);
    return this.#of(START + encode(bytes));
  }

  find(key) {
    return /^ASIA[A-Z2-7]{16}$/.test(key) ? this.#of(key) : null;
  }

  #of(key) {
    const ends = decode(key.slice(START.length)).readUInt32BE(0);
    const mac = this.#mac(`secret ${key}`).toString("base64");
    const secret = (SECRET_START + mac).slice(0, 40);
    // As long as real ones, and with all the characters that they may have.
    const pieces = [1, 2, 3, 4].map((n) => this.#mac(`token ${n} ${key}`));
    const token = TOKEN_START + Buffer.concat(pieces).toString("base64");
    return { key, secret, token, ends };
  }

  #mac(text) {
    return crypto.createHmac("sha512", this.seed).update(text).digest();
  }
}

module.exports = { Issued };
