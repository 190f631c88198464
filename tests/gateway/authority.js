// A certificate authority that lives as long as the gateway: made with the
// command `openssl`, in a directory of its own, of which all but the CA's
// certificate is gone again at once.
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
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1, DNS:localhost
authorityKeyIdentifier = keyid
`;

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

class Authority {
  // Throws if there is no `openssl`.
  constructor() {
    sweep();
    const name = `${PREFIX}${process.pid}-`;
    this.directory = fs.mkdtempSync(path.join(os.tmpdir(), name));
    this.file = path.join(this.directory, "ca.pem");
    try {
      this.#make();
    } catch (problem) {
      this.remove();
      throw problem;
    }
  }

  remove() {
    fs.rmSync(this.directory, { recursive: true, force: true });
  }

  #make() {
    fs.writeFileSync(path.join(this.directory, "config"), CONFIG);
    fs.writeFileSync(path.join(this.directory, "index.txt"), "");
    this.#request("ca", "ddbmutex gateway's CA");
    this.#certify("ca", "authority", ["-selfsign"]);
    this.#request("server", "127.0.0.1");
    this.#certify("server", "server", ["-cert", "ca.pem"]);
    const read = (name) => fs.readFileSync(path.join(this.directory, name));
    this.tls = { key: read("server.key"), cert: read("server.pem") };
    for (const name of fs.readdirSync(this.directory)) {
      if (name !== "ca.pem") fs.rmSync(path.join(this.directory, name));
    }
  }

  #request(name, subject) {
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    const files = ["-keyout", `${name}.key`, "-out", `${name}.csr`];
    const words = ["-new", "-nodes", "-subj", `/CN=${subject}`];
    this.#openssl("req", ...words, ...curve, ...files);
  }

  #certify(name, extensions, words) {
    const from = time(Date.now() - VALID_MS);
    const to = time(Date.now() + VALID_MS);
    const dates = ["-startdate", from, "-enddate", to];
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

module.exports = { Authority };
