// EC2's instance metadata service, version 2: tokens, the role and its keys, the
// region.
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

class Imds {
  constructor({ clock, issuer, account }) {
    this.name = "imds";
    this.clock = clock;
    this.issuer = issuer;
    this.account = account;
    this.tokens = new Tokens(clock);
    this.role = "instance-role";
    this.region = "eu-west-1";
    this.tokenSeconds = null; // After which tokens die, whatever was asked.
  }

  operation({ method, path }) {
    if (path === "/latest/api/token") return "PutToken";
    if (method !== "GET") return "Other";
    if (path === REGION) return "GetRegion";
    const role = this.#role(path);
    if (role === null) return "Other";
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

  answer(request, entry) {
    const operation = this.operation(request);
    if (operation === "PutToken") return this.#token(request);
    entry.token = this.tokens.judge(request.headers[TOKEN]);
    if (entry.token !== "valid") return this.error(401);
    if (request.method !== "GET") return this.error(405);
    if (operation === "GetRegion") return plain(200, this.region);
    if (request.path === IDENTITY) {
      const { region, account } = this;
      return json(200, { accountId: account.id, region });
    }
    return this.#roles(request.path);
  }

  // ".../security-credentials/NAME" -> NAME; null for any other path.
  #role(path) {
    if (path === ROLES) return "";
    return path.startsWith(`${ROLES}/`) ? path.slice(ROLES.length + 1) : null;
  }

  #token({ method, headers }) {
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
    const role = this.#role(path);
    if (role === null || this.role === null) return this.error(404);
    if (role === "") return plain(200, this.role);
    if (![this.role, encodeURIComponent(this.role)].includes(role)) {
      return this.error(404);
    }
    return this.#credentials();
  }

  #credentials() {
    const { id } = this.account;
    const keys = this.issuer.issue(
      `arn:aws:sts::${id}:assumed-role/${this.role}/i-0123456789`,
    );
    const document = {
      Code: "Success",
      LastUpdated: isoTime(Math.floor(this.clock.now() / 1000)),
      Type: "AWS-HMAC",
      AccessKeyId: keys.key,
      SecretAccessKey: keys.secret,
      Token: keys.token,
      Expiration: isoTime(keys.ends),
    };
    return { ...json(200, document), type: "text/plain" };
  }
}

module.exports = { Imds };
