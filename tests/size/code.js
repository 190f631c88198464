// What the library adds to a program: compiles it in the ways that are
// measured, each file once, and links it with tests/size/mutex.cpp.  Objects
// are kept, by what they are made of, for the next time.
"use strict";

const crypto = require("crypto");
const fs = require("fs");
const path = require("path");
const { execFileSync } = require("child_process");
const { closure, read } = require("./lines.js");
const { inTurn, output } = require("./commands.js");

const small = ["-Os", "-DNDEBUG", "-ffunction-sections", "-fdata-sections"];
const ways = {
  small,
  lto: [...small, "-flto"],
  bare: [...small, "-flto", "-fno-exceptions", "-fno-rtti",
    "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"],
  debug: ["-O0", "-g"],
};
// For a change of a few bytes to be seen, the file has no gaps up to a page.
const linked = ["-Wl,--gc-sections", "-Wl,-z,noseparate-code",
  "-Wl,-z,norelro"];

const asking = ["--no-print-directory", "-s"];

function words(text) {
  return text.split(/\s+/).filter((word) => word !== "");
}

// The calls that few programs make are in these.
const rarelyCalled = ["any_of", "attributes", "guard", "manage"];

// A source of a part begins with the condition that the part is there.
function isEmpty(text, macros) {
  const part = /^#ifndef (DDBMUTEX_NO_\w+)/.exec(text)?.[1];
  return macros.includes(`-D${part}`);
}

class Code {
  constructor(directory, environment) {
    this.directory = directory;
    this.make = environment.MAKE ?? "make";
    // All that may be left out.
    this.parts = words(execFileSync(this.make, [...asking, "parts"],
      { encoding: "utf8", env: { ...process.env, MAKEFLAGS: "" } }));
    this.compiler = environment.CXX ?? "g++";
    this.common = [`-std=${environment.CXXSTD ?? "c++17"}`, "-pthread", "-w"];
    this.sources = new Map();
    fs.mkdirSync(path.join(directory, "objects"), { recursive: true });
  }

  // What make compiles of the library with those parts, and its macros.
  async sourcesWith(parts) {
    const key = parts.join(" ");
    if (!this.sources.has(key)) {
      const said = words(await output(this.make, [...asking, "sources",
        `WITH=${key}`], { MAKEFLAGS: "" }));
      const macros = said.filter((word) => word.startsWith("-D"));
      this.sources.set(key, { macros, files: said.filter((word) =>
        word.endsWith(".cpp") && !isEmpty(read(word), macros)) });
    }
    return this.sources.get(key);
  }

  // The same for what makes another object.
  async objectOf(source, flags, macros) {
    this.version ??= await output(this.compiler, ["--version"]);
    const texts = [...closure(source)].map(read);
    const known = macros.filter((macro) =>
      texts.some((text) => text.includes(macro.slice(2))));
    const command = [...this.common, ...flags, ...known];
    const hash = crypto.createHash("sha1");
    for (const text of [this.version, ...command, ...texts]) {
      hash.update(`${text.length} ${text}`);
    }
    const name = `${path.basename(source, ".cpp")}-${hash.digest("hex")}.o`;
    return { source, command, file: path.join(this.directory, "objects", name) };
  }

  async compile(sources, flags, macros) {
    const objects = await Promise.all(
      sources.map((source) => this.objectOf(source, flags, macros)));
    const wanted = objects.filter(({ file }) => !fs.existsSync(file));
    await inTurn(wanted, async ({ source, command, file }) => {
      const draft = `${file}.${process.pid}`;
      await output(this.compiler, [...command, "-I.", "-c", source, "-o",
        draft]);
      fs.renameSync(draft, file);
    });
    return objects.map(({ file }) => file);
  }

  async link(name, flags, objects, keep = []) {
    const program = path.join(this.directory, name);
    await output(this.compiler, [...this.common, ...flags, ...linked,
      ...keep.map((symbol) => `-Wl,-u,${symbol}`), ...objects, "-lcurl",
      "-lcrypto", "-o", program]);
    return program;
  }

  // All of the library, as packaging/amalgamate joins it.
  async joined() {
    await output(this.make, [...asking, "amalgamation"], { MAKEFLAGS: "" });
    return ["build/amalgamation/ddbmutex.cpp"];
  }

  // Of `sources` that are all of the library, or of those that make compiles.
  async program(name, way, parts, keep, sources) {
    const { files, macros } = await this.sourcesWith(parts);
    const objects = await this.compile(["tests/size/mutex.cpp",
      ...sources ?? files], ways[way], macros);
    return this.link(name, ways[way], objects, keep);
  }

  // At -O0, with the core as one file: nobody counts its bytes.
  async debugProgram(name) {
    const { files, macros } = await this.sourcesWith([]);
    const whole = path.join(this.directory, "core.cpp");
    fs.writeFileSync(whole, files.map((file) =>
      `#include "${path.relative(this.directory, file)}"\n`).join(""));
    const objects = await this.compile(["tests/size/mutex.cpp", whole],
      ways.debug, macros);
    return this.link(name, ways.debug, objects);
  }

  async stripped(program) {
    await output("strip", ["-o", `${program}.stripped`, program]);
    return fs.statSync(`${program}.stripped`).size;
  }

  // Bytes beyond those of the program on bare libcurl and OpenSSL.
  async added(name, way, parts, keep, sources) {
    const objects = await this.compile(["tests/size/bare.cpp"], ways[way], []);
    const without = await this.link(`without-${way}`, ways[way], objects);
    const program = await this.program(name, way, parts, keep, sources);
    return await this.stripped(program) - await this.stripped(without);
  }

  // The public calls of such files of ours, as the linker knows them: what no
  // program calls would not be linked.
  async callsOf(names) {
    if (names.length === 0) return [];
    const objects = await this.compile(
      names.map((name) => `ddbmutex/${name}.cpp`), ways.small, []);
    const symbols = async (more) => (await output("nm", ["-g",
      "--defined-only", ...more, ...objects])).split("\n")
      .map((line) => /^[0-9a-f]+ T (.*)$/.exec(line)?.[1])
      .filter((symbol) => symbol !== undefined);
    const readable = await symbols(["-C"]);
    return (await symbols([])).filter((symbol, i) => isPublic(readable[i]));
  }

  // Bytes and names of the largest of a program.
  async largestSymbols(program, most) {
    const said = await output("nm", ["-C", "-S", "--size-sort", "-r", program]);
    return said.split("\n").slice(0, most).map((line) => {
      const [, size, name] = /^\w+ (\w+) \w (.*)$/.exec(line);
      return [parseInt(size, 16), name];
    });
  }

  async largestFiles(most) {
    const { files, macros } = await this.sourcesWith(this.parts);
    const objects = await this.compile(files, ways.small, macros);
    const bytes = await bytesOf(objects);
    return files.map((file, i) => [bytes[i], file])
      .sort((a, b) => b[0] - a[0]).slice(0, most);
  }

  // What no longer is of use to anybody.
  tidy() {
    const week = 7 * 24 * 3600 * 1000;
    for (const name of fs.readdirSync(path.join(this.directory, "objects"))) {
      const file = path.join(this.directory, "objects", name);
      if (Date.now() - fs.statSync(file).mtimeMs > week) fs.unlinkSync(file);
    }
  }
}

// One of ddbmutex::DdbMutex::lock() and ddbmutex::name_of(), unlike
// ddbmutex::lock::fresh_uuid() and ddbmutex::Table::Impl::get().
function isPublic(name) {
  const scopes = name.replace(/\(.*/, "").replace(/^ddbmutex::(v\d+::)?/, "")
    .split("::").slice(0, -1);
  return scopes.every((scope) => /^[A-Z]/.test(scope) && scope !== "Impl");
}

// Of each object, or member of an archive: code and constants.
async function bytesOf(files) {
  const said = await output("size", files);
  return said.split("\n").slice(1).filter((line) => line !== "")
    .map((line) => parseInt(line, 10));
}

module.exports = { Code, bytesOf, rarelyCalled };
