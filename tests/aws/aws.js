// AWS's key services on 127.0.0.1, as far as those need them who look for keys:
// STS, EC2's metadata service, the agent of containers; and a forward proxy.
// They check what the real ones check, and answer in their words; on command they
// do what goes wrong.
//
//   node aws.js --tls DIR
//   {"ports":{"sts":21001,...},"tls":{"sts":21006,...},"proxy":40000,"proxies":{"good":40001,...},
//    "control":40001,"ca":"DIR/ca.pem"}
//   curl -d '{"arn":"arn:aws:iam::123456789012:role/x"}' 127.0.0.1:40001/roles
//   curl 127.0.0.1:40001/log
//
// control.js lists what the control port understands, mischief.js the faults.
//
//   --tls DIR       listens on https too (but for metadata), with the CA of that
//                   directory; and on "expired", "other-host" and "unknown-ca",
//                   with certificates that nobody should take.  What is not
//                   there is made, and stays
//   --issued SEED   of the keys that are issued: "issued"
//
// It ends with its standard input.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { parseArgs } = require("node:util");
const { Authority, givenAuthority } = require("../gateway/authority");
const { Door } = require("../gateway/doors");
const { Keys } = require("../gateway/keys");
const { Mode } = require("../gateway/mode");
const { ServiceClock } = require("../gateway/clock");
const { Container } = require("./container");
const { Exchange } = require("./exchange");
const { Imds } = require("./imds");
const { Issuer } = require("./issuer");
const { Log } = require("./log");
const { Mischief } = require("./mischief");
const { Proxy } = require("./proxy");
const { startControl } = require("./control");
const { Sts } = require("./sts");

const DAY_MS = 86400000;
const BAD = {
  expired: { from: -30 * DAY_MS, to: -DAY_MS },
  "other-host": { hosts: ["DNS:elsewhere.example.com"] },
};

// The authority, with certificates of it that nobody should take, and one that
// nobody should take because another authority has made it.
function certify(directory) {
  const elsewhere = path.join(directory, "elsewhere");
  if (!fs.existsSync(path.join(elsewhere, "server.pem"))) {
    const hosts = ["IP:127.0.0.1", "DNS:localhost"];
    const certificates = { server: { hosts }, ...BAD };
    new Authority({ certificates, directory });
    fs.mkdirSync(elsewhere, { recursive: true });
    new Authority({ directory: elsewhere });
  }
  const authority = givenAuthority(directory, ["server", ...Object.keys(BAD)]);
  const { server, ...bad } = authority.certificates;
  bad["unknown-ca"] = givenAuthority(elsewhere).tls;
  return { authority, bad };
}

class Aws {
  constructor({ issued, tls }) {
    this.clock = new ServiceClock();
    this.account = { id: "123456789012" };
    this.issuer = new Issuer(issued, this.clock);
    this.keys = new Keys([], issued);
    this.log = new Log();
    this.mischief = new Mischief();
    this.proxy = new Proxy();
    this.sts = new Sts(this);
    this.imds = new Imds(this);
    this.container = new Container(this);
    this.#build(tls ? certify(tls) : { authority: null, bad: {} });
  }

  // The authority, and the doors by the names of services, or of what is bad.
  #build({ authority, bad }) {
    this.authority = authority;
    this.bad = bad;
    const { sts, imds, container } = this;
    this.plain = {};
    this.tls = {};
    this.modes = {};
    for (const service of [sts, imds, container]) {
      const { name } = service;
      const own = authority !== null && service !== imds ? authority.tls : null;
      this.plain[name] = this.#door(service, "http", undefined);
      if (own !== null) this.tls[name] = this.#door(service, "https", own);
      const doors = [this.plain[name], this.tls[name]];
      this.modes[name] = new Mode(doors.filter((door) => door !== undefined));
    }
    for (const [name, certificate] of Object.entries(bad)) {
      this.tls[name] = this.#door(sts, name, certificate);
    }
  }

  async start() {
    const all = [...Object.values(this.plain), ...Object.values(this.tls)];
    for (const door of all) await door.open();
    const ports = (doors) =>
      Object.fromEntries(
        Object.entries(doors).map(([name, door]) => [name, door.port]),
      );
    return {
      ports: ports(this.plain),
      tls: ports(this.tls),
      proxy: await this.proxy.open(),
      proxies: await this.#tlsProxies(),
      control: await startControl(this),
      ca: this.authority?.file ?? null,
    };
  }

  // The ports of the same proxy behind TLS: "good", and by what is bad.
  async #tlsProxies() {
    const proxies = {};
    if (this.authority === null) return proxies;
    proxies.good = await this.proxy.open(this.authority.tls);
    for (const [name, certificate] of Object.entries(this.bad)) {
      proxies[name] = await this.proxy.open(certificate);
    }
    return proxies;
  }

  #door(service, name, tls) {
    const place = { aws: this, service, door: name };
    return new Door((request, response) => {
      place.mode = this.modes[service.name];
      receive(place, tls ? "https" : "http", request, response);
    }, tls);
  }
}

function receive(place, scheme, request, response) {
  const { url } = request;
  const mark = url.indexOf("?");
  request.scheme = scheme;
  request.path = mark < 0 ? url : url.slice(0, mark);
  request.query = new URLSearchParams(mark < 0 ? "" : url.slice(mark));
  new Exchange(place, request, response).run();
}

function settings() {
  const { values } = parseArgs({
    options: {
      tls: { type: "string", default: "" },
      issued: { type: "string", default: "issued" },
    },
  });
  return values;
}

async function main() {
  const aws = new Aws(settings());
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
    process.on(signal, () => process.exit(1));
  }
  process.on("uncaughtException", (problem) => {
    console.error(problem);
    process.exit(70);
  });
  for (const event of ["error", "end", "close"]) {
    process.stdin.on(event, () => process.exit(0));
  }
  process.stdin.resume();
  try {
    console.log(JSON.stringify(await aws.start()));
  } catch (problem) {
    console.error(problem.message);
    process.exit(2);
  }
}

main().catch((problem) => {
  console.error(problem.message);
  process.exit(2);
});
