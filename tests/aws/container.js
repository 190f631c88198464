// The agent that has the keys of a container: of ECS, by a path, or of EKS Pod
// Identity, by a token.
"use strict";

const { json } = require("./answers");
const { isoTime } = require("./issuer");


class Container {
  constructor({ issuer, account }) {
    this.name = "container";
    this.issuer = issuer;
    this.account = account;
    this.path = "/v2/credentials/task"; // With its query, if it has one.
    this.authorization = null; // What the header must be; null: anything.
    this.roleArn = `arn:aws:iam::${account.id}:role/task-role`;
    this.accountId = null; // In the document; null: it has none.
  }

  operation() {
    return "GetCredentials";
  }

  told() {
    return {};
  }

  error(status, code, message) {
    return { ...json(status, { code, message }), code };
  }

  answer({ method, url, headers }, entry) {
    const shown = headers.authorization;
    const wanted = this.authorization;
    entry.token = shown === undefined ? "absent" : "wrong";
    if (wanted !== null && shown === wanted) entry.token = "valid";
    if (method !== "GET") {
      return this.error(405, "MethodNotAllowed", "it is to be got");
    }
    if (wanted !== null && shown !== wanted) {
      return this.error(403, "AccessDeniedException", "who asks is unknown");
    }
    if (url !== this.path) {
      return this.error(404, "InvalidIdInRequest", "there is no such task");
    }
    return this.#credentials();
  }

  #credentials() {
    const name = this.roleArn.slice(this.roleArn.lastIndexOf("/") + 1);
    const { id } = this.account;
    const arn = `arn:aws:sts::${id}:assumed-role/${name}/task`;
    const keys = this.issuer.issue(arn);
    const document = {
      RoleArn: this.roleArn,
      AccessKeyId: keys.key,
      SecretAccessKey: keys.secret,
      Token: keys.token,
      Expiration: isoTime(keys.ends),
    };
    if (this.accountId !== null) document.AccountId = this.accountId;
    return json(200, document);
  }
}

module.exports = { Container };
