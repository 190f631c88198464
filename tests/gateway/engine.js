// The way to the engine, by connections that are kept.
"use strict";

const http = require("node:http");

// A connection that lies idle is closed by us, before an engine closes it just
// when a request is on its way (dynalite: after 5 s).
const IDLE_MS = 2000;
const PASSED_ON = ["content-type", "x-amz-target"];

class Engine {
  // `signAnew(request, host)` tells the headers, if the engine checks them.
  constructor(url, signAnew) {
    const { hostname, port, host } = new URL(url);
    this.hostname = hostname;
    this.port = Number(port) || 80;
    this.host = host;
    this.signAnew = signAnew;
    this.agent = new http.Agent({ keepAlive: true, timeout: IDLE_MS });
  }

  // {status, type, body}; null if it does not answer.
  async call(request) {
    const headers =
      this.signAnew === undefined
        ? this.#headers(request)
        : await this.signAnew(request, this.host);
    try {
      return await this.#exchange(headers, request.body);
    } catch {
      return null; // Down, or gone before it had answered.
    }
  }

  #headers(request) {
    const headers = { host: this.host };
    for (const name of [...PASSED_ON, "authorization", "x-amz-date"]) {
      const value = request.headers[name];
      if (value !== undefined) headers[name] = value;
    }
    return headers;
  }

  #exchange(headers, body) {
    return new Promise((resolve, reject) => {
      const request = http.request({
        agent: this.agent,
        host: this.hostname,
        port: this.port,
        method: "POST",
        path: "/",
        headers: { ...headers, "content-length": body.length },
      });
      request.on("error", reject);
      request.on("response", (response) => {
        const pieces = [];
        response.on("data", (piece) => pieces.push(piece));
        response.on("error", reject);
        response.on("end", () =>
          resolve({
            status: response.statusCode,
            type: response.headers["content-type"],
            body: Buffer.concat(pieces),
          }),
        );
      });
      request.end(body);
    });
  }
}

module.exports = { Engine };
