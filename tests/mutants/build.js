// Builds a mutant: the files that it changes are compiled anew, without
// optimization, and linked with the tests that it names; all else is taken from
// the build in $BUILD.
//
//   const directory = await buildMutant(mutant, settings);
//   // directory + "/tests/tests" has the suites of its catchers, and
//   // directory + "/tests/world/world" is the simulated world if "world" is
//   // among its catchers
//
// A changed header is compiled into every file of the library and of the
// command that includes it, but not into the tests.
"use strict";

const { execFile } = require("child_process");
const fs = require("fs");
const path = require("path");
const { applyChange } = require("./patch.js");

class BuildError extends Error {}

// Programs that tests start, by the suite that starts them.
const startedBy = {
  allocations: ["processes/allocations"],
  aws_sources: ["processes/agent"],
  exits: ["processes/exits"],
  forks: ["processes/agent", "processes/fork_storm"],
  passwords_of_proxies: ["processes/agent"],
  privileged: ["processes/privileged"],
  redirects: ["processes/agent"],
  thread_cancellation: ["processes/agent"],
  tls_and_proxies: ["processes/agent"],
};

function words(text) {
  return (text ?? "").split(/\s+/).filter((word) => word !== "");
}

// The option for the quickest linker that is there, if one is.
function linker() {
  const there = (name) => words(process.env.PATH.replace(/:/g, " "))
    .some((directory) => fs.existsSync(path.join(directory, `ld.${name}`)));
  const quick = ["lld", "gold"].find(there);
  return quick && `-fuse-ld=${quick}`;
}

// From the environment that the Makefile gives.
function settingsFrom(environment) {
  const build = environment.BUILD;
  if (!build) throw new BuildError("BUILD does not name the build");
  const flags = words(environment.CXXFLAGS ?? "-std=c++17 -pthread -DNDEBUG");
  const quickLinker = linker();
  return {
    build,
    out: environment.MUTANTS_BUILD ?? "build/mutants",
    compiler: environment.CXX ?? "g++",
    // A mutant may leave things unused.
    compile: ["-I.", "-DDDBMUTEX_EXTRAS", ...words(environment.CPPFLAGS), ...flags, "-O0", "-w"],
    quickLinker,
    link: [...flags, ...(quickLinker ? [quickLinker] : []),
      ...words(environment.LDFLAGS)],
    libraries: ["-lssl", "-lz",
      ...words(environment.LDLIBS ?? "-lcurl -lcrypto")],
  };
}

// Does the work for each, so many at once.
async function inTurn(all, atOnce, work) {
  const left = all.entries();
  const worker = async () => {
    for (const [index, one] of left) await work(one, index);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

function command(program, args) {
  return new Promise((resolve, reject) => {
    execFile(program, args, { maxBuffer: 1 << 26 }, (error, _, complaints) => {
      if (error) reject(new BuildError(complaints || error.message));
      else resolve();
    });
  });
}

const rooms = ["sigv4", "sigv4/keys", "ddbmutex/dynamodb", "ddbmutex/lock",
  "ddbmutex", "extras/keys", "extras"];
const commandRoom = "examples/ddbmutex";
const commandSuites = ["command_program", "command_run", "terminal"];

// Of the library, without ".cpp".
function libraryParts() {
  const inside = rooms.flatMap((room) =>
    fs.readdirSync(room).map((file) => path.join(room, file)));
  return ["ddbmutex.cpp", ...inside]
    .filter((file) => file.endsWith(".cpp"))
    .map((file) => file.slice(0, -".cpp".length));
}

// Of the command, without ".cpp".
function commandParts() {
  return sourcesIn(commandRoom).map((file) => file.slice(0, -".cpp".length));
}

function sourcesIn(room) {
  if (!fs.existsSync(room)) return [];
  return fs.readdirSync(room).filter((file) => file.endsWith(".cpp"))
    .map((file) => path.join(room, file));
}

const testTexts = new Map();

function hasSuite(source, suites) {
  if (!testTexts.has(source)) {
    testTexts.set(source, fs.readFileSync(source, "utf8"));
  }
  const begun = testTexts.get(source)
    .matchAll(/\bBOOST_(?:AUTO|FIXTURE)_TEST_SUITE\(\s*(\w+)/g);
  return [...begun].some(([, suite]) => suites.has(suite));
}

// Of the tests' program, with those suites, and what they may use besides.
function testObjects(suites, build) {
  const object = (source) => path.join(build, source.replace(/cpp$/, "o"));
  const wanted = ["tests", "tests/core", "tests/extras"].flatMap(sourcesIn)
    .filter((file) => hasSuite(file, suites));
  const tests = ["tests/main.cpp", ...wanted].map(object);
  const fuzz = sourcesIn("tests/fuzz")
    .filter((source) => source !== "tests/fuzz/main.cpp");
  const programs = ["demo", "ddbmutex"]
    .flatMap((name) => sourcesIn(`examples/${name}`))
    .filter((source) => !source.endsWith("/main.cpp"));
  const world = ["tests/world/odd_rows.cpp"];
  const used = [...fuzz, ...programs, ...world].map(object)
    .filter(fs.existsSync);
  return { tests, used };
}

// The parts that a file is compiled into, by what the compiler wrote down of
// their headers.
function partsWith(file, build) {
  if (file.endsWith(".cpp")) return [file.slice(0, -".cpp".length)];
  return [...libraryParts(), ...commandParts()].filter((part) =>
    words(fs.readFileSync(path.join(build, `${part}.d`), "utf8"))
      .map(path.normalize).includes(file));
}

// A file includes what lies beside it, so the library lies below `directory` as
// it does here, by symbolic links.
function linkSources(directory) {
  for (const room of ["", ...rooms, commandRoom]) {
    fs.mkdirSync(path.join(directory, room), { recursive: true });
    for (const file of fs.readdirSync(room || ".")) {
      if (!/\.[ch]pp$/.test(file)) continue;
      const copy = path.join(directory, room, file);
      fs.rmSync(copy, { force: true });
      fs.symlinkSync(path.resolve(room, file), copy);
    }
  }
}

// By the files that are changed.
function textsOf(mutant) {
  const texts = new Map((mutant.recompiled ?? [])
    .map((file) => [file, fs.readFileSync(file, "utf8")]));
  for (const change of mutant.changes) {
    const text = texts.get(change.file) ?? fs.readFileSync(change.file, "utf8");
    texts.set(change.file, applyChange(text, change));
  }
  return texts;
}

// Writes the changed files below `directory`; says which they are.
function writeSources(mutant, directory) {
  linkSources(directory);
  const texts = textsOf(mutant);
  for (const [file, text] of texts) {
    const copy = path.join(directory, file);
    fs.rmSync(copy, { force: true });
    fs.writeFileSync(copy, text);
  }
  return texts;
}

// The changed parts' objects, by part.
async function compile(texts, directory, settings) {
  const objects = new Map();
  for (const file of texts.keys()) {
    for (const part of partsWith(file, settings.build)) {
      objects.set(part, [path.join(directory, `${part}.cpp`),
        path.join(directory, `${part}.o`)]);
    }
  }
  await inTurn([...objects.values()], 2, ([source, object]) => {
    fs.mkdirSync(path.dirname(object), { recursive: true });
    return command(settings.compiler, [...settings.compile, "-c", source, "-o",
      object]);
  });
  return objects;
}

async function link(objects, library, program, settings) {
  fs.mkdirSync(path.dirname(program), { recursive: true });
  fs.rmSync(program, { force: true });
  await command(settings.compiler, [...settings.link, "-pthread", ...objects,
    path.join(settings.build, "tests/libsupport.a"), ...library,
    "-l:libboost_unit_test_framework.a", ...settings.libraries, "-o",
    program]);
}

// Programs of the build itself, for tests that start one that is not to
// change.
function borrowPrograms(directory, build) {
  for (const room of ["tests/processes", "tests/torture", commandRoom]) {
    const from = path.resolve(build, room);
    if (!fs.existsSync(from)) continue;
    fs.mkdirSync(path.join(directory, room), { recursive: true });
    for (const name of fs.readdirSync(from)) {
      if (name.includes(".")) continue;
      const program = path.join(directory, room, name);
      fs.rmSync(program, { force: true });
      fs.symlinkSync(path.join(from, name), program);
    }
  }
}

function suitesOf(mutant) {
  return new Set(mutant.catchers.filter((catcher) => catcher !== "world")
    .map((test) => test.split("/")[0]));
}

async function linkPrograms(mutant, library, directory, settings) {
  const programs = new Set(
    [...suitesOf(mutant)].flatMap((suite) => startedBy[suite] ?? []));
  for (const program of programs) {
    const object = path.join(settings.build, "tests", `${program}.o`);
    if (!fs.existsSync(object)) continue;
    await link([object], library, path.join(directory, "tests", program),
      settings);
  }
}

// The command, for the suites that run it.
async function linkCommand(mutant, changed, library, directory, settings) {
  const suites = suitesOf(mutant);
  if (!commandSuites.some((suite) => suites.has(suite))) return;
  const objects = commandParts().map((part) =>
    changed.get(part)?.[1] ?? path.join(settings.build, `${part}.o`));
  await link(objects, library, path.join(directory, commandRoom, "ddbmutex"),
    settings);
}

// What the linker is told of objects of which it is to take those it needs: for
// a quick one their names, for another an archive, which takes long to make.  It
// is a thin one, which does not copy the objects.
async function archive(file, objects, settings) {
  if (settings.quickLinker) {
    return ["-Wl,--start-lib", ...objects, "-Wl,--end-lib"];
  }
  fs.rmSync(file, { force: true });
  await command("ar", ["rcsT", file, ...objects]);
  return [file];
}

async function linkTests(mutant, changed, library, directory, settings) {
  const { tests, used } = testObjects(suitesOf(mutant), settings.build);
  const instead = new Map([...changed.entries()].map(([part, [, object]]) =>
    [path.join(settings.build, `${part}.o`), object]));
  const others = await archive(path.join(directory, "libused.a"),
    used.map((object) => instead.get(object) ?? object), settings);
  await link([...tests, ...others], library, path.join(directory, "tests/tests"),
    settings);
}

async function linkWorld(library, directory, settings) {
  const sources = ["tests/world", "tests/world/dynamodb"].flatMap(sourcesIn);
  const objects = sources.map((source) =>
    path.join(settings.build, source.replace(/cpp$/, "o")));
  await link(objects, library, path.join(directory, "tests/world/world"),
    settings);
}

// Where $BUILD is to be for the tests.
async function buildMutant(mutant, settings) {
  const directory = path.join(settings.out, mutant.name);
  fs.rmSync(directory, { recursive: true, force: true });
  fs.mkdirSync(directory, { recursive: true });
  const changed = await compile(writeSources(mutant, directory), directory,
    settings);
  const library = await archive(path.join(directory, "libddbmutex.a"),
    libraryParts().map((part) =>
      changed.get(part)?.[1] ?? path.join(settings.build, `${part}.o`)),
    settings);
  if (suitesOf(mutant).size > 0) {
    await linkTests(mutant, changed, library, directory, settings);
    borrowPrograms(directory, settings.build);
    await linkPrograms(mutant, library, directory, settings);
    await linkCommand(mutant, changed, library, directory, settings);
  }
  if (mutant.catchers.includes("world")) {
    await linkWorld(library, directory, settings);
  }
  return directory;
}

// $BUILD as it is, as the build of a mutant that changes nothing.
function borrowBuild(name, settings) {
  const directory = path.join(settings.out, name);
  fs.rmSync(directory, { recursive: true, force: true });
  fs.mkdirSync(path.join(directory, "tests"), { recursive: true });
  fs.symlinkSync(path.resolve(settings.build, "tests/tests"),
    path.join(directory, "tests/tests"));
  borrowPrograms(directory, settings.build);
  return directory;
}

module.exports = { BuildError, settingsFrom, textsOf, buildMutant,
  borrowBuild, inTurn };
