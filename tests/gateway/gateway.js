// A gateway that stands before a DynamoDB engine on 127.0.0.1: it checks every
// signature as DynamoDB does, keeps count, and does on command what goes wrong
// between a client and DynamoDB.
//
//   node gateway.js --engine http://127.0.0.1:8000 --tls
//   {"http":21001,"https":21002,"control":40001,"ca":"/tmp/.../ca.pem"}
//   curl -d '{"action":"PutItem","fault":"drop-answer"}' 127.0.0.1:40001/rules
//   curl 127.0.0.1:40001/counts
//
// control.js lists what the control port understands, faults.js the faults.
//
//   --engine URL    of the engine, http
//   --key, --secret, --token   what clients sign with: AKIDEXAMPLE, secret, ''
//   --issued SEED   takes keys that tests/aws/aws.js issues, until they end
//   --tls           listens on https too, with a CA of its own
//   --certificates DIR   ... with the certificate that aws.js keeps there
//   --sign          signs anew, for an engine that checks signatures itself
//   --slow-tables MS   making or deleting a table takes so long (tables.js)
//   --seed N        of chance
//
// It ends with its standard input, and takes along what it made.
"use strict";

const { parseArgs } = require("node:util");
const { Authority, givenAuthority } = require("./authority");
const { Chance } = require("./chance");
const { Counts } = require("./counts");
const { Door } = require("./doors");
const { Engine } = require("./engine");
const { Exchange } = require("./exchange");
const { Faults } = require("./faults");
const { Keys } = require("./keys");
const { Mode } = require("./mode");
const { ServiceClock } = require("./clock");
const { Signatures } = require("./signature");
const { startControl } = require("./control");
const { Tables } = require("./tables");

class Gateway {
  constructor(options) {
    const seed = Number(options.seed);
    this.clock = new ServiceClock();
    this.counts = new Counts();
    this.faults = new Faults(seed);
    const slowness = Number(options["slow-tables"]);
    this.tables = slowness > 0 ? new Tables(slowness, this.clock) : null;
    this.chance = new Chance(seed); // Of what no rule asks for.
    const { key, secret, token } = options;
    const own = { key, secret, token };
    const keys = new Keys([own], options.issued);
    this.signatures = new Signatures(own, keys, this.clock, this.counts);
    const signAnew = (request, host) => this.signatures.signAnew(request, host);
    const signer = options.sign ? signAnew : undefined;
    this.engine = new Engine(options.engine, signer);
    this.authority = authority(options);
    this.doors = [this.#door(undefined)];
    if (options.tls) this.doors.push(this.#door(this.authority.tls));
    this.mode = new Mode(this.doors);
    this.waiting = new Map(); // For another's answer, by the item's key.
    this.delayed = new Set(); // What ends each delay.
  }

  async start() {
    for (const door of this.doors) await door.open();
    return {
      http: this.doors[0].port,
      https: this.doors[1]?.port ?? null,
      control: await startControl(this),
      ca: this.authority?.file ?? null,
    };
  }

  // Resolves in `ms`, or when all that waits is let go.
  delay(ms) {
    return new Promise((resolve) => this.#goesOn(ms, resolve));
  }

  letGo() {
    for (const go of [...this.delayed]) go();
  }

  // One about the item of that body, if it is about any.
  answered(body) {
    if (this.waiting.size === 0) return;
    const waiting = this.waiting.get(keyOf(body)) ?? [];
    for (const go of [...waiting]) go();
  }

  // Resolves once another request about the same item was answered, at the
  // latest in `ms`: those about others do not mind which comes first.
  anotherAnswer(body, ms) {
    const key = keyOf(body);
    const waiting = this.waiting.get(key) ?? new Set();
    this.waiting.set(key, waiting);
    return new Promise((resolve) => {
      const go = this.#goesOn(ms, () => {
        waiting.delete(go);
        if (waiting.size === 0) this.waiting.delete(key);
        resolve();
      });
      waiting.add(go);
    });
  }

  // Calls `done` once: in `ms`, when all is let go, or when what it returns is
  // called.
  #goesOn(ms, done) {
    const go = () => {
      clearTimeout(timer);
      this.delayed.delete(go);
      done();
    };
    const timer = setTimeout(go, ms);
    this.delayed.add(go);
    return go;
  }

  end() {
    this.authority?.remove();
  }

  #door(tls) {
    return new Door(
      (request, response, tcp) => this.#receive(request, response, tcp),
      tls,
    );
  }

  #receive(request, response, tcp) {
    const target = request.headers["x-amz-target"] ?? "";
    request.action = target.slice(target.indexOf(".") + 1) || "?";
    this.#run(new Exchange(this, request, response, tcp), request.action);
  }

  async #run(exchange, action) {
    this.counts.add(this.counts.requests, action);
    this.counts.underWay += 1;
    try {
      await exchange.run();
    } finally {
      this.counts.underWay -= 1;
    }
  }
}

// Of an action on one item: what its attribute `name` says, or else its first.
function keyOf(body) {
  let parsed;
  try {
    parsed = JSON.parse(body);
  } catch {
    return "";
  }
  const attributes = parsed?.Key ?? parsed?.Item ?? {};
  const value = attributes.name ?? Object.values(attributes)[0] ?? {};
  return String(value.S ?? value.N ?? value.B ?? "");
}

function authority({ tls, certificates }) {
  if (!tls) return null;
  return certificates ? givenAuthority(certificates) : new Authority();
}

function settings() {
  const text = (otherwise) => ({ type: "string", default: otherwise });
  const { values } = parseArgs({
    options: {
      engine: { type: "string" },
      key: text("AKIDEXAMPLE"),
      secret: text("secret"),
      token: text(""),
      issued: { type: "string" },
      certificates: { type: "string" },
      tls: { type: "boolean", default: false },
      sign: { type: "boolean", default: false },
      "slow-tables": text("0"),
      seed: text("1"),
    },
  });
  if (!values.engine?.startsWith("http://")) {
    throw new Error("--engine is not the URL of an engine");
  }
  for (const name of ["seed", "slow-tables"]) {
    if (!/^\d+$/.test(values[name])) {
      throw new Error(`--${name} is not a number`);
    }
  }
  return values;
}

async function main() {
  const gateway = new Gateway(settings());
  const end = (status) => {
    gateway.end();
    process.exit(status);
  };
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
    process.on(signal, () => end(1));
  }
  process.on("uncaughtException", (problem) => {
    console.error(problem);
    end(70);
  });
  process.stdin.on("error", () => end(0));
  process.stdin.on("end", () => end(0));
  process.stdin.on("close", () => end(0));
  process.stdin.resume();
  try {
    console.log(JSON.stringify(await gateway.start()));
  } catch (problem) {
    console.error(problem.message);
    end(2);
  }
}

main().catch((problem) => {
  console.error(problem.message);
  process.exit(2);
});
