// One request of a client, and all that can become of it.
"use strict";

const answers = require("./answers");

const LEFT_OPEN_MS = 60000;

// One that nobody answers or ends stays, but not for ever.
function leaveOpen(tcp) {
  tcp?.setTimeout(LEFT_OPEN_MS, () => tcp.destroy());
}

class Exchange {
  // `request` is {method, url, action, headers, body}; `tcp` is the connection,
  // or undefined if it has gone already.
  constructor(gateway, request, response, tcp) {
    this.gateway = gateway;
    this.request = request;
    this.response = response;
    this.tcp = tcp;
  }

  async run() {
    const { clock, counts, faults, mode, signatures } = this.gateway;
    const { action, body, method, url } = this.request;
    await mode.pass();
    if (method !== "POST" || url !== "/") {
      return this.answer(answers.notFound(clock));
    }
    const refusal = await signatures.refusal(this.request);
    if (refusal !== null) return this.answer(refusal);
    const fault = faults.pick(action, body);
    if (fault === null) return this.serve();
    counts.add(counts.faults, fault.kind);
    return DEEDS[fault.kind](this, fault);
  }

  async serve() {
    const answer = await this.ask();
    if (answer !== null) await this.answer(answer);
  }

  // The answer to give: DynamoDB's words around the engine's.  null, and the
  // client is told, if there is none.
  async ask() {
    const answer = await this.apply();
    if (answer === null) await this.#tellNoEngine();
    return answer;
  }

  // The same, whatever the client hears.
  async apply() {
    const { clock, counts, engine, mode, signatures, tables } = this.gateway;
    await mode.pass();
    const untimely = signatures.untimely(this.request);
    if (untimely !== null) return untimely;
    const early = tables?.before(this.request) ?? null;
    if (early !== null) return early;
    let answer = await engine.call(this.request);
    if (answer === null) return null;
    counts.add(counts.applied, this.request.action);
    if (tables) answer = tables.after(this.request, answer);
    return answers.fromService(clock, answer.status, answer.body, answer.type);
  }

  async answer(answer) {
    await this.gateway.mode.pass();
    const { status, headers, body } = answer;
    const { response } = this;
    if (!response.destroyed) {
      headers.push("Content-Length", String(body.length));
      response.sendDate = false; // Headers say it, if any.
      response.writeHead(status, headers);
      response.end(body);
    }
    this.gateway.answered(this.request.body);
  }

  // Half of it, and the end of the connection.
  async truncated(answer) {
    await this.gateway.mode.pass();
    const { status, headers, body } = answer;
    const { response } = this;
    if (response.destroyed) return;
    headers.push("Content-Length", String(body.length));
    response.sendDate = false;
    response.writeHead(status, headers);
    response.write(body.subarray(0, body.length >> 1), () => this.close());
  }

  drop() {
    leaveOpen(this.tcp);
  }

  reset() {
    this.tcp?.resetAndDestroy();
  }

  close() {
    this.response.socket?.destroySoon();
  }

  halfClose() {
    this.response.socket?.end();
    leaveOpen(this.tcp);
  }

  // As a load balancer does whose back end has gone, or is going.
  async #tellNoEngine() {
    const { chance, clock } = this.gateway;
    if (chance.next() < 0.5) return this.reset();
    return this.answer(answers.badGateway(clock));
  }
}

// --- What faults do, by kind -----------------------------------------------

const fails = (kind) => (exchange, { retryAfter }) => {
  const { clock } = exchange.gateway;
  return exchange.answer(answers.failure(clock, kind, retryAfter));
};
const portal = (exchange) =>
  exchange.answer(answers.portal(exchange.gateway.clock));

// Does that instead of handing on the answer that the engine has given.
const after = (deed) => async (exchange, fault) => {
  const answer = await exchange.ask();
  if (answer !== null) await deed(exchange, fault, answer);
};

const DEEDS = {
  async delay(exchange, { ms }) {
    await exchange.gateway.delay(ms);
    await exchange.serve();
  },
  drop: (exchange) => exchange.drop(),
  reset: (exchange) => exchange.reset(),
  close: (exchange) => exchange.close(),
  "half-close": (exchange) => exchange.halfClose(),
  throttle: fails("throttle"),
  500: fails("500"),
  503: fails("503"),
  portal,
  empty: (exchange) => exchange.answer(answers.empty(exchange.gateway.clock)),
  async late(exchange, { ms }) {
    exchange.reset();
    await exchange.gateway.delay(ms);
    await exchange.apply();
  },
  async reorder(exchange, { ms }) {
    await exchange.gateway.anotherAnswer(exchange.request.body, ms);
    await exchange.serve();
  },
  "delay-answer": after(async (exchange, { ms }, answer) => {
    await exchange.gateway.delay(ms);
    await exchange.answer(answer);
  }),
  "drop-answer": after((exchange) => exchange.drop()),
  "reset-answer": after((exchange) => exchange.reset()),
  "half-close-answer": after((exchange) => exchange.halfClose()),
  truncate: after((exchange, _, answer) => exchange.truncated(answer)),
  corrupt: after((exchange, _, answer) =>
    exchange.answer(answers.corrupted(answer)),
  ),
  garbage: after(portal),
  "throttle-after": after(fails("throttle")),
  "500-after": after(fails("500")),
  "503-after": after(fails("503")),
  async duplicate(exchange, { ms }) {
    await exchange.serve();
    await exchange.gateway.delay(ms);
    await exchange.apply();
  },
};

module.exports = { Exchange };
