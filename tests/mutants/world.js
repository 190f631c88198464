// Which mutants the simulated world (tests/world) finds by itself, without any
// test that knows what to look for.
//
//   const good = await findByWorld(mutants, settings);  // Those of world.txt.
//   const test = await noticedByWorld(directory, settings);  // A catcher.
//
// Each mutant is linked with the world, which lives the same seeds until one
// goes wrong, for a minute of computing at the most (or $WORLD_SECONDS).  First
// nothing may go wrong as things are.  Then a line for each:
//
//   found    lives SECONDS name: what went wrong
//   missed   nothing went wrong
//   stale, broken  as `run full` prints them
//
// `good` is false if one was not found.
"use strict";

const fs = require("fs");
const os = require("os");
const path = require("path");
const { ListError } = require("./list.js");
const { StaleError } = require("./patch.js");
const { BuildError, buildMutant, inTurn } = require("./build.js");
const { runProgram } = require("./trial.js");

const listFile = path.join(__dirname, "world.txt");
const seconds = Number(process.env.WORLD_SECONDS || 60);
// A minute of computing may take long beside other work.
const limits = { seconds: 60 * seconds, first: false };

// Those that world.txt names.
function choose(mutants) {
  return fs.readFileSync(listFile, "utf8").split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .filter((name) => name !== "")
    .map((name) => {
      const mutant = mutants.find((one) => one.name === name);
      if (!mutant) throw new ListError(`world.txt: no such mutant: ${name}`);
      return mutant;
    });
}

// Lets a build's world live until a life goes wrong.  Returns how many lives
// that took, what went wrong first, and in which seed.  `run` is a command to
// run the world by, which may keep it on one core.
async function liveUntilWrong(build, log, run = []) {
  const [program, ...args] = [...run, path.join(build, "tests/world/world"),
    "until", String(seconds), "1"];
  const { output } = await runProgram(program, args, {}, log, limits);
  const [, lives] = /^(\d+) lives, .* wrong$/m.exec(output) ?? [];
  const [, wrong, seed] = /^(seed (\d+): .*)$/m.exec(output) ?? [];
  return { lives, wrong, seed };
}

// Returns the seed of a life that goes wrong with the mutant and goes well in
// the unchanged library, in place of a test's name; null if there is none.
async function noticedByWorld(directory, { build }) {
  const log = path.join(directory, "world.log");
  const { seed } = await liveUntilWrong(directory, log);
  if (seed === undefined) return null;
  const { status } = await runProgram(path.join(build, "tests/world/world"),
    ["seed", seed], {}, path.join(directory, "seed.log"), limits);
  return status === 0 ? `world (seed ${seed})` : null;
}

// Returns the outcome, and the rest of the mutant's line.
async function judge(mutant, core, settings) {
  try {
    const directory = await buildMutant({ ...mutant, catchers: ["world"] },
      settings);
    const began = Date.now();
    const { lives, wrong } = await liveUntilWrong(directory,
      path.join(directory, "world.log"), ["taskset", "-c", String(core)]);
    const took = ((Date.now() - began) / 1000).toFixed(1);
    fs.rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
    const counts = `${lives} lives`.padStart(11) + `${took}`.padStart(6) + " s";
    return [wrong ? "found" : "missed",
      `${counts}  ${mutant.name}${wrong ? `: ${wrong}` : ""}`];
  } catch (error) {
    const known = error instanceof StaleError ? "stale" :
      error instanceof BuildError ? "broken" : null;
    if (known === null) throw error;
    return [known, `${mutant.name}: ${error.message}`];
  }
}

async function isRightAsThingsAre(settings) {
  fs.mkdirSync(settings.out, { recursive: true });
  const { wrong } = await liveUntilWrong(settings.build,
    path.join(settings.out, "world.log"));
  if (wrong) console.log(`wrong as things are: ${wrong}`);
  return !wrong;
}

async function findByWorld(all, settings) {
  const mutants = choose(all);
  if (!await isRightAsThingsAre(settings)) return false;
  const counts = { found: 0, missed: 0, stale: 0, broken: 0 };
  const cores = os.cpus().map((_, core) => core);
  await inTurn(mutants, cores.length, async (mutant) => {
    const core = cores.pop();
    const [outcome, words] = await judge(mutant, core, settings);
    cores.push(core);
    ++counts[outcome];
    console.log(`${outcome.padEnd(6)} ${words}`);
  });
  console.log(Object.entries(counts)
    .map(([outcome, count]) => `${count} ${outcome}`).join(", "));
  return counts.found === mutants.length;
}

module.exports = { findByWorld, noticedByWorld };
