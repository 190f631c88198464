// Runs tests of a build and tells what came of them.
//
//   const { failed, milliseconds } = await runTests(directory, names, limits);
//
// `failed` are those of `names`; a test that hangs, or ends its program, has
// failed too, and its name is followed by what it did.  `milliseconds` has the
// time of each case that came to its end, data-driven ones by "/_0" and so on.
//
// limits.seconds: when the program is ended as one that hangs.
// limits.plenty: how many seconds a test waits for what ought to come.
// limits.first: whether the program is ended once a check has failed.
// limits.log: ".log" appended, a file in the directory that keeps the output.
"use strict";

const { spawn } = require("child_process");
const fs = require("fs");
const os = require("os");
const path = require("path");

// The process groups of what runs.  A terminal's signals do not reach them, so
// they are ended with us.
const groups = new Set();
const folders = new Set();  // Those of tests that run.  They go with us, too.

function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

function removeFolder(folder) {
  folders.delete(folder);
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

process.on("exit", () => {
  for (const pid of groups) signalGroup(pid, "SIGTERM");
  folders.forEach(removeFolder);
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => process.exit(130));
}

const failedCheck = /(?:error: in|fatal error: in) "([^"]+)"/;

// What a program wrote, and how it ended: {output, status, hung}.  It is the
// head of a process group, so that what it started ends with it.
function runProgram(program, args, environment, log, { seconds, first }) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...environment } });
    groups.add(child.pid);
    let output = "";
    let hung = false;
    let line = 0;  // Where the last one begins, which may not be whole.
    const timer = setTimeout(() => {
      hung = true;
      signalGroup(child.pid, "SIGKILL");
    }, seconds * 1000);
    const hear = (text) => {
      output += text;
      if (first && failedCheck.test(output.slice(line))) {
        signalGroup(child.pid, "SIGTERM");
      }
      line = output.lastIndexOf("\n") + 1;
    };
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("latin1");
      stream.on("data", hear);
    }
    child.on("error", (problem) => {
      groups.delete(child.pid);
      reject(problem);
    });
    // Not "close": what the program has started may live on for a moment.
    child.on("exit", (code, signal) => setImmediate(() => {
      clearTimeout(timer);
      signalGroup(child.pid, "SIGKILL");
      groups.delete(child.pid);
      fs.writeFileSync(log, output, "latin1");
      resolve({ output, status: code ?? signal, hung });
    }));
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
    const error = failedCheck.exec(line);
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

// A mutant's test may leave files behind.  Their folder is not below
// `directory`: tests that run programs as another user need one that everybody
// may enter, and a home directory may be closed.
async function inOwnFolder(run) {
  const temporary = fs.mkdtempSync(path.join(os.tmpdir(), "ddbmutex-mutant-"));
  folders.add(temporary);
  fs.chmodSync(temporary, 0o711);
  try {
    return await run(temporary);
  } finally {
    removeFolder(temporary);
  }
}

async function runTests(directory, names, limits) {
  const selection = names.map((name) => `--run_test=${name}`);
  const environment = { DDBMUTEX_BUILD: path.resolve(directory) };
  if (limits.plenty) environment.DDBMUTEX_TEST_PLENTY = String(limits.plenty);
  const { output, status, hung } = await inOwnFolder((temporary) => runProgram(
    path.join(directory, "tests/tests"),
    [...selection, "--log_level=test_suite", "--report_level=no",
      "--color_output=no"], { ...environment, TMPDIR: temporary },
    path.join(directory, `${limits.log}.log`), limits));
  const { milliseconds, failed, running } = readLog(output);
  const told = new Set([...failed].map((name) => name.replace(/\/_\d+$/, "")));
  if (told.size > 0) return { failed: [...told], milliseconds };
  const which = running ?? (names.length === 1 ? names[0] : "the program");
  if (hung) told.add(`${which} (hung)`);
  if (!hung && status !== 0) told.add(`${which} (ended with ${status})`);
  return { failed: [...told], milliseconds };
}

module.exports = { runProgram, runTests };
