// AWS's Security Token Service, as far as those need it who look for keys:
// AssumeRole, signed, and AssumeRoleWithWebIdentity, not signed.  Forms come,
// XML goes (API version 2011-06-15), or JSON to who accepts that: its times are
// seconds since 1970.
"use strict";

const { Refusal, Verifier } = require("../gateway/verifier");
const { XML, freshId } = require("./answers");
const { isoTime } = require("./issuer");
const { Wrong, checkForm, checkText, demand } = require("./sts_form");
const { Tokens } = require("./tokens");

const VERSION = "2011-06-15";
const XMLNS = `https://sts.amazonaws.com/doc/${VERSION}/`;
const FORM = "application/x-www-form-urlencoded";
const SIGNED = ["host", "x-amz-date"];
const LONGEST_S = 3600;

// How what is wrong with a signature is called here.
const SIGNATURE = {
  missing: [403, "MissingAuthenticationToken"],
  incomplete: [400, "IncompleteSignature"],
  invalid: [403, "SignatureDoesNotMatch"],
  unknown: [403, "InvalidClientTokenId"],
  expired: [403, "ExpiredToken"],
};

class Sts {
  constructor({ clock, issuer, keys, account }) {
    this.name = "sts";
    this.clock = clock;
    this.issuer = issuer;
    this.keys = keys;
    this.account = account;
    this.users = new Map(); // ARNs of those who have keys of their own.
    this.roles = new Map();
    this.webIdentities = new Tokens(clock);
    this.rules = { service: "sts", signed: SIGNED, region: null };
    this.verifier = new Verifier(this.rules, keys, clock);
  }

  operation(request) {
    const action = new URLSearchParams(request.body.toString()).get("Action");
    return action ?? "Other";
  }

  // What of the request may be told.
  told(request) {
    const form = Object.fromEntries(
      new URLSearchParams(request.body.toString()),
    );
    if ("WebIdentityToken" in form) form.WebIdentityToken = "(secret)";
    return form;
  }

  async answer(request, entry) {
    try {
      return await this.#perform(request, entry);
    } catch (problem) {
      if (!(problem instanceof Wrong)) throw problem;
      return this.error(problem.status, problem.code, problem.message);
    }
  }

  error(status, code, message) {
    const type = status < 500 ? "Sender" : "Receiver";
    const told = { Type: type, Code: code, Message: message };
    const id = freshId();
    return {
      status,
      type: XML,
      headers: ["x-amzn-RequestId", id],
      document: {
        ErrorResponse: { xmlns: XMLNS, Error: told, RequestId: id },
      },
      code,
    };
  }

  async #perform(request, entry) {
    const type = request.headers["content-type"] ?? "";
    const isCall = request.method === "POST" && request.path === "/";
    if (!isCall || type.split(";")[0].trim() !== FORM) {
      throw new Wrong(404, "UnknownOperationException", "");
    }
    const form = new URLSearchParams(request.body.toString());
    const action = form.get("Action");
    const version = form.get("Version") ?? "NO_VERSION_SPECIFIED";
    const perform = version === VERSION ? PERFORM[action] : undefined;
    const words = `Could not find operation ${action} for version ${version}`;
    demand(perform !== undefined, 400, "InvalidAction", words);
    const result = await perform(this, request, form, entry);
    return this.#success(action, result);
  }

  async assumeRole(request, form, entry) {
    const caller = await this.#caller(request, entry);
    const wish = checkForm(form);
    const { duration } = wish;
    const role = this.roles.get(wish.role);
    demand(
      role !== undefined &&
        (role.externalId ?? form.get("ExternalId")) === form.get("ExternalId"),
      403,
      "AccessDenied",
      `User: ${caller.arn} is not authorized to perform: sts:AssumeRole on` +
        ` resource: ${wish.role}`,
    );
    checkLimit(duration);
    return this.#session(request, wish);
  }

  // A real service would look at a signature; nobody should send one, for it
  // would be that of other keys.
  assumeRoleWithWebIdentity(request, form, entry) {
    const { headers } = request;
    const isBare =
      headers.authorization === undefined &&
      headers["x-amz-security-token"] === undefined;
    entry.signature = isBare ? "none" : "bad";
    demand(isBare, 403, "AccessDenied", "This call is not to be signed");
    const wish = checkForm(form);
    const name = "WebIdentityToken";
    const token = checkText(form, name, 4, 20000, /^[\s\S]*$/, true);
    entry.token = this.webIdentities.judge(token);
    const unknown = "No OpenIDConnect provider found in your account for it";
    demand(entry.token !== "wrong", 400, "InvalidIdentityToken", unknown);
    const over = "Token expired: it is later than its expiration date/time";
    demand(entry.token === "valid", 400, "ExpiredTokenException", over);
    const role = this.roles.get(wish.role);
    const denied = "Not authorized to perform sts:AssumeRoleWithWebIdentity";
    demand(role !== undefined, 403, "AccessDenied", denied);
    checkLimit(wish.duration);
    const { subject } = this.webIdentities.about(token);
    return {
      SubjectFromWebIdentityToken: subject,
      Audience: "sts.amazonaws.com",
      ...this.#session(request, wish),
      Provider: "https://oidc.example.com/id",
    };
  }

  // Who signed: {arn}.
  async #caller(request, entry) {
    const { headers } = request;
    entry.signature = headers.authorization === undefined ? "none" : "bad";
    try {
      const { key, region } = await this.verifier.check(request);
      Object.assign(entry, { key, region, signature: "good" });
      const user = `arn:aws:iam::${this.account.id}:user/${key}`;
      const known = this.issuer.owner(key);
      const arn = known ?? this.users.get(key) ?? user;
      return { arn };
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      throw new Wrong(...SIGNATURE[problem.kind], problem.message);
    }
  }

  #session(request, { arn, session, duration }) {
    const keys = this.issuer.issue(arn, duration);
    const inJson = request.headers.accept?.includes("application/json");
    return {
      AssumedRoleUser: {
        AssumedRoleId: `AROA${keys.key.slice(4)}:${session}`,
        Arn: arn,
      },
      Credentials: {
        AccessKeyId: keys.key,
        SecretAccessKey: keys.secret,
        SessionToken: keys.token,
        Expiration: inJson ? keys.ends : isoTime(keys.ends),
      },
    };
  }

  #success(action, result) {
    const id = freshId();
    const response = { xmlns: XMLNS };
    response[`${action}Result`] = result;
    response.ResponseMetadata = { RequestId: id };
    return {
      status: 200,
      type: XML,
      headers: ["x-amzn-RequestId", id],
      document: { [`${action}Response`]: response },
    };
  }
}

// Every role's MaxSessionDuration is an hour.
function checkLimit(duration) {
  demand(
    (duration ?? 0) <= LONGEST_S,
    400,
    "ValidationError",
    "The requested DurationSeconds exceeds the MaxSessionDuration set for" +
      " this role.",
  );
}

const PERFORM = {
  AssumeRole: (sts, ...what) => sts.assumeRole(...what),
  AssumeRoleWithWebIdentity: (sts, ...what) =>
    sts.assumeRoleWithWebIdentity(...what),
};

module.exports = { Sts };
