// A table whose capacity is spent: so many requests a second go through, the
// others are refused as DynamoDB refuses them, and the engine never sees them.
//
//   {"per_second": 20}
//   {"per_second": 5, "burst": 1, "error": "ThrottlingException",
//    "actions": ["PutItem", "GetItem"]}
//
// per_second   how many go through; 0: none
// burst        how many at once, after a pause (default 2)
// error        "ProvisionedThroughputExceededException" (the default) or
//              "ThrottlingException"
// actions      those that are counted and refused; others go through uncounted
//              (default: all)
"use strict";

const answers = require("./answers");
const { checkMembers, demand } = require("./faults");

const MEMBERS = ["per_second", "burst", "error", "actions"];
const MOST = 1e6;

function isNumber(value, least) {
  return Number.isFinite(value) && value >= least && value <= MOST;
}

function check(limit) {
  checkMembers(limit, MEMBERS);
  const { per_second: perSecond, burst, error, actions } = limit;
  demand(
    isNumber(perSecond, 0),
    `"per_second" is not a number from 0 to ${MOST}`,
  );
  demand(
    burst === undefined || isNumber(burst, 1),
    `"burst" is not a number from 1 to ${MOST}`,
  );
  demand(
    error === undefined || answers.THROTTLED.includes(error),
    `"error" is none of ${answers.THROTTLED.join(", ")}`,
  );
  demand(
    actions === undefined ||
      (Array.isArray(actions) &&
        actions.length > 0 &&
        actions.every((action) => typeof action === "string")),
    '"actions" is not a list of names',
  );
}

class Rate {
  // `now` tells milliseconds that no calendar moves.
  constructor(now = () => performance.now()) {
    this.now = now;
    this.limit = null; // No limit.
    this.forget();
  }

  forget() {
    this.allowed = 0; // While there was a limit, and counted by it,
    this.refused = 0; // and refused by it.
  }

  // Throws BadRequest.  Begins with a whole burst.
  set(limit) {
    check(limit);
    const { per_second: perSecond, burst = 2, actions } = limit;
    const error = limit.error ?? answers.THROTTLED[0];
    this.limit = { perSecond, burst, error, actions };
    this.tokens = burst;
    this.filled = this.now();
  }

  clear() {
    this.limit = null;
  }

  // Null if the request goes through, else the answer.
  refusal(action, clock) {
    if (this.limit === null) return null;
    const { actions, error } = this.limit;
    if (actions !== undefined && !actions.includes(action)) return null;
    this.#fill();
    if (this.tokens >= 1) {
      this.tokens -= 1;
      this.allowed += 1;
      return null;
    }
    this.refused += 1;
    return answers.throttled(clock, error);
  }

  toJSON() {
    return { allowed: this.allowed, refused: this.refused };
  }

  #fill() {
    const { perSecond, burst } = this.limit;
    const now = this.now();
    const more = ((now - this.filled) * perSecond) / 1000;
    this.tokens = Math.min(burst, this.tokens + more);
    this.filled = now;
  }
}

module.exports = { Rate };
