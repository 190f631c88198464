// Where clients come in: ports on 127.0.0.1 that can be shut, with every
// connection reset, and opened again as the same ones.
"use strict";

const fs = require("node:fs");
const http = require("node:http");
const https = require("node:https");
const net = require("node:net");

const HOST = "127.0.0.1";
const OPENING_MS = 60000;
const MAX_BODY = 16 << 20;

// While a door is shut, nobody may get its port: so not one of those that the
// kernel gives away by itself.
function likelyPort() {
  let low = 32768;
  try {
    const range = "/proc/sys/net/ipv4/ip_local_port_range";
    low = Number(fs.readFileSync(range, "utf8").split(/\s+/)[0]) || low;
  } catch {
    // Not Linux.
  }
  const from = 10240;
  if (low <= from) return 0; // There are no others.
  return from + Math.floor(Math.random() * (low - from));
}

const PATIENT = { keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 };

class Door {
  // Calls `serve` with {method, url, headers, body}, the response, and the TCP
  // connection, undefined if that has gone.  `tls` is {key, cert}, or undefined.
  constructor(serve, tls) {
    const receive = (incoming, response) =>
      this.#receive(incoming, response, serve);
    const server =
      tls === undefined
        ? http.createServer(PATIENT, receive)
        : https.createServer({ ...PATIENT, ...tls }, receive);
    server.on("clientError", (_, socket) => socket.destroy());
    this.server = server;
    this.port = 0;
    this.listener = null;
    this.sockets = new Map(); // Open TCP connections by the client's port.
  }

  async open() {
    const end = Date.now() + OPENING_MS;
    const known = this.port;
    while (this.listener === null) {
      try {
        await this.#listen(known || likelyPort());
      } catch (problem) {
        if (Date.now() > end) throw problem;
        if (known) await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }

  async shut() {
    if (this.listener === null) return;
    const listener = this.listener;
    this.listener = null;
    const closed = new Promise((resolve) => listener.close(resolve));
    for (const socket of this.sockets.values()) socket.resetAndDestroy();
    await closed;
  }

  // One that does not come whole never was.
  #receive(incoming, response, serve) {
    const tcp = this.sockets.get(incoming.socket.remotePort);
    const pieces = [];
    let size = 0;
    incoming.on("error", () => {});
    response.on("error", () => {});
    incoming.on("data", (piece) => {
      size += piece.length;
      if (size > MAX_BODY) tcp?.resetAndDestroy();
      pieces.push(piece);
    });
    incoming.on("end", () => {
      const { method, url, headers } = incoming;
      const body = Buffer.concat(pieces);
      serve({ method, url, headers, body }, response, tcp);
    });
  }

  #listen(port) {
    const options = { noDelay: true };
    const listener = net.createServer(options, (socket) => this.#admit(socket));
    return new Promise((resolve, reject) => {
      listener.once("error", reject);
      listener.listen({ host: HOST, port, backlog: 1024 }, () => {
        listener.off("error", reject);
        listener.on("error", () => {}); // Of accept(): the client's loss.
        this.listener = listener;
        this.port = listener.address().port;
        resolve();
      });
    });
  }

  #admit(socket) {
    const port = socket.remotePort;
    if (port === undefined) return socket.destroy(); // Gone already.
    this.sockets.set(port, socket);
    socket.on("error", () => {}); // Its close follows.
    socket.on("close", () => {
      if (this.sockets.get(port) === socket) this.sockets.delete(port);
    });
    this.server.emit("connection", socket);
  }
}

module.exports = { Door, HOST };
