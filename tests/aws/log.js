// What the stand-ins were asked, for GET /log: nothing of it is secret.
"use strict";

const TOLD = [
  "accept",
  "accept-encoding",
  "connection",
  "content-type",
  "host",
  "user-agent",
  "x-amz-date",
  "x-aws-ec2-metadata-token-ttl-seconds",
  "x-forwarded-for",
];

// Of these it is only told that they were there.
const SECRET = [
  "authorization",
  "proxy-authorization",
  "x-amz-security-token",
  "x-aws-ec2-metadata-token",
];

function relevant(headers) {
  const told = {};
  for (const name of TOLD) {
    if (headers[name] !== undefined) told[name] = headers[name];
  }
  for (const name of SECRET) {
    if (headers[name] !== undefined) told[name] = "(secret)";
  }
  return told;
}

class Log {
  constructor() {
    this.forget();
  }

  forget() {
    this.requests = [];
  }

  // An entry to which whoever answers adds what became of it.
  add(service, operation, door, request) {
    const entry = {
      service: service.name,
      operation,
      door,
      method: request.method,
      path: request.path,
      headers: relevant(request.headers),
      form: operation === "Redirected" ? {} : service.told(request),
      key: "",
      region: "",
      signature: "none",
      token: "absent",
      fault: "",
      status: 0, // None was given, or not yet.
      code: "",
    };
    this.requests.push(entry);
    return entry;
  }
}

module.exports = { Log };
