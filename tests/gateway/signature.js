// Checks signatures on the receiving side by signing again with AWS's own
// signer: same headers, same time, and then the same signature must come out.
// Knows one set of keys.
"use strict";

const crypto = require("node:crypto");
const { SignatureV4 } = require("@smithy/signature-v4");
const answers = require("./answers");

const WINDOW_MS = 5 * 60000;
const INVALID = "InvalidSignatureException";
const INCOMPLETE = "IncompleteSignatureException";
const WRONG =
  "The request signature we calculated does not match the signature you" +
  " provided. Check your AWS Secret Access Key and signing method. Consult" +
  " the service documentation for details.";
const INVALID_TOKEN = "The security token included in the request is invalid.";

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

class Refusal extends Error {
  constructor(code, message, count = "bad") {
    super(message);
    this.code = code;
    this.count = count; // Of Counts.signatures.
  }
}

function demand(holds, code, message) {
  if (!holds) throw new Refusal(code, message);
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
    "MissingAuthenticationTokenException",
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
      INCOMPLETE,
      `Authorization header requires '${name}' parameter.`,
    );
  }
  return found;
}

function parseScope(credential, time) {
  const parts = credential.split("/");
  const [key, day, region, service, end] = parts;
  demand(
    parts.length === 5 && end === "aws4_request",
    INCOMPLETE,
    "Credential must have exactly 5 slash-delimited elements.",
  );
  demand(
    service === "dynamodb",
    INVALID,
    "Credential should be scoped to correct service: 'dynamodb'. ",
  );
  demand(
    day === time.slice(0, 8),
    INVALID,
    "Date in Credential scope does not match YYYYMMDD from ISO-8601 version" +
      ` of date from HTTP: '${day}' != '${time.slice(0, 8)}', from '${time}'.`,
  );
  return { key, region, service };
}

function checkSignedNames(names, headers) {
  for (const name of ["host", "x-amz-date", "x-amz-target"]) {
    demand(
      names.has(name),
      INVALID,
      `'${name}' must be a 'SignedHeader' in the AWS Authorization.`,
    );
  }
  for (const name of names) {
    demand(Object.hasOwn(headers, name), INVALID, WRONG);
  }
}

// The signer takes this header's word for the body's hash.
function checkContentHash(headers, body) {
  const told = headers["x-amz-content-sha256"];
  if (told === undefined) return;
  const hash = crypto.createHash("sha256").update(body).digest("hex");
  demand(told === hash, INVALID, WRONG);
}

class Signatures {
  constructor(keys, clock, counts) {
    this.keys = keys; // {key, secret, token}
    this.clock = clock;
    this.counts = counts;
    this.signer = new SignatureV4({
      credentials: {
        accessKeyId: keys.key,
        secretAccessKey: keys.secret,
        sessionToken: keys.token === "" ? undefined : keys.token,
      },
      region: "us-east-1", // Each call says its own.
      service: "dynamodb",
      sha256: Sha256,
      uriEscapePath: true,
      applyChecksum: false,
    });
  }

  // Null if all is well, else the answer.
  async refusal(request) {
    try {
      await this.#check(request);
    } catch (problem) {
      return this.#refused(problem);
    }
    this.counts.signatures.good += 1;
    return null;
  }

  // The same, of a request that was found good and has been held since.
  untimely(request) {
    try {
      this.#checkTime(request.headers["x-amz-date"]);
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
    const { authorization, "x-amz-date": time } = request.headers;
    const { Credential: credential } = parseAuthorization(authorization);
    const { region } = parseScope(credential, time);
    return this.#sign(request, headers, region, parseDate(time));
  }

  #refused(problem) {
    if (!(problem instanceof Refusal)) throw problem;
    this.counts.signatures[problem.count] += 1;
    return answers.refusal(this.clock, problem.code, problem.message);
  }

  async #check(request) {
    const { headers, body } = request;
    const told = parseAuthorization(headers.authorization);
    const time = headers["x-amz-date"];
    demand(
      !Number.isNaN(parseDate(time)),
      INCOMPLETE,
      `Date must be in ISO-8601 'basic format'. Got '${time ?? ""}'.`,
    );
    const scope = parseScope(told.Credential, time);
    this.#checkKeys(scope.key, headers["x-amz-security-token"] ?? "");
    const names = new Set(told.SignedHeaders.split(";"));
    checkSignedNames(names, headers);
    checkContentHash(headers, body);
    const signed = {};
    for (const name of names) signed[name] = headers[name];
    const again = await this.#sign(
      request,
      signed,
      scope.region,
      parseDate(time),
      names,
    );
    const right = parseAuthorization(again.authorization);
    const same =
      right.Signature === told.Signature &&
      right.SignedHeaders === told.SignedHeaders;
    demand(same, INVALID, WRONG);
    this.#checkTime(time);
  }

  #checkKeys(key, token) {
    const known = key === this.keys.key && token === this.keys.token;
    demand(known, "UnrecognizedClientException", INVALID_TOKEN);
  }

  // Both sides are whole seconds, as in DynamoDB's texts.
  #checkTime(text) {
    const time = parseDate(text);
    const now = Math.floor(this.clock.now() / 1000) * 1000;
    const [from, to] = [now - WINDOW_MS, now + WINDOW_MS];
    const told = (bound, sign) =>
      `${formatDate(bound)} (${formatDate(now)} ${sign} 5 min.)`;
    if (time < from) {
      const words = `Signature expired: ${text} is now earlier than `;
      throw new Refusal(INVALID, words + told(from, "-"), "early");
    }
    if (time > to) {
      const words = `Signature not yet current: ${text} is still later than `;
      throw new Refusal(INVALID, words + told(to, "+"), "late");
    }
  }

  async #sign(request, headers, region, time, names) {
    const signed = await this.signer.sign(
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
}

module.exports = { Signatures };
