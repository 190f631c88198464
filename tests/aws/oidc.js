// IAM Identity Center's OIDC service: a new access token for a refresh token
// (CreateToken).  The new one is valid at the portal (sso.js) at once.
"use strict";

const crypto = require("node:crypto");
const { freshId, json, parse } = require("./answers");
const { Tokens } = require("./tokens");

const FAILURES = {
  500: [500, "InternalServerException", "server_error"],
  throttle: [400, "SlowDownException", "slow_down"],
};

// How RFC 6749 calls it.
const ERRORS = {
  ExpiredTokenException: "expired_token",
  InvalidClientException: "invalid_client",
  InvalidGrantException: "invalid_grant",
  InvalidRequestException: "invalid_request",
  UnauthorizedClientException: "unauthorized_client",
  UnsupportedGrantTypeException: "unsupported_grant_type",
};

function freshToken(start) {
  return start + crypto.randomBytes(90).toString("base64url");
}

class Oidc {
  constructor({ clock, sso }) {
    this.name = "oidc";
    this.sso = sso;
    this.clients = new Tokens(clock); // By their id.
    this.refreshTokens = new Tokens(clock);
    this.accessSeconds = 28800;
    this.rotates = true;
  }

  operation({ path }) {
    return path === "/token" ? "CreateToken" : "Other";
  }

  told(request) {
    const { clientId = "", grantType = "" } = parse(request.body);
    return { clientId: String(clientId), grantType: String(grantType) };
  }

  error(status, code, description) {
    const error = ERRORS[code] ?? description;
    const headers = ["x-amzn-ErrorType", code, "x-amzn-RequestId", freshId()];
    const document = { error, error_description: description };
    return { ...json(status, document, headers), code };
  }

  failure(kind) {
    return this.error(...FAILURES[kind]);
  }

  answer(request, entry) {
    const type = (request.headers["content-type"] ?? "").split(";")[0].trim();
    const isCall =
      this.operation(request) !== "Other" && request.method === "POST";
    if (!isCall) return this.error(404, "UnknownOperationException", "");
    const wish = parse(request.body);
    const { clientId, clientSecret, grantType, refreshToken } = wish;
    if (type !== "application/json" || !clientId || !clientSecret) {
      return this.error(400, "InvalidRequestException", "Invalid request");
    }
    const client = this.clients.judge(clientId);
    const secret = this.clients.about(clientId)?.secret;
    if (client !== "valid" || secret !== clientSecret) {
      const words = "Invalid client";
      return this.error(401, "InvalidClientException", words);
    }
    if (grantType !== "refresh_token") {
      const words = "Unsupported grant type";
      return this.error(400, "UnsupportedGrantTypeException", words);
    }
    return this.#refresh(clientId, refreshToken, entry);
  }

  #refresh(clientId, refreshToken, entry) {
    entry.token = this.refreshTokens.judge(refreshToken);
    const about = this.refreshTokens.about(refreshToken);
    if (entry.token === "absent") {
      return this.error(400, "InvalidRequestException", "Invalid request");
    }
    if (entry.token !== "valid" || about.clientId !== clientId) {
      const words = "Invalid refresh token provided";
      return this.error(400, "InvalidGrantException", words);
    }
    const accessToken = freshToken("aoaAAAAA");
    this.sso.tokens.add(accessToken, this.accessSeconds);
    const answer = { accessToken, expiresIn: this.accessSeconds };
    if (this.rotates) {
      answer.refreshToken = freshToken("aorAAAAA");
      this.refreshTokens.remove(refreshToken);
      this.refreshTokens.add(answer.refreshToken, about.seconds, about);
    }
    return json(200, { ...answer, tokenType: "Bearer" });
  }
}

module.exports = { Oidc };
