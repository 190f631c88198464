// Programs that a measurement runs: until a common deadline, and none is left
// behind.
"use strict";

const fs = require("fs");
const path = require("path");
const { spawn } = require("child_process");

class Failure extends Error {}

// The process groups of what runs; a terminal's signals do not reach them.
const groups = new Set();
let deadline = Infinity;

function endAt(time) {
  deadline = time;
}

function killAll() {
  for (const group of groups) {
    try {
      process.kill(-group, "SIGKILL");
    } catch (error) {
      if (error.code !== "ESRCH") throw error;
    }
  }
}

function begin(program, args, environment = {}) {
  const child = spawn(program, args.map(String), {
    detached: true, stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, LC_ALL: "C", ...environment } });
  if (child.pid) groups.add(child.pid);
  child.stdin.on("error", () => {});  // It may have ended.
  child.said = "";
  child.complaints = "";
  child.stdout.on("data", (data) => { child.said += data; });
  child.stderr.on("data", (data) => { child.complaints += data; });
  child.ended = new Promise((resolve, reject) => {
    child.on("error", (error) => reject(new Failure(error.message)));
    child.on("close", (code, signal) => {
      groups.delete(child.pid);
      resolve(code ?? signal);
    });
  });
  child.ended.catch(() => {});  // Told to whoever waits for it.
  return child;
}

function firstComplaint(text) {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.find((line) => /error|undefined|terminate|what/i.test(line)) ??
    lines[0] ?? "no complaint";
}

async function beforeDeadline(promise) {
  const left = deadline - Date.now();
  if (left === Infinity) return promise;
  let timer;
  const late = new Promise((resolve, reject) => {
    timer = setTimeout(() => reject(new Failure("the time was up; " +
      "measure again, for what has been compiled is kept")),
    Math.max(0, left));
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// What it says, having ended well.
async function output(program, args, environment) {
  const child = begin(program, args, environment);
  child.stdin.end();
  const status = await beforeDeadline(child.ended);
  if (status === 0) return child.said;
  throw new Failure(`${path.basename(program)} ended with ${status}: ` +
    firstComplaint(child.complaints));
}

// The next whole line of one that runs.
async function line(child) {
  const ended = child.ended.then((status) => {
    throw new Failure(`a program ended with ${status}: ` +
      firstComplaint(child.complaints));
  });
  ended.catch(() => {});
  while (!child.said.includes("\n")) {
    const more = new Promise((resolve) => child.stdout.once("data", resolve));
    await beforeDeadline(Promise.race([more, ended]));
  }
  const end = child.said.indexOf("\n");
  const found = child.said.slice(0, end);
  child.said = child.said.slice(end + 1);
  return found;
}

// Does the work for each, as many at once as there are cores.
async function inTurn(all, work) {
  const left = all.values();
  const worker = async () => {
    for (const one of left) await work(one);
  };
  const cores = require("os").cpus().length;
  await Promise.all(Array.from({ length: cores }, worker));
}

function isThere(program) {
  return (process.env.PATH ?? "").split(":").some((directory) =>
    fs.existsSync(path.join(directory, program)));
}

module.exports = { Failure, begin, endAt, inTurn, isThere, killAll, line,
  output };
