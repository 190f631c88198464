// The rules by which requests are hit by faults.  A rule is a JSON object:
//
//   {"action": "PutItem", "fault": "drop-answer", "nth": 3}
//   {"fault": "delay", "ms": [10, 200], "probability": 0.05}
//
// action          which requests: "*" (the default) is every one, "PutItem" is
//                 those of that action, "UpdateItem ADD #n" those of them whose
//                 body has what comes after the space
// fault           one of the kinds below
// probability     each of them with this chance; or
// nth, times      from the nth on (default 1) of those that come to this rule
//                 from now on, so many in a row (default 1; 0: without end)
// ms              how long, for the kinds that wait: a number or [from, to];
//                 less if all that waits is let go meanwhile
// retry_after_ms  for throttle, 500, 503 and those after: x-amz-retry-after
//
// Rules are asked in the order in which they were given, and the first that
// hits acts; those behind it neither see nor count that request.
"use strict";

const { Chance } = require("./chance");

// What each kind may be told, and its own milliseconds.
const WAITS = (ms) => ({ ms });
const KINDS = {
  // The engine has not seen the request:
  delay: WAITS(100), // ... and does so later.
  drop: {}, // Never; the connection stays open until its client ends it.
  reset: {}, // Never; the connection is reset,
  close: {}, // ... closed,
  "half-close": {}, // ... or closed in our direction only.
  throttle: {}, // Never, and the client is told to come again.
  500: {}, // Never; a failure within DynamoDB.
  503: {},
  portal: {}, // Never; somebody else's page comes with 200 and a wrong Date,
  empty: {}, // ... or nothing comes with 200.
  late: WAITS(500), // The connection is reset; so much later it is applied.
  // Once another about the same item was answered, at most so much later.
  reorder: WAITS(500),
  // The engine has applied it, then:
  "delay-answer": WAITS(100),
  "drop-answer": {}, // Connections as with drop,
  "reset-answer": {}, // ... reset,
  "half-close-answer": {}, // ... half-close.
  truncate: {}, // The answer ends in the middle of its body.
  corrupt: {}, // Its x-amz-crc32 is wrong.
  garbage: {}, // As with portal.
  "throttle-after": {},
  "500-after": {},
  "503-after": {},
  duplicate: WAITS(500), // Answered; so much later it is applied once more.
};

const MEMBERS = [
  "action",
  "fault",
  "probability",
  "nth",
  "times",
  "ms",
  "retry_after_ms",
];

// What a client of the control port did wrong.
class BadRequest extends Error {}

function demand(holds, text) {
  if (!holds) throw new BadRequest(text);
}

function checkMembers(value, members) {
  demand(
    typeof value === "object" && value !== null && !Array.isArray(value),
    "the body is not a JSON object",
  );
  for (const name of Object.keys(value)) {
    demand(members.includes(name), `"${name}" is no member`);
  }
}

function checkRule(rule) {
  checkMembers(rule, MEMBERS);
  demand(Object.hasOwn(KINDS, rule.fault), `"${rule.fault}" is no fault`);
}

class Faults {
  constructor(seed) {
    this.rules = [];
    this.chance = new Chance(seed); // Whether.
    // How long: drawn on its own, so that a change of "ms" hits the same
    // requests.
    this.length = new Chance(seed ^ 0x5bd1e995);
  }

  // Throws BadRequest.
  add(rule) {
    checkRule(rule);
    const { action = "*", fault, probability, nth = 1, times = 1 } = rule;
    const ms = rule.ms ?? KINDS[fault].ms ?? 0;
    const [from, to] = Array.isArray(ms) ? ms : [ms, ms];
    const space = action.indexOf(" ");
    this.rules.push({
      action: space < 0 ? action : action.slice(0, space),
      text: space < 0 ? "" : action.slice(space + 1),
      kind: fault,
      probability,
      nth,
      last: times === 0 ? Infinity : nth + times - 1,
      seen: 0,
      from,
      to,
      retryAfter: rule.retry_after_ms,
    });
  }

  clear() {
    this.rules = [];
  }

  // What is to become of a request: {kind, ms, retryAfter}, or null.
  pick(action, body) {
    for (const rule of this.rules) {
      if (rule.action !== "*" && rule.action !== action) continue;
      if (rule.text !== "" && !body.includes(rule.text)) continue;
      if (this.#hits(rule)) {
        const ms = this.length.between(rule.from, rule.to);
        return { kind: rule.kind, ms, retryAfter: rule.retryAfter };
      }
    }
    return null;
  }

  #hits(rule) {
    if (rule.probability !== undefined) {
      return this.chance.next() < rule.probability;
    }
    rule.seen += 1;
    if (rule.seen >= rule.last) {
      this.rules = this.rules.filter((other) => other !== rule);
    }
    return rule.seen >= rule.nth;
  }
}

module.exports = { BadRequest, Faults, checkMembers, demand };
