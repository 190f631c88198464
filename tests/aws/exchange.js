// One request to one of the stand-ins, and all that can become of it.
"use strict";

const { altered, asAccepted, bodyOf, html } = require("./answers");

const REDIRECTED = "/redirected";

class Exchange {
  // `place` is {aws, service, door, mode}.
  constructor(place, request, response) {
    Object.assign(this, place);
    this.request = request;
    this.response = response;
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

  async answer(given) {
    const { response, aws, entry, request } = this;
    const answer = asAccepted(given, request.headers.accept);
    entry.status = answer.status;
    entry.code = answer.code ?? "";
    if (response.destroyed) return;
    const body = bodyOf(answer);
    const headers = [...(answer.headers ?? [])];
    if (aws.clock.shown) headers.push("Date", aws.clock.date());
    if (answer.type) headers.push("Content-Type", answer.type);
    headers.push("Content-Length", String(body.length));
    response.sendDate = false; // Headers say it, if any.
    response.writeHead(answer.status, headers);
    response.end(body);
  }
}

// --- What faults do, by kind -----------------------------------------------

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
  redirect: (exchange, { status }) => {
    const { scheme, headers } = exchange.request;
    const here = `${scheme}://${headers.host}${REDIRECTED}`;
    const told = ["Location", here];
    return exchange.answer({ status, headers: told, text: "" });
  },
  alter: changing(({ set }) => set),
};

module.exports = { Exchange };
