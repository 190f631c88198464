// A certificate authority, made with the command `openssl` in a directory of its
// own, of which all but the CA's certificate is gone again at once.
//
//   const authority = new Authority();
//   https.createServer(authority.tls, serve);  // For 127.0.0.1 and localhost.
//   authority.file;                            // What clients are to trust.
//
// A program may ask for further certificates, or make all of them in a directory
// that it was given, where they stay, with their keys, for others to serve with
// (givenAuthority()).
"use strict";

const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

// Clients may have calendars that are off.
const VALID_MS = 3650 * 86400000;

const CONFIG = `
[req]
distinguished_name = nobody
prompt = no
[nobody]
CN = ddbmutex gateway
[ca]
default_ca = this
[this]
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = anybody
unique_subject = no
[anybody]
commonName = supplied
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
`;
const EXTENSIONS = `
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
authorityKeyIdentifier = keyid
`;
const SERVER = ["IP:127.0.0.1", "DNS:localhost"];

const PREFIX = "ddbmutex-gateway-";

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (problem) {
    return problem.code !== "ESRCH";
  }
}

// What gateways have left that were killed: the names tell their pids.
function sweep() {
  for (const name of fs.readdirSync(os.tmpdir())) {
    const pid = name.startsWith(PREFIX) && Number(name.split("-")[2]);
    if (!pid || isRunning(pid)) continue;
    try {
      fs.rmSync(path.join(os.tmpdir(), name), { recursive: true });
    } catch {
      // Somebody else's, or gone meanwhile.
    }
  }
}

// "20261121110000Z"
function time(ms) {
  return new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, "");
}

function read(directory, name) {
  const file = (end) => fs.readFileSync(path.join(directory, name + end));
  return { key: file(".key"), cert: file(".pem") };
}

class Authority {
  // `certificates`: by name {hosts, from, to}, each as below if it is not told.
  // `directory`: where they stay; without one, they go with this process.
  // Throws if there is no `openssl`.
  constructor({ certificates = { server: {} }, directory = null } = {}) {
    sweep();
    const name = path.join(os.tmpdir(), `${PREFIX}${process.pid}-`);
    this.directory = directory ?? fs.mkdtempSync(name);
    this.file = path.join(this.directory, "ca.pem");
    this.certificates = {}; // By name: {key, cert}.
    try {
      this.#make(certificates);
      if (directory === null) this.#clear();
    } catch (problem) {
      if (directory === null) this.remove();
      throw problem;
    }
    this.tls = this.certificates.server;
  }

  remove() {
    fs.rmSync(this.directory, { recursive: true, force: true });
  }

  #make(certificates) {
    const sections = Object.entries(certificates).map(
      ([name, { hosts = SERVER }]) =>
        `[${name}]${EXTENSIONS}subjectAltName = ${hosts.join(", ")}\n`,
    );
    this.#write("config", CONFIG + sections.join(""));
    this.#write("index.txt", "");
    this.#request("ca", "ddbmutex gateway's CA");
    this.#certify("ca", "authority", ["-selfsign"], {});
    for (const [name, dates] of Object.entries(certificates)) {
      this.#request(name, name === "server" ? "127.0.0.1" : name);
      this.#certify(name, name, ["-cert", "ca.pem"], dates);
      this.certificates[name] = read(this.directory, name);
    }
  }

  #clear() {
    for (const name of fs.readdirSync(this.directory)) {
      if (name !== "ca.pem") fs.rmSync(path.join(this.directory, name));
    }
  }

  #write(name, text) {
    fs.writeFileSync(path.join(this.directory, name), text);
  }

  #request(name, subject) {
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    const files = ["-keyout", `${name}.key`, "-out", `${name}.csr`];
    const words = ["-new", "-nodes", "-subj", `/CN=${subject}`];
    this.#openssl("req", ...words, ...curve, ...files);
  }

  #certify(name, extensions, words, { from = -VALID_MS, to = VALID_MS }) {
    const now = Date.now();
    const dates = ["-startdate", time(now + from), "-enddate", time(now + to)];
    const files = ["-in", `${name}.csr`, "-out", `${name}.pem`, "-notext"];
    words.push("-keyfile", "ca.key", "-extensions", extensions, "-batch");
    this.#openssl("ca", ...words, ...dates, ...files);
  }

  #openssl(command, ...words) {
    execFileSync("openssl", [command, "-config", "config", ...words], {
      cwd: this.directory,
      stdio: ["ignore", "pipe", "pipe"], // Its words are in what it throws.
    });
  }
}

// What was made in that directory by another program, whose it is.
function givenAuthority(directory, names = ["server"]) {
  const certificates = Object.fromEntries(
    names.map((name) => [name, read(directory, name)]),
  );
  const file = path.join(directory, "ca.pem");
  return { file, certificates, tls: certificates.server, remove: () => {} };
}

module.exports = { Authority, givenAuthority };
