// The portal of IAM Identity Center: role credentials for whoever shows an
// access token of it (GetRoleCredentials).
"use strict";

const { freshId, json } = require("./answers");
const { Tokens } = require("./tokens");

const FAILURES = {
  500: [500, "InternalServerException", "Internal error"],
  throttle: [429, "TooManyRequestsException", "HTTP 429 Unknown Code"],
};

class Sso {
  constructor({ clock, issuer }) {
    this.name = "sso";
    this.issuer = issuer;
    this.tokens = new Tokens(clock);
    this.roles = null; // [{account_id, role_name}]; null: all there may be.
  }

  operation({ path }) {
    return path === "/federation/credentials" ? "GetRoleCredentials" : "Other";
  }

  told(request) {
    return Object.fromEntries(request.query);
  }

  error(status, code, message) {
    const headers = ["x-amzn-ErrorType", code, "x-amzn-RequestId", freshId()];
    const type = `com.amazonaws.switchboard.portal#${code}`;
    const answer = json(status, { message, __type: type }, headers);
    return { ...answer, code };
  }

  failure(kind) {
    return this.error(...FAILURES[kind]);
  }

  answer(request, entry) {
    const { method, query, headers } = request;
    const isCall = this.operation(request) !== "Other" && method === "GET";
    if (!isCall) return this.error(404, "UnknownOperationException", "");
    const account = query.get("account_id");
    const role = query.get("role_name");
    entry.token = this.tokens.judge(headers["x-amz-sso_bearer_token"]);
    if (entry.token === "absent" || !role || !account) {
      const words = "A token, role_name and account_id are required";
      return this.error(400, "InvalidRequestException", words);
    }
    if (entry.token !== "valid") {
      const words = "Session token not found or invalid";
      return this.error(401, "UnauthorizedException", words);
    }
    if (!/^\d{12}$/.test(account)) {
      const words = "The account is no account id";
      return this.error(400, "InvalidRequestException", words);
    }
    return this.#credentials(account, role);
  }

  #credentials(account, role) {
    const isOurs = (one) =>
      one.account_id === account && one.role_name === role;
    if (this.roles !== null && !this.roles.some(isOurs)) {
      return this.error(403, "ForbiddenException", "No access");
    }
    const name = `AWSReservedSSO_${role}_0123456789abcdef`;
    const arn = `arn:aws:sts::${account}:assumed-role/${name}/somebody`;
    const { key, secret, token, ends } = this.issuer.issue(arn);
    return json(200, {
      roleCredentials: {
        accessKeyId: key,
        secretAccessKey: secret,
        sessionToken: token,
        expiration: ends * 1000,
      },
    });
  }
}

module.exports = { Sso };
