// Checks signatures on the receiving side by signing again with AWS's own
// signer: same headers, same time, and then the same signature must come out.
//
//   const rules = { service: "sts", signed: ["host", "x-amz-date"] };
//   const verifier = new Verifier(rules, keys, clock);
//   const { key, region } = await verifier.check(request);  // Or a Refusal.
"use strict";

const crypto = require("node:crypto");
const { SignatureV4 } = require("@smithy/signature-v4");

const WINDOW_MS = 5 * 60000;
const MAX_SIGNERS = 64;
const WRONG =
  "The request signature we calculated does not match the signature you" +
  " provided. Check your AWS Secret Access Key and signing method. Consult" +
  " the service documentation for details.";
const UNKNOWN = "The security token included in the request is invalid.";
const EXPIRED = "The security token included in the request is expired";

// SHA-256 and its HMAC in the form in which the signer wants it, by OpenSSL.
class Sha256 {
  constructor(secret) {
    this.hash =
      secret === undefined
        ? crypto.createHash("sha256")
        : crypto.createHmac("sha256", secret);
  }

  update(bytes) {
    this.hash.update(bytes);
  }

  async digest() {
    return this.hash.digest();
  }
}

// `kind` is "missing", "incomplete", "invalid", "unknown" or "expired": each
// service has a code of its own for it.  `count` is "bad", or how a time is
// wrong: "early" and "late" the signature's, "expired" the keys'.
class Refusal extends Error {
  constructor(kind, message, count = "bad") {
    super(message);
    this.kind = kind;
    this.count = count;
  }
}

function demand(holds, kind, message) {
  if (!holds) throw new Refusal(kind, message);
}

// "20261121T110000Z" -> ms; NaN if it is no such time.
function parseDate(text) {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text ?? "");
  if (parts === null) return NaN;
  const [, year, month, day, hour, minute, second] = parts;
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

function formatDate(ms) {
  return new Date(ms).toISOString().replace(/[-:]|\.\d+/g, "");
}

function parseAuthorization(text) {
  demand(
    text !== undefined,
    "missing",
    "Request is missing Authentication Token",
  );
  const found = {};
  for (const piece of text.replace(/^AWS4-HMAC-SHA256\s+/, "").split(",")) {
    const [, name, value] = /^\s*(\w+)=(\S*)\s*$/.exec(piece) ?? [];
    if (name !== undefined) found[name] = value;
  }
  for (const name of ["Credential", "SignedHeaders", "Signature"]) {
    demand(
      found[name],
      "incomplete",
      `Authorization header requires '${name}' parameter.`,
    );
  }
  return found;
}

function parseScope(credential) {
  const parts = credential.split("/");
  const [key, day, region, service, end] = parts;
  demand(
    parts.length === 5 && end === "aws4_request",
    "incomplete",
    "Credential must have exactly 5 slash-delimited elements.",
  );
  return { key, day, region, service };
}

// The signer takes this header's word for the body's hash.
function checkContentHash(headers, body) {
  const told = headers["x-amz-content-sha256"];
  if (told === undefined) return;
  const hash = crypto.createHash("sha256").update(body).digest("hex");
  demand(told === hash, "invalid", WRONG);
}

class Verifier {
  // `rules`: {service, signed}, the headers that must be signed, and {region},
  // if it must be that one.
  constructor(rules, keys, clock) {
    this.rules = rules;
    this.keys = keys;
    this.clock = clock;
    this.signers = new Map(); // By all that the keys are.
  }

  // Whose it is, {key, region}; throws Refusal.
  async check(request) {
    const { headers, body } = request;
    const told = parseAuthorization(headers.authorization);
    const time = headers["x-amz-date"];
    demand(
      !Number.isNaN(parseDate(time)),
      "incomplete",
      `Date must be in ISO-8601 'basic format'. Got '${time ?? ""}'.`,
    );
    const scope = parseScope(told.Credential);
    this.#checkScope(scope, time);
    const keys = this.#find(scope.key, headers["x-amz-security-token"] ?? "");
    const names = new Set(told.SignedHeaders.split(";"));
    this.#checkSignedNames(names, headers);
    checkContentHash(headers, body);
    const signed = {};
    for (const name of names) signed[name] = headers[name];
    const { key, region } = scope;
    const how = { keys, names, region, time: parseDate(time) };
    const again = await this.sign(request, signed, how);
    const right = parseAuthorization(again.authorization);
    const same =
      right.Signature === told.Signature &&
      right.SignedHeaders === told.SignedHeaders;
    demand(same, "invalid", WRONG);
    this.checkTime(time);
    return { key, region };
  }

  // Both sides are whole seconds, as in AWS's texts.
  checkTime(text) {
    const time = parseDate(text);
    const now = Math.floor(this.clock.now() / 1000) * 1000;
    const [from, to] = [now - WINDOW_MS, now + WINDOW_MS];
    const told = (bound, sign) =>
      `${formatDate(bound)} (${formatDate(now)} ${sign} 5 min.)`;
    if (time < from) {
      const words = `Signature expired: ${text} is now earlier than `;
      throw new Refusal("invalid", words + told(from, "-"), "early");
    }
    if (time > to) {
      const words = `Signature not yet current: ${text} is still later than `;
      throw new Refusal("invalid", words + told(to, "+"), "late");
    }
  }

  // The headers with those of the signature; `names` undefined: of all.
  async sign(request, headers, { keys, names, region, time }) {
    const signed = await this.#signer(keys).sign(
      {
        method: request.method,
        protocol: "http:",
        hostname: "unused",
        path: "/",
        query: {},
        headers,
        body: request.body,
      },
      {
        signingDate: new Date(time),
        signingRegion: region,
        signableHeaders: names,
      },
    );
    return signed.headers;
  }

  #checkScope({ day, region, service }, time) {
    const { service: right, region: only } = this.rules;
    demand(
      service === right,
      "invalid",
      `Credential should be scoped to correct service: '${right}'. `,
    );
    demand(
      only == null ? region !== "" : region === only,
      "invalid",
      "Credential should be scoped to a valid region. ",
    );
    demand(
      day === time.slice(0, 8),
      "invalid",
      "Date in Credential scope does not match YYYYMMDD from ISO-8601 version" +
        ` of date from HTTP: '${day}' != '${time.slice(0, 8)}', from` +
        ` '${time}'.`,
    );
  }

  #find(key, token) {
    const keys = this.keys.find(key, token);
    demand(keys !== null, "unknown", UNKNOWN);
    const { ends } = keys;
    if (ends !== undefined && this.clock.now() >= ends * 1000) {
      throw new Refusal("expired", EXPIRED, "expired");
    }
    return keys;
  }

  #checkSignedNames(names, headers) {
    for (const name of this.rules.signed) {
      demand(
        names.has(name),
        "invalid",
        `'${name}' must be a 'SignedHeader' in the AWS Authorization.`,
      );
    }
    for (const name of names) {
      demand(Object.hasOwn(headers, name), "invalid", WRONG);
    }
  }

  #signer({ key, secret, token }) {
    const all = JSON.stringify([key, secret, token]);
    const known = this.signers.get(all);
    if (known !== undefined) return known;
    if (this.signers.size >= MAX_SIGNERS) this.signers.clear();
    const signer = new SignatureV4({
      credentials: {
        accessKeyId: key,
        secretAccessKey: secret,
        sessionToken: token === "" ? undefined : token,
      },
      region: "us-east-1", // Each call says its own.
      service: this.rules.service,
      sha256: Sha256,
      uriEscapePath: true,
      applyChecksum: false,
    });
    this.signers.set(all, signer);
    return signer;
  }
}

module.exports = {
  Refusal,
  Verifier,
  parseAuthorization,
  parseDate,
  parseScope,
};
