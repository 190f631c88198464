// The rules by which requests to the stand-ins are hit by faults:
//
//   {"service": "sts", "operation": "AssumeRole", "fault": "500", "nth": 2}
//   {"service": "imds", "fault": "slow", "ms": 3000, "times": 0}
//
// service, operation   which requests; "*" (the default) is every one
// fault                one of the kinds below
// nth, times           from the nth on (default 1) of those that come to this
//                      rule from now on, so many in a row (default 1; 0:
//                      without end)
//
// Rules are asked in the order in which they were given, and the first that
// hits acts; those behind it neither see nor count that request.
"use strict";

const { checkMembers, demand } = require("../gateway/faults");

const COMMON = ["service", "operation", "fault", "nth", "times"];

// What each kind may be told, with what it is if it is not told.
const KINDS = {
  // The service has not seen the request:
  refuse: { status: 400, code: "AccessDenied", message: "it was told to" },
  500: {},
  503: {},
  throttle: {},
  hang: {}, // No answer; the connection stays open until its client ends it.
  reset: {},
  garbage: {}, // A page of somebody else's comes with 200,
  empty: {}, // ... or nothing comes with 200.
  redirect: { status: 302, location: null }, // null: to "/redirected" here.
  say: { status: 200, type: "application/json", body: "" },
  slow: { ms: 1000 }, // It sees it so much later.
  // The service has done what it was asked, then:
  "reset-answer": {},
  truncate: {}, // The answer ends in the middle of its body.
  missing: { fields: [] }, // These are not in its document,
  alter: { set: {} }, // ... or these are others; null: not in it.
  oversized: { bytes: 4 << 20 }, // Blanks follow it, up to so many bytes.
};

function isCount(value, least) {
  return Number.isSafeInteger(value) && value >= least;
}

function isStatus(value) {
  return isCount(value, 200) && value <= 599;
}

// By what a kind may be told.
const HOLDS = {
  status: isStatus,
  code: (value) => typeof value === "string",
  message: (value) => typeof value === "string",
  location: (value) => value === null || typeof value === "string",
  type: (value) => typeof value === "string",
  body: (value) => typeof value === "string",
  ms: (value) => typeof value === "number" && value >= 0 && value <= 3600000,
  fields: (value) => Array.isArray(value) && value.length !== 0,
  set: (value) => typeof value === "object" && value !== null,
  bytes: (value) => isCount(value, 1) && value <= 1 << 28,
};

function checkRule(rule) {
  const { fault, service = "*", operation = "*", nth = 1, times = 1 } = rule;
  demand(
    typeof fault === "string" && Object.hasOwn(KINDS, fault),
    `"fault" is none of ${Object.keys(KINDS).join(", ")}`,
  );
  checkMembers(rule, [...COMMON, ...Object.keys(KINDS[fault])]);
  for (const name of Object.keys(KINDS[fault])) {
    const value = rule[name];
    demand(value === undefined || HOLDS[name](value), `"${name}" is wrong`);
  }
  const isText = typeof service === "string" && typeof operation === "string";
  demand(isText, '"service" or "operation" is no name');
  demand(isCount(nth, 1), '"nth" is not a count from 1');
  demand(isCount(times, 0), '"times" is not a count from 0');
}

class Mischief {
  constructor() {
    this.rules = [];
  }

  // Throws BadRequest.
  add(rule) {
    checkMembers(rule, Object.keys(rule ?? {}));
    checkRule(rule);
    const { service = "*", operation = "*", nth = 1, times = 1 } = rule;
    const last = times === 0 ? Infinity : nth + times - 1;
    const how = { ...KINDS[rule.fault], ...rule };
    this.rules.push({ service, operation, nth, last, seen: 0, how });
  }

  clear() {
    this.rules = [];
  }

  // What is to become of a request: {fault, ...what it was told}, or null.
  pick(service, operation) {
    for (const rule of this.rules) {
      if (rule.service !== "*" && rule.service !== service) continue;
      if (rule.operation !== "*" && rule.operation !== operation) continue;
      rule.seen += 1;
      if (rule.seen >= rule.last) {
        this.rules = this.rules.filter((other) => other !== rule);
      }
      if (rule.seen >= rule.nth) return rule.how;
    }
    return null;
  }
}

module.exports = { Mischief };
