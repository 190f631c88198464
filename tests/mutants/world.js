// Which mutants the simulated world (tests/world) finds by itself, without any
// test that knows what to look for.
//
//   const good = await findByWorld(mutants, settings);
//
// Of the mutants, those count whose files decide what the lock does.  Each is
// linked with the world, which lives the same seeds until one goes wrong, for a
// minute of computing at the most (or $WORLD_SECONDS).  First nothing may go
// wrong as things are.  Then a line for each:
//
//   found    lives SECONDS name: what went wrong
//   missed   nothing went wrong
//   stale, broken  as of `run full`
//
// world.txt has the names of those that the world finds.  `good` is false if it
// misses one of them.
"use strict";

const fs = require("fs");
const os = require("os");
const path = require("path");
const { spawn } = require("child_process");
const { ListError } = require("./list.js");
const { BuildError, buildWorld, inTurn } = require("./build.js");

const listFile = path.join(__dirname, "world.txt");
const seconds = Number(process.env.WORLD_SECONDS || 60);
const decisive = new RegExp("^ddbmutex(/(protocol|clock|errand|keeper|sending|" +
  "telling|agenda|mutex|queue|retry|layouts|record|any_of|client|guard|" +
  "manage|ask))?\\.[ch]pp$");

function decides({ changes }) {
  return changes.every(({ file }) => decisive.test(file));
}

function namesInList() {
  if (!fs.existsSync(listFile)) return [];
  return fs.readFileSync(listFile, "utf8").split("\n")
    .map((line) => line.replace(/#.*/, "").trim()).filter((name) => name !== "");
}

// On one core, so that several can be judged at once.
function live(world, core) {
  return new Promise((resolve, reject) => {
    const child = spawn("taskset",
      ["-c", String(core), world, "until", String(seconds), "1"],
      { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.on("data", (text) => {
      output += text;
    });
    child.on("error", reject);
    child.on("close", () => resolve(output));
  });
}

// The first thing that goes wrong, and how many lives that took.
async function liveUntilWrong(world, core) {
  const output = await live(world, core);
  const [, lives] = /^(\d+) lives, .* wrong$/m.exec(output) ?? [];
  const [, wrong] = /^(seed \d+: .*)$/m.exec(output) ?? [];
  return { lives, wrong };
}

// What became of it, and the rest of its line.
async function judge(mutant, core, settings) {
  try {
    const { directory, world } = await buildWorld(mutant, settings);
    const began = Date.now();
    const { lives, wrong } = await liveUntilWrong(world, core);
    const took = ((Date.now() - began) / 1000).toFixed(1);
    fs.rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
    const counts = `${lives} lives`.padStart(11) + `${took}`.padStart(6) + " s";
    return [wrong ? "found" : "missed",
      `${counts}  ${mutant.name}${wrong ? `: ${wrong}` : ""}`];
  } catch (error) {
    const known = error instanceof ListError ? "stale" :
      error instanceof BuildError ? "broken" : null;
    if (known === null) throw error;
    return [known, `${mutant.name}: ${error.message}`];
  }
}

async function isRightAsThingsAre(settings) {
  const world = path.join(settings.build, "tests/world/world");
  const { wrong } = await liveUntilWrong(world, 0);
  if (wrong) console.log(`wrong as things are: ${wrong}`);
  return !wrong;
}

async function findByWorld(all, settings) {
  if (!await isRightAsThingsAre(settings)) return false;
  const mutants = all.filter(decides);
  const listed = new Set(namesInList());
  const counts = { found: 0, missed: 0, stale: 0, broken: 0 };
  const lost = [];
  const cores = os.cpus().map((_, core) => core);
  await inTurn(mutants, cores.length, async (mutant) => {
    const core = cores.pop();
    const [outcome, words] = await judge(mutant, core, settings);
    cores.push(core);
    ++counts[outcome];
    console.log(`${outcome.padEnd(6)} ${words}`);
    if (outcome !== "found" && listed.has(mutant.name)) lost.push(mutant.name);
  });
  for (const name of lost) console.log(`no longer found: ${name}`);
  console.log(Object.entries(counts)
    .map(([outcome, count]) => `${count} ${outcome}`).join(", "));
  return lost.length === 0;
}

module.exports = { findByWorld };
