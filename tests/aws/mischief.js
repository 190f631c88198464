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
  throttle: {},
  reset: {},
  garbage: {}, // A page of somebody else's comes with 200.
  redirect: { status: 302 }, // To "/redirected" here.
  slow: { ms: 1000 }, // It sees it so much later.
  // The service has done what it was asked, then:
  truncate: {}, // The answer ends in the middle of its body.
  alter: { set: {} }, // These members of its document are others.
};

function checkRule(rule) {
  const { fault } = rule;
  demand(Object.hasOwn(KINDS, fault), `"${fault}" is no fault`);
  checkMembers(rule, [...COMMON, ...Object.keys(KINDS[fault])]);
}

class Mischief {
  constructor() {
    this.rules = [];
  }

  // Throws BadRequest.
  add(rule) {
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
