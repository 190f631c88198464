// A forward proxy on 127.0.0.1: tunnels (CONNECT) and plain requests, with
// Basic authentication if it is told to ask for it.
//
// It reaches this machine alone: 127.0.0.1 and localhost.
"use strict";

const http = require("node:http");
const https = require("node:https");
const net = require("node:net");
const { HOST } = require("../gateway/doors");

const OURS = ["127.0.0.1", "localhost", "[::1]"];

class Proxy {
  constructor() {
    this.auth = null; // "user:password" that it wants to be told.
    this.forget();
  }

  forget() {
    this.counts = { plain: 0, unauthorized: 0, targets: [] };
  }

  // Opens another door, of TLS if it is given {key, cert}.  Returns its port.
  async open(tls) {
    const listener = (request, response) => this.#forward(request, response);
    const server = tls
      ? https.createServer(tls, listener)
      : http.createServer(listener);
    server.on("tlsClientError", (_, socket) => socket.destroy());
    server.on("connect", (request, socket, head) =>
      this.#connect(request, socket, head),
    );
    server.on("clientError", (_, socket) => socket.destroy());
    await new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, HOST, resolve);
    });
    return server.address().port;
  }

  // The port of 127.0.0.1, or the status with which it is refused.
  #admit(request, target) {
    this.counts.targets.push(target);
    const shown = request.headers["proxy-authorization"];
    const basic = (auth) => "Basic " + Buffer.from(auth).toString("base64");
    if (this.auth !== null && shown !== basic(this.auth)) {
      this.counts.unauthorized += 1;
      return { status: 407 };
    }
    const colon = target.lastIndexOf(":");
    if (!OURS.includes(target.slice(0, colon))) return { status: 502 };
    return { port: Number(target.slice(colon + 1)) };
  }

  #connect(request, socket, head) {
    socket.on("error", () => {});
    const { port, status } = this.#admit(request, request.url);
    if (status) return socket.end(this.#refusal(status));
    const target = net.connect(port, HOST, () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      target.write(head);
      target.pipe(socket).pipe(target);
    });
    target.on("error", () => socket.destroy());
    target.on("close", () => socket.destroy());
    socket.on("close", () => target.destroy());
  }

  #refusal(status) {
    const asks =
      status === 407 ? 'Proxy-Authenticate: Basic realm="p"\r\n' : "";
    const words = http.STATUS_CODES[status] ?? "Refused";
    return (
      `HTTP/1.1 ${status} ${words}\r\n${asks}` +
      "Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
  }

  #forward(request, response) {
    let url;
    try {
      url = new URL(request.url);
    } catch {
      return response.writeHead(400).end(); // It was not asked as a proxy.
    }
    const target = `${url.hostname}:${url.port || 80}`;
    const { port, status } = this.#admit(request, target);
    if (status) return response.socket.end(this.#refusal(status));
    this.counts.plain += 1;
    const headers = { ...request.headers };
    delete headers["proxy-authorization"];
    delete headers["proxy-connection"];
    const path = url.pathname + url.search;
    const { method } = request;
    const onward = http.request({ host: HOST, port, method, path, headers });
    onward.on("error", () => response.destroy());
    onward.on("response", (answer) => {
      response.sendDate = false;
      response.writeHead(answer.statusCode, answer.rawHeaders);
      answer.on("error", () => response.destroy());
      answer.pipe(response);
    });
    request.pipe(onward);
  }
}

module.exports = { Proxy };
