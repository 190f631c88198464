// Runs tests of a build and tells what came of them.
//
//   const { failed, milliseconds } = await runTests(directory, names, seconds);
//
// `failed` are those of `names`; a test that hangs, or ends its program, has
// failed too, and its name is followed by what it did.  `milliseconds` has the
// time of each case that came to its end, data-driven ones by "/_0" and so on.
"use strict";

const { spawn } = require("child_process");
const fs = require("fs");
const path = require("path");

// The process groups of what runs.  A terminal's signals do not reach them, so
// they are ended with us; the torture clears up then.
const groups = new Set();

process.on("exit", () => {
  for (const pid of groups) process.kill(-pid, "SIGTERM");
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => process.exit(130));
}

// How long a test waits for what will not happen, since the library is broken.
const plentySeconds = 15;

// What a program wrote, and how it ended: {output, status, hung}.  It is the
// head of a process group, so that what it started ends with it.
function runProgram(program, args, environment, seconds, log) {
  return new Promise((resolve, reject) => {
    const file = fs.openSync(log, "w");
    const child = spawn(program, args, { detached: true,
      stdio: ["ignore", file, file], env: { ...process.env, ...environment } });
    groups.add(child.pid);
    let hung = false;
    const timer = setTimeout(() => {
      hung = true;
      process.kill(-child.pid, "SIGKILL");
    }, seconds * 1000);
    child.on("error", (problem) => {
      groups.delete(child.pid);
      reject(problem);
    });
    child.on("exit", (code, signal) => {
      clearTimeout(timer);
      groups.delete(child.pid);
      fs.closeSync(file);
      const output = fs.readFileSync(log, "latin1");
      resolve({ output, status: code ?? signal, hung });
    });
  });
}

// "suite/case" of the log's lines, as Boost.Test indents nothing: entered
// suites are kept in a stack.
function readLog(output) {
  const suites = [];
  const milliseconds = new Map();
  const failed = new Set();
  let running = null;
  for (const line of output.split("\n")) {
    const step = /(Entering|Leaving) test (module|suite|case) "([^"]*)"/
      .exec(line);
    const error = /error: in "([^"]+)"/.exec(line);
    if (error) failed.add(error[1]);
    if (!step || step[2] === "module") continue;
    const [, way, kind, name] = step;
    if (kind === "suite" && way === "Entering") suites.push(name);
    if (kind === "suite" && way === "Leaving") suites.pop();
    if (kind !== "case") continue;
    running = way === "Entering" ? [...suites, name].join("/") : null;
    const time = /testing time: (\d+)(us|ms)/.exec(line);
    if (way === "Leaving" && time) {
      milliseconds.set([...suites, name].join("/"),
        Number(time[1]) / (time[2] === "us" ? 1000 : 1));
    }
  }
  return { milliseconds, failed, running };
}

async function runTests(directory, names, seconds) {
  const selection = names.map((name) => `--run_test=${name}`);
  const log = path.join(directory, "tests.log");
  const { output, status, hung } = await runProgram(
    path.join(directory, "tests/tests"),
    [...selection, "--log_level=test_suite", "--report_level=no",
      "--color_output=no"],
    { DDBMUTEX_BUILD: path.resolve(directory),
      DDBMUTEX_TEST_PLENTY: String(plentySeconds) }, seconds, log);
  const { milliseconds, failed, running } = readLog(output);
  const told = new Set([...failed]
    .filter((name) => !hung || name !== running)
    .map((name) => name.replace(/\/_\d+$/, "")));
  if (hung) told.add(`${running ?? "the program"} (hung)`);
  if (!hung && status !== 0 && told.size === 0) {
    told.add(`${running ?? "the program"} (ended with ${status})`);
  }
  return { failed: [...told], milliseconds };
}

// The torture of `build` with the worker of `workers`; what it leaves goes to
// `directory`.
async function runTorture(directory, build, [seconds, seed],
  workers = directory) {
  const out = path.join(directory, "torture");
  const { status, hung } = await runProgram(
    path.join(build, "tests/torture/torture"), [seconds, seed],
    { DDBMUTEX_BUILD: path.resolve(workers), TORTURE_OUT: out },
    Number(seconds) * 2 + 180, path.join(directory, "torture.log"));
  if (hung) return { failed: [`torture ${seconds} ${seed} (hung)`] };
  return { failed: status === 0 ? [] : [`torture ${seconds} ${seed}`] };
}

module.exports = { runTests, runTorture };
