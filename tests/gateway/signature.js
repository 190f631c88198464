// The signatures of requests to DynamoDB, with its words for what is wrong, and
// counted.
"use strict";

const answers = require("./answers");
const {
  Refusal,
  Verifier,
  parseAuthorization,
  parseDate,
  parseScope,
} = require("./verifier");

const RULES = {
  service: "dynamodb",
  signed: ["host", "x-amz-date", "x-amz-target"],
};
const CODES = {
  missing: "MissingAuthenticationTokenException",
  incomplete: "IncompleteSignatureException",
  invalid: "InvalidSignatureException",
  unknown: "UnrecognizedClientException",
  expired: "ExpiredTokenException",
};

class Signatures {
  // `own`: {key, secret, token}, with which it signs itself.
  constructor(own, keys, clock, counts) {
    this.own = own;
    this.clock = clock;
    this.counts = counts;
    this.verifier = new Verifier(RULES, keys, clock);
  }

  // Null if all is well, else the answer.
  async refusal(request) {
    try {
      await this.verifier.check(request);
    } catch (problem) {
      return this.#refused(problem);
    }
    this.counts.signatures.good += 1;
    return null;
  }

  // The same, of a request that was found good and has been held since.
  untimely(request) {
    try {
      this.verifier.checkTime(request.headers["x-amz-date"]);
    } catch (problem) {
      return this.#refused(problem);
    }
    return null;
  }

  // Headers for an engine with another Host that checks signatures too.
  async signAnew(request, host) {
    const headers = {
      host,
      "content-type": request.headers["content-type"],
      "x-amz-target": request.headers["x-amz-target"],
    };
    const { authorization, "x-amz-date": date } = request.headers;
    const { Credential: credential } = parseAuthorization(authorization);
    const { region } = parseScope(credential);
    const how = { keys: this.own, region, time: parseDate(date) };
    return this.verifier.sign(request, headers, how);
  }

  #refused(problem) {
    if (!(problem instanceof Refusal)) throw problem;
    this.counts.signatures[problem.count] += 1;
    return answers.refusal(this.clock, CODES[problem.kind], problem.message);
  }
}

module.exports = { Signatures };
