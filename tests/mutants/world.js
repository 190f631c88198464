// Which mutants the simulated world (tests/world) finds by itself, without any
// test that knows what to look for.
//
//   const good = await findByWorld(mutants, regex, settings);
//   const noticed = await noticedByWorld(directory, settings);  // A catcher.
//
// Without a regex they are those that world.txt names; with one, those of that
// name whose files decide what the lock does.  Each is linked with the world,
// which lives the same seeds until one goes wrong, for a minute of computing at
// the most (or $WORLD_SECONDS).  First nothing may go wrong as things are.  Then
// a line for each:
//
//   found    lives SECONDS name: what went wrong
//   missed   nothing went wrong
//   stale, broken  as `run full` prints them
//
// `good` is false if one that world.txt names was not found.
"use strict";

const fs = require("fs");
const os = require("os");
const path = require("path");
const { ListError } = require("./list.js");
const { BuildError, buildMutant, inTurn } = require("./build.js");
const { runProgram } = require("./trial.js");

const listFile = path.join(__dirname, "world.txt");
const seconds = Number(process.env.WORLD_SECONDS || 60);
// A minute of computing may take long beside other work.
const limits = { seconds: 60 * seconds, first: false };
const decisive = new RegExp(
  "^ddbmutex(/(lock/\\w+|dynamodb/(clock|client|ask|retry)|layouts|any_of\\w*|" +
  "guard|manage))?\\.[ch]pp$");

function decides({ changes }) {
  return changes.every(({ file }) => decisive.test(file));
}

function namesInList() {
  if (!fs.existsSync(listFile)) return [];
  return fs.readFileSync(listFile, "utf8").split("\n")
    .map((line) => line.replace(/#.*/, "").trim()).filter((name) => name !== "");
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
// the unchanged library, in place of a test's name; nothing if there is none.
async function noticedByWorld(directory, { build }) {
  const log = path.join(directory, "world.log");
  const { seed } = await liveUntilWrong(directory, log);
  if (seed === undefined) return [];
  const { status } = await runProgram(path.join(build, "tests/world/world"),
    ["seed", seed], {}, path.join(directory, "seed.log"), limits);
  return status === 0 ? [`world (seed ${seed})`] : [];
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
    const known = error instanceof ListError ? "stale" :
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

// Those to be judged.
function choose(all, listed, regex) {
  if (regex !== undefined) {
    return all.filter((mutant) =>
      decides(mutant) && new RegExp(regex).test(mutant.name));
  }
  for (const name of listed) {
    if (!all.some((mutant) => mutant.name === name)) {
      throw new ListError(`world.txt: no such mutant: ${name}`);
    }
  }
  return all.filter(({ name }) => listed.has(name));
}

async function findByWorld(all, regex, settings) {
  const listed = new Set(namesInList());
  const mutants = choose(all, listed, regex);
  if (!await isRightAsThingsAre(settings)) return false;
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

module.exports = { findByWorld, noticedByWorld };
