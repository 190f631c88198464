// One request to one of the stand-ins, and all that can become of it.
"use strict";

const timers = require("node:timers/promises");
const { altered, asAccepted, bodyOf, html } = require("./answers");

const REDIRECTED = "/redirected";
const PORTAL = "Please sign in to use this network";

class Exchange {
  // `place` is {aws, service, door, mode}; `tcp` the connection, or undefined
  // if it has gone already.
  constructor(place, request, response, tcp) {
    Object.assign(this, place);
    this.request = request;
    this.response = response;
    this.tcp = tcp;
  }

  async run() {
    const { aws, service, door, request } = this;
    const isRedirected = request.path === REDIRECTED;
    const operation = isRedirected ? "Redirected" : service.operation(request);
    this.entry = aws.log.add(service, operation, door, request);
    await this.mode.pass();
    if (isRedirected) return this.answer(html(404, "404 - Not Found"));
    const fault = aws.mischief.pick(service.name, operation);
    if (fault === null) return this.answer(await this.ask());
    this.entry.fault = fault.fault;
    return DEEDS[fault.fault](this, fault);
  }

  ask() {
    return this.service.answer(this.request, this.entry);
  }

  async answer(answer) {
    const head = this.#head(answer);
    if (head === null) return;
    head.response.end(head.body);
  }

  // Half of it, and the end of the connection.
  truncated(answer) {
    const head = this.#head(answer);
    if (head === null) return;
    const { response, body } = head;
    const half = body.subarray(0, body.length >> 1);
    response.write(half, () => response.socket?.destroySoon());
  }

  reset() {
    this.tcp?.resetAndDestroy();
  }

  // null: the client has gone.
  #head(given) {
    const { response, aws, entry, request } = this;
    const answer = asAccepted(given, request.headers.accept);
    entry.status = answer.status;
    entry.code = answer.code ?? "";
    if (response.destroyed) return null;
    const body = bodyOf(answer);
    const headers = [...(answer.headers ?? [])];
    if (aws.clock.shown) headers.push("Date", aws.clock.date());
    if (answer.type) headers.push("Content-Type", answer.type);
    headers.push("Content-Length", String(body.length));
    response.sendDate = false; // Headers say it, if any.
    response.writeHead(answer.status, headers);
    return { response, body };
  }
}

// --- What faults do, by kind -----------------------------------------------

const fails = (kind) => (exchange) =>
  exchange.answer(exchange.service.failure(kind));

// Changes the document of an answer that has one to give.
const changing = (changes) => async (exchange, fault) => {
  const answer = await exchange.ask();
  if (answer.status === 200 && answer.document !== undefined) {
    answer.document = altered(answer.document, changes(fault));
  }
  await exchange.answer(answer);
};

const DEEDS = {
  refuse: (exchange, { status, code, message }) =>
    exchange.answer(exchange.service.error(status, code, message)),
  500: fails("500"),
  throttle: fails("throttle"),
  reset: (exchange) => exchange.reset(),
  garbage: (exchange) => exchange.answer(html(200, PORTAL)),
  redirect: (exchange, { status }) => {
    const { scheme, headers } = exchange.request;
    const here = `${scheme}://${headers.host}${REDIRECTED}`;
    const told = ["Location", here];
    return exchange.answer({ status, headers: told, text: "" });
  },
  async slow(exchange, { ms }) {
    await timers.setTimeout(ms);
    await exchange.answer(await exchange.ask());
  },
  async truncate(exchange) {
    exchange.truncated(await exchange.ask());
  },
  alter: changing(({ set }) => set),
};

module.exports = { Exchange };
