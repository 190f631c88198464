// AWS Sign-In, as far as those need it who have signed on with `aws login`: new
// keys for a refresh token (CreateOAuth2Token), for whoever proves by DPoP (RFC
// 9449) that he has the private key that the token was issued for.
"use strict";

const crypto = require("node:crypto");
const { freshId, json, parse } = require("./answers");
const { Tokens } = require("./tokens");

const KEYS_S = 900;
const PROOF_S = 300; // A proof is good for so long before and after its time.

const FAILURES = {
  500: [500, "InternalServerException", "Internal error"],
  throttle: [429, "TooManyRequestsError", "Too many requests"],
};

// What is told beside a code.
const ERRORS = {
  InternalServerException: "server_error",
  ValidationException: "INVALID_REQUEST",
};

function decoded(part) {
  return parse(Buffer.from(part ?? "", "base64url"));
}

// {x, y} of the public key of a private one in PEM.
function pointOf(pem) {
  const { x, y } = crypto.createPublicKey(pem).export({ format: "jwk" });
  return { x, y };
}

class Signin {
  constructor({ clock, issuer, account }) {
    this.name = "signin";
    this.clock = clock;
    this.issuer = issuer;
    this.account = account;
    this.refreshTokens = new Tokens(clock);
    this.once = false; // Whether a refresh token is good for one use.
    this.proofs = new Set(); // By their jti: each is good once.
  }

  operation({ path }) {
    return path === "/v1/token" ? "CreateOAuth2Token" : "Other";
  }

  told(request) {
    const { clientId = "", grantType = "" } = parse(request.body);
    return { clientId: String(clientId), grantType: String(grantType) };
  }

  error(status, code, message) {
    const headers = ["x-amzn-ErrorType", code, "x-amzn-RequestId", freshId()];
    const error = ERRORS[code] ?? message;
    return { ...json(status, { error, message }, headers), code };
  }

  failure(kind) {
    return this.error(...FAILURES[kind]);
  }

  answer(request, entry) {
    const type = (request.headers["content-type"] ?? "").split(";")[0].trim();
    const isCall =
      this.operation(request) !== "Other" && request.method === "POST";
    if (!isCall) return this.error(404, "UnknownOperationException", "");
    const { clientId, grantType, refreshToken } = parse(request.body);
    if (
      type !== "application/json" ||
      !clientId ||
      grantType !== "refresh_token" ||
      !refreshToken
    ) {
      return this.error(400, "ValidationException", "Invalid request");
    }
    entry.token = this.refreshTokens.judge(refreshToken);
    if (entry.token !== "valid") {
      return this.error(401, "AccessDeniedException", "TOKEN_EXPIRED");
    }
    const about = this.refreshTokens.about(refreshToken);
    const flaw = this.#flawOfProof(request, about.point);
    entry.signature = flaw === "" ? "good" : "bad";
    if (flaw !== "") return this.error(400, "ValidationException", flaw);
    if (about.clientId !== clientId) {
      return this.error(400, "ValidationException", "Invalid client");
    }
    return this.#refresh(refreshToken, about);
  }

  // Why the request does not prove that its sender has the key; "" if it does.
  #flawOfProof({ scheme, method, path, headers }, point) {
    const [head, body, signature, ...rest] = (headers.dpop ?? "").split(".");
    const { typ, alg, jwk } = decoded(head);
    const { jti, htm, htu, iat } = decoded(body);
    if (!signature || rest.length !== 0) return "DPoP proof is missing";
    if (typ !== "dpop+jwt" || alg !== "ES256") return "DPoP proof of no kind";
    if (!jwk || jwk.kty !== "EC" || jwk.crv !== "P-256" || jwk.d) {
      return "DPoP proof without a public key";
    }
    if (jwk.x !== point.x || jwk.y !== point.y) return "DPoP proof of another";
    const isSigned = crypto.verify(
      "sha256",
      Buffer.from(`${head}.${body}`),
      {
        dsaEncoding: "ieee-p1363", // The two numbers, as a JWT has them.
        key: crypto.createPublicKey({ format: "jwk", key: jwk }),
      },
      Buffer.from(signature, "base64url"),
    );
    if (!isSigned) return "DPoP proof with a wrong signature";
    if (htm !== method) return "DPoP proof for another method";
    if (htu !== `${scheme}://${headers.host}${path}`) {
      return "DPoP proof for another URL";
    }
    const age = this.clock.now() / 1000 - iat;
    if (!(Math.abs(age) <= PROOF_S)) return "DPoP proof of another time";
    if (typeof jti !== "string" || jti === "" || this.proofs.has(jti)) {
      return "DPoP proof that was used";
    }
    this.proofs.add(jti);
    return "";
  }

  #refresh(refreshToken, about) {
    const arn = `arn:aws:iam::${this.account.id}:user/alice`;
    const { key, secret, token, ends } = this.issuer.issue(arn, KEYS_S);
    const next = `next-${crypto.randomBytes(90).toString("base64url")}`;
    this.refreshTokens.add(next, about.seconds, about);
    if (this.once) this.refreshTokens.remove(refreshToken);
    return json(200, {
      accessToken: {
        accessKeyId: key,
        secretAccessKey: secret,
        sessionToken: token,
      },
      tokenType: "aws_sigv4",
      expiresIn: ends - Math.floor(this.clock.now() / 1000),
      refreshToken: next,
    });
  }
}

module.exports = { Signin, pointOf };
