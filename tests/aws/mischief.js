// The rules by which requests to the stand-ins are hit by faults:
//
//   {"service": "sts", "operation": "AssumeRole", "fault": "refuse"}
//   {"service": "imds", "fault": "redirect", "times": 0}
//
// service, operation   which requests; "*" (the default) is every one
// fault                one of the kinds below
// times                so many in a row (default 1; 0: without end)
//
// Rules are asked in the order in which they were given, and the first that
// hits acts; those behind it do not count that request.
"use strict";

const { checkMembers, demand } = require("../gateway/faults");

const COMMON = ["service", "operation", "fault", "times"];

// What each kind may be told, with what it is if it is not told.
const KINDS = {
  // The service has not seen the request:
  refuse: { status: 400, code: "AccessDenied", message: "it was told to" },
  redirect: { status: 302 }, // To "/redirected" here.
  // The service has done what it was asked, then:
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
    const { service = "*", operation = "*", times = 1 } = rule;
    const left = times === 0 ? Infinity : times;
    const how = { ...KINDS[rule.fault], ...rule };
    this.rules.push({ service, operation, left, how });
  }

  clear() {
    this.rules = [];
  }

  // What is to become of a request: {fault, ...what it was told}, or null.
  pick(service, operation) {
    for (const rule of this.rules) {
      if (rule.service !== "*" && rule.service !== service) continue;
      if (rule.operation !== "*" && rule.operation !== operation) continue;
      rule.left -= 1;
      if (rule.left === 0) {
        this.rules = this.rules.filter((other) => other !== rule);
      }
      return rule.how;
    }
    return null;
  }
}

module.exports = { Mischief };
