// What the library costs where it runs, against a server on the loopback.
"use strict";

const fs = require("fs");
const path = require("path");
const { Failure, begin, line, output } = require("./commands.js");

const keys = {
  AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
  AWS_SECRET_ACCESS_KEY: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  AWS_SESSION_TOKEN: "", http_proxy: "", all_proxy: "", ALL_PROXY: "",
  no_proxy: "127.0.0.1",
};

// The programs of this directory in the build at hand, and where they write.
class Runs {
  constructor(build, directory) {
    this.programs = path.join(build, "tests/size");
    this.directory = path.join(directory, "runs");
    fs.mkdirSync(this.directory, { recursive: true });
  }

  program(name) {
    return path.join(this.programs, name);
  }

  // Once; with what a lock and an unlock send, for bare libcurl.
  async server() {
    if (this.url) return;
    this.serving = begin(this.program("server"), []);
    this.url = await line(this.serving);
    await output(this.program("mutex"), [this.url, 1, 0], keys);
    this.serving.stdin.write(`${this.directory}\n`);
    await line(this.serving);
    this.requests = ["PutItem", "DeleteItem"]
      .map((name) => path.join(this.directory, name));
  }

  // A program and its arguments.
  mutex(cycles, held, program = this.program("mutex")) {
    return [program, [this.url, cycles, held]];
  }
  bare(cycles) {
    return [this.program("bare"), [this.url, cycles, ...this.requests]];
  }

  hashedBlocks() {
    if (!this.requests) throw new Failure("no request was recorded");
    return this.requests
      .map((file) => hashedBlocks(fs.readFileSync(file, "latin1")))
      .reduce((sum, blocks) => sum + blocks, 0);
  }

  // KiB in memory, the program being ready: the middle one of five.
  async resident([program, args]) {
    const seen = [];
    for (let i = 0; i < 5; ++i) {
      const child = begin(program, args, keys);
      await line(child);
      const status = fs.readFileSync(`/proc/${child.pid}/status`, "utf8");
      seen.push(Number(/^VmRSS:\s*(\d+) kB/m.exec(status)[1]));
      child.stdin.end();
      await child.ended;
    }
    return seen.sort((a, b) => a - b)[2];
  }

  // By valgrind's count, of one cycle: all instructions, those of ours and of
  // the C++ library that does our copying, and those of SHA-256.
  async instructions(command) {
    const few = await this.counted(command(20));
    const many = await this.counted(command(120));
    const each = (of) => (of(many) - of(few)) / 100;
    return { all: each((counts) => sum(counts, () => true)),
      own: each((counts) => sum(counts, isOwn)),
      hash: Math.max(0, ...[...many].filter(([key]) => /libcrypto/.test(key))
        .map(([key]) => each((counts) => counts.get(key) ?? 0))) };
  }

  // Instructions by "object function".
  async counted([program, args]) {
    const file = path.join(this.directory, "callgrind.out");
    await output("valgrind", ["--tool=callgrind", "--compress-strings=no",
      "--compress-pos=no", `--callgrind-out-file=${file}`, program, ...args],
    keys);
    return callgrindCounts(fs.readFileSync(file, "latin1"));
  }

  // The most functions of ours that stand between a caller of lock() and
  // libcurl, as they stand there, and how many files those are in.
  async frames(program) {
    const script = path.join(this.directory, "frames.gdb");
    const into = ["curl_easy_perform", "curl_multi_perform",
      "curl_multi_socket_action", "curl_multi_socket_all",
      "curl_multi_add_handle"];
    fs.writeFileSync(script, ["set pagination off", "set confirm off",
      "set breakpoint pending on", "set debuginfod enabled off",
      "set print frame-arguments none", ...into.map((name) => `break ${name}`),
      `commands 1-${into.length}`, "bt", "continue", "end", "run", ""]
      .join("\n"));
    const [, args] = this.mutex(1, 0, program);
    const said = await output("gdb", ["-batch", "-nx", "-x", script, "--args",
      program, ...args], keys);
    return deepest(said);
  }
}

// Blocks that SHA-256 takes to sign a request as it stands on the wire: of the
// body, of the canonical request, and by HMAC, whose key is hashed once a day.
function hashedBlocks(request) {
  const head = request.slice(0, request.indexOf("\r\n\r\n"));
  const body = request.length - head.length - 4;
  const [, scope, names] =
    /Credential=[^/]*\/([^,]*), SignedHeaders=([^,]*)/.exec(head);
  const signed = names.split(";").map((name) =>
    new RegExp(`^${name}: ?(.*)$`, "im").exec(head)[1].trim().length +
    name.length + 2);
  const hash = 64;  // Digits.
  const canonical = "POST\n/\n\n".length +
    signed.reduce((sum, bytes) => sum + bytes, 0) + 1 + names.length + 1 + hash;
  const toSign = "AWS4-HMAC-SHA256\n20150830T123600Z\n".length +
    scope.length + 1 + hash;
  return [body, canonical, toSign, 32]
    .reduce((sum, bytes) => sum + Math.ceil((bytes + 9) / 64), 0);
}

// callgrind's file: a function's own lines, and after each "calls=" one that
// is another's.
function callgrindCounts(text) {
  const counts = new Map();
  let object = "";
  let key = "";
  let isOthers = false;
  for (const row of text.split("\n")) {
    if (row.startsWith("ob=")) object = path.basename(row.slice(3));
    if (row.startsWith("fn=")) key = `${object} ${row.slice(3)}`;
    if (row.startsWith("calls=")) isOthers = true;
    const cost = /^[+-]?[\d*]+ (\d+)$/.exec(row);
    if (!cost || key === "") continue;
    if (!isOthers) counts.set(key, (counts.get(key) ?? 0) + Number(cost[1]));
    isOthers = false;
  }
  return counts;
}

function sum(counts, wanted) {
  let total = 0;
  for (const [key, count] of counts) if (wanted(key)) total += count;
  return total;
}

function isOwn(key) {
  return /^(mutex|bare|libstdc\+\+|libc\+\+)/.test(key);
}

// Of a frame in the library, which file.
const source = / at (?:\S*\/)?((?:sigv4|ddbmutex)(?:\/\w+)*\.[ch]pp):\d+$/;

// Of all stacks that gdb tells.
function deepest(said) {
  let best = { frames: 0, files: new Set() };
  for (const stack of said.split(/^#0 /m).slice(1)) {
    const rows = stack.split("\n");
    const call = rows.findIndex((row) => /::DdbMutex::lock \(/.test(row));
    const ours = rows.slice(0, call + 1)
      .map((row) => source.exec(row)?.[1])
      .filter((file) => file !== undefined);
    if (ours.length > best.frames) {
      best = { frames: ours.length, files: new Set(ours) };
    }
  }
  if (best.frames === 0) throw new Failure("gdb told no stack of lock()");
  return best;
}

module.exports = { Runs };
