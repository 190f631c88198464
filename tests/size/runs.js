// What the library costs where it runs, against a server on the loopback.
"use strict";

const fs = require("fs");
const path = require("path");
const { once } = require("events");
const readline = require("readline");
const { execFileSync, spawn } = require("child_process");

const keys = {
  AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
  AWS_SECRET_ACCESS_KEY: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  AWS_SESSION_TOKEN: "", http_proxy: "", all_proxy: "", ALL_PROXY: "",
  no_proxy: "127.0.0.1",
};

// To its end, with nothing to read.
function run(program, args) {
  execFileSync(program, args, { env: { ...process.env, ...keys },
    stdio: ["ignore", "ignore", "inherit"] });
}

// One that says a line when it is ready, and stays until its input ends.
class Program {
  constructor([program, args]) {
    this.child = spawn(program, args.map(String), {
      env: { ...process.env, ...keys }, stdio: ["pipe", "pipe", "inherit"] });
    this.lines = readline.createInterface({ input: this.child.stdout })[
      Symbol.asyncIterator]();
  }

  async line() {
    const { value, done } = await this.lines.next();
    if (done) throw new Error(`${this.child.spawnfile} says nothing`);
    return value;
  }

  async end() {
    const ended = once(this.child, "exit");
    this.child.stdin.end();
    await ended;
  }
}

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
    this.serving = new Program([this.program("server"), []]);
    this.url = await this.serving.line();
    run(...this.mutex(1, 0));
    this.serving.child.stdin.write(`${this.directory}\n`);
    await this.serving.line();
    this.requests = ["PutItem", "DeleteItem"]
      .map((name) => path.join(this.directory, name));
  }

  async end() {
    await this.serving?.end();
  }

  // A program and its arguments.
  mutex(cycles, held) {
    return [this.program("mutex"), [this.url, cycles, held]];
  }
  bare(cycles) {
    return [this.program("bare"), [this.url, cycles, ...this.requests]];
  }

  // KiB in memory, the program being ready: the middle one of five.  Waits for
  // each to end: without its server, one that holds locks would go on trying to
  // release them.
  async resident(command) {
    const seen = [];
    for (let i = 0; i < 5; ++i) {
      const program = new Program(command);
      await program.line();
      const { pid } = program.child;
      const status = fs.readFileSync(`/proc/${pid}/status`, "utf8");
      seen.push(Number(/^VmRSS:\s*(\d+) kB/m.exec(status)[1]));
      await program.end();
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
    run("valgrind", ["--tool=callgrind", "-q", "--compress-strings=no",
      "--compress-pos=no", `--callgrind-out-file=${file}`, program, ...args]);
    return callgrindCounts(fs.readFileSync(file, "latin1"));
  }
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

module.exports = { Runs };
