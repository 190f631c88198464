// EC2's instance metadata service, version 2 and, if told so, 1: tokens, the
// role and its keys, the region.
"use strict";

const crypto = require("node:crypto");
const { html, json, plain } = require("./answers");
const { isoTime } = require("./issuer");
const { Tokens } = require("./tokens");

const TTL = "x-aws-ec2-metadata-token-ttl-seconds";
const TOKEN = "x-aws-ec2-metadata-token";
const ROLES = "/latest/meta-data/iam/security-credentials";
const REGION = "/latest/meta-data/placement/region";
const IDENTITY = "/latest/dynamic/instance-identity/document";
const TITLES = {
  400: "400 - Bad Request",
  401: "401 - Unauthorized",
  403: "403 - Forbidden",
  404: "404 - Not Found",
  405: "405 - Not Allowed",
};
const FAILURES = {
  500: [500, "500 - Internal Server Error"],
  503: [503, "503 - Service Unavailable"],
  throttle: [429, "429 - Too Many Requests"],
};

class Imds {
  constructor({ clock, issuer, account }) {
    this.name = "imds";
    this.clock = clock;
    this.issuer = issuer;
    this.account = account;
    this.tokens = new Tokens(clock);
    this.role = "instance-role";
    this.region = "eu-west-1";
    this.v1 = false; // Whether it answers without a token.
    this.putStatus = null; // With which it refuses to give tokens.
    this.tokenSeconds = null; // After which tokens die, whatever was asked.
    this.sameFor = 0; // s in which a role's document stays the same.
    this.extended = false; // Whether it knows of accounts.
    this.document = null; // The last one: {made, role, keys}.
  }

  operation({ method, path }) {
    if (path === "/latest/api/token") return "PutToken";
    if (method !== "GET") return "Other";
    if (path === REGION) return "GetRegion";
    const [base, role] = this.#split(path);
    if (base === null) return "Other";
    return role === "" ? "ListRoles" : "GetRole";
  }

  told() {
    return {};
  }

  error(status, code, message = "") {
    return {
      ...html(status, TITLES[status] ?? `${status} - ${code}`),
      message,
    };
  }

  failure(kind) {
    return html(...FAILURES[kind]);
  }

  answer(request, entry) {
    const operation = this.operation(request);
    if (operation === "PutToken") return this.#token(request);
    entry.token = this.tokens.judge(request.headers[TOKEN]);
    const isAdmitted =
      entry.token === "valid" || (entry.token === "absent" && this.v1);
    if (!isAdmitted) return this.error(401);
    if (request.method !== "GET") return this.error(405);
    if (operation === "GetRegion") return plain(200, this.region);
    if (request.path === IDENTITY) {
      const { region, account } = this;
      return json(200, { accountId: account.id, region });
    }
    return this.#roles(request.path);
  }

  // "/latest/.../security-credentials[-extended]/NAME" -> [which, NAME].
  #split(path) {
    for (const base of [ROLES, `${ROLES}-extended`]) {
      if (path === base) return [base, ""];
      if (path.startsWith(`${base}/`)) {
        return [base, path.slice(base.length + 1)];
      }
    }
    return [null, ""];
  }

  #token({ method, headers }) {
    if (this.putStatus !== null) return this.error(this.putStatus);
    if (method !== "PUT") return this.error(405);
    if (headers["x-forwarded-for"] !== undefined) return this.error(403);
    const ttl = headers[TTL] ?? "";
    const seconds = /^\d{1,5}$/.test(ttl) ? Number(ttl) : 0;
    if (seconds < 1 || seconds > 21600) return this.error(400);
    const token = crypto.randomBytes(40).toString("base64");
    this.tokens.add(token, this.tokenSeconds ?? seconds);
    return plain(200, token, [TTL, String(seconds), "Server", "EC2ws"]);
  }

  #roles(path) {
    const [base, role] = this.#split(path);
    const isKnown = base === ROLES || (base !== null && this.extended);
    if (!isKnown || this.role === null) return this.error(404);
    if (role === "") return plain(200, this.role);
    if (![this.role, encodeURIComponent(this.role)].includes(role)) {
      return this.error(404);
    }
    return this.#credentials(base !== ROLES);
  }

  #credentials(isExtended) {
    const keys = this.#keys();
    const made = Math.floor(this.document.made / 1000);
    const document = {
      Code: "Success",
      LastUpdated: isoTime(made),
      Type: "AWS-HMAC",
      AccessKeyId: keys.key,
      SecretAccessKey: keys.secret,
      Token: keys.token,
      Expiration: isoTime(keys.ends),
    };
    if (isExtended) document.AccountId = this.account.id;
    return { ...json(200, document), type: "text/plain" };
  }

  #keys() {
    const now = this.clock.now();
    const last = this.document;
    const isSame =
      last !== null &&
      last.role === this.role &&
      now < last.made + this.sameFor * 1000;
    if (!isSame) {
      const { id } = this.account;
      const arn = `arn:aws:sts::${id}:assumed-role/${this.role}/i-0123456789`;
      const keys = this.issuer.issue(arn);
      this.document = { made: now, role: this.role, keys };
    }
    return this.document.keys;
  }
}

module.exports = { Imds };
