// Reads the mutants of list/*.txt.  A mutant is the library, or the command,
// with one protection taken away; an entry of a list says what it protects, what is
// changed (as in a diff: lines with - are replaced by lines with +, lines with
// a blank stay) and which tests notice:
//
//   # A comment.
//   mutant late-answer-revives
//     An answer that comes when its lease is over grants nothing.
//   in ddbmutex/lock/protocol.cpp, Lease::receive_write
//   -  if (received >= end) return Verdict::again;
//   caught by
//     protocol/answer_at_the_end_of_its_lease_never_grants
//
// "before libcurl 8.0.0", above "in": a newer one needs no such protection.
// A mutant may change several places: "in FILE, DEFINITION" begins each; patch.js
// says how the lines are found there.
//
// A catcher is a test, SUITE/CASE, that notices every time and on any machine: by
// no chance and no race, and with nothing that a stall could hide.  Or it is
// `world`: the simulated world finds the mutant by itself (world.js), after so
// few lives that it still does when the plans of the lives change.  The quickest
// comes first.
//
//   for (const mutant of readMutants(directory)) ...
"use strict";

const fs = require("fs");
const path = require("path");
const { applyChange } = require("./patch.js");

class ListError extends Error {}

function parseCatcher(line) {
  if (line === "world" || /^\w+(\/\w+)+$/.test(line)) return line;
  throw new ListError(`neither suite/case nor world: ${line}`);
}

// What each kind of line does to the entry it stands in.
class Reader {
  constructor() {
    this.mutants = [];
    this.part = "";
  }

  get last() {
    return this.mutants[this.mutants.length - 1];
  }

  keyword(line) {
    const mutant = /^mutant ([a-z0-9-]+)$/.exec(line);
    const libcurl = /^before libcurl ([\d.]+)$/.exec(line);
    const place = /^in ([^\s,]+)(?:, (\S+))?$/.exec(line);
    if (mutant) {
      this.part = "words";
      this.mutants.push({ name: mutant[1], words: [], changes: [],
        catchers: [] });
    } else if (this.last && libcurl) {
      this.last.beforeLibcurl = libcurl[1];
    } else if (this.last && place) {
      this.part = "change";
      const [, file, name] = place;
      this.last.changes.push({ file, name, before: [], after: [] });
    } else if (this.last && line === "caught by") {
      this.part = "catchers";
    } else {
      return false;
    }
    return true;
  }

  change(line) {
    const { before, after } = this.last.changes[this.last.changes.length - 1];
    const sign = line[0] ?? " ";  // An empty line may have lost its blank.
    if (!"-+ ".includes(sign)) {
      throw new ListError(`no line of a diff: ${line}`);
    }
    if (sign !== "+") before.push(line.slice(1));
    if (sign !== "-") after.push(line.slice(1));
  }

  read(line) {
    if (line.startsWith("#") || this.keyword(line)) return;
    if (this.part === "change") {
      this.change(line);
    } else if (line.trim() === "") {
      return;
    } else if (this.part === "words") {
      this.last.words.push(line.trim());
    } else if (this.part === "catchers") {
      this.last.catchers.push(parseCatcher(line.trim()));
    } else {
      throw new ListError(`before the first mutant: ${line}`);
    }
  }
}

function complain(mutant) {
  const { name, words, changes, catchers } = mutant;
  if (words.length === 0) throw new ListError(`${name} protects nothing`);
  if (changes.length === 0) throw new ListError(`${name} changes nothing`);
  if (catchers.length === 0) throw new ListError(`nothing catches ${name}`);
  for (const { before, after } of changes) {
    if (before.length === 0) throw new ListError(`${name} replaces nothing`);
    if (before.join("\n") === after.join("\n")) {
      throw new ListError(`${name} leaves a place as it is`);
    }
  }
}

function readList(file) {
  const reader = new Reader();
  fs.readFileSync(file, "utf8").split("\n").forEach((line, index) => {
    try {
      reader.read(line);
    } catch (error) {
      throw new ListError(`${file}:${index + 1}: ${error.message}`);
    }
  });
  return reader.mutants;
}

function readMutants(directory) {
  const lists = fs.readdirSync(directory).filter((f) => f.endsWith(".txt"));
  const mutants = lists.sort()
    .flatMap((list) => readList(path.join(directory, list)));
  mutants.forEach(complain);
  const names = mutants.map((mutant) => mutant.name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice) throw new ListError(`two mutants are called ${twice}`);
  return mutants;
}

module.exports = { ListError, readMutants, applyChange };
