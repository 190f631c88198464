// AWS's key services on 127.0.0.1, as far as those need them who look for keys:
// STS, the SSO portal and its OIDC service, EC2's metadata service, the agent
// of containers; and a forward proxy.  They check what the real ones check, and
// answer in their words; on command they do what goes wrong.
//
//   node aws.js --tls
//   {"ports":{"sts":21001,...},"tls":{"sts":21006,...},"proxy":40000,
//    "control":40001,"ca":"/tmp/.../ca.pem"}
//   curl -d '{"arn":"arn:aws:iam::123456789012:role/x"}' 127.0.0.1:40001/roles
//   curl 127.0.0.1:40001/log
//
// control.js lists what the control port understands, mischief.js the faults.
//
//   --tls           listens on https too (but for metadata), with a CA of its
//                   own; and on "expired", "other-host" and "unknown-ca", with
//                   certificates that nobody should take
//   --names A,B     hosts for which that certificate is good besides 127.0.0.1
//   --issued SEED   of the keys that are issued: "issued"
//
// It ends with its standard input, and takes along what it made.
"use strict";

const { parseArgs } = require("node:util");
const { Authority } = require("../gateway/authority");
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
const { Oidc } = require("./oidc");
const { Proxy } = require("./proxy");
const { Sso } = require("./sso");
const { startControl } = require("./control");
const { Sts } = require("./sts");

const MAX_BODY = 1 << 20;
const DAY_MS = 86400000;
const BAD = {
  expired: { from: -30 * DAY_MS, to: -DAY_MS },
  "other-host": { hosts: ["DNS:elsewhere.example.com"] },
};

// The authority, and by name the certificates that nobody should take.
function certify(names) {
  const hosts = ["IP:127.0.0.1", "DNS:localhost"];
  for (const name of names) hosts.push(`DNS:${name}`);
  const server = { hosts };
  const authority = new Authority({
    certificates: { server, ...BAD },
    kept: true,
  });
  const stranger = new Authority();
  stranger.remove();
  const { expired, "other-host": elsewhere } = authority.certificates;
  const bad = { expired, "other-host": elsewhere, "unknown-ca": stranger.tls };
  return { authority, bad };
}

class Aws {
  constructor({ issued, tls, names }) {
    this.clock = new ServiceClock();
    this.account = { id: "123456789012" };
    this.issuer = new Issuer(issued, this.clock);
    this.keys = new Keys([], issued);
    this.log = new Log();
    this.mischief = new Mischief();
    this.proxy = new Proxy();
    this.sts = new Sts(this);
    this.sso = new Sso(this);
    this.oidc = new Oidc(this);
    this.imds = new Imds(this);
    this.container = new Container(this);
    this.#build(tls ? certify(names) : { authority: null, bad: {} });
  }

  // The authority, and the doors by the names of services, or of what is bad.
  #build({ authority, bad }) {
    this.authority = authority;
    const { sts, sso, oidc, imds, container } = this;
    this.plain = {};
    this.tls = {};
    this.modes = {};
    for (const service of [sts, sso, oidc, imds, container]) {
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
      proxy: await this.proxy.start(),
      control: await startControl(this),
      ca: this.authority?.file ?? null,
    };
  }

  end() {
    this.authority?.remove();
  }

  #door(service, name, tls) {
    const place = { aws: this, service, door: name };
    const door = new Door((incoming, response) => {
      place.mode = this.modes[service.name];
      const tcp = door.tcpOf(incoming.socket);
      receive(place, tls ? "https" : "http", incoming, response, tcp);
    }, tls);
    return door;
  }
}

// One that does not come whole never was.
function receive(place, scheme, incoming, response, tcp) {
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
    const { headers, method, url } = incoming;
    const mark = url.indexOf("?");
    const path = mark < 0 ? url : url.slice(0, mark);
    const query = new URLSearchParams(mark < 0 ? "" : url.slice(mark));
    const body = Buffer.concat(pieces);
    const request = { scheme, method, url, path, query, headers, body };
    new Exchange(place, request, response, tcp).run();
  });
}

function settings() {
  const { values } = parseArgs({
    options: {
      tls: { type: "boolean", default: false },
      names: { type: "string", default: "" },
      issued: { type: "string", default: "issued" },
    },
  });
  const names = values.names.split(",").filter((name) => name !== "");
  return { ...values, names };
}

async function main() {
  const aws = new Aws(settings());
  const end = (status) => {
    aws.end();
    process.exit(status);
  };
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
    process.on(signal, () => end(1));
  }
  process.on("uncaughtException", (problem) => {
    console.error(problem);
    end(70);
  });
  for (const event of ["error", "end", "close"]) {
    process.stdin.on(event, () => end(0));
  }
  process.stdin.resume();
  try {
    console.log(JSON.stringify(await aws.start()));
  } catch (problem) {
    console.error(problem.message);
    end(2);
  }
}

main().catch((problem) => {
  console.error(problem.message);
  process.exit(2);
});
