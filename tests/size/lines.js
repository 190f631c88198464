// How many lines the library has, and which files include which.
"use strict";

const fs = require("fs");
const path = require("path");

const texts = new Map();

function read(file) {
  if (!texts.has(file)) texts.set(file, fs.readFileSync(file, "utf8"));
  return texts.get(file);
}

// The library's own, from the top of the project.
function libraryFiles() {
  const rooms = ["ddbmutex", "ddbmutex/lock", "ddbmutex/dynamodb", "sigv4",
    "sigv4/keys"].flatMap((room) =>
    fs.readdirSync(room).map((file) => path.join(room, file)));
  return ["ddbmutex.hpp", "ddbmutex.cpp", ...rooms]
    .filter((file) => /\.[ch]pp$/.test(file));
}

// A file and all of the project's that it includes, directly or not.
function closure(file, found = new Set()) {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, name] of read(file).matchAll(/^ *# *include "([^"]+)"/gm)) {
    const beside = path.normalize(path.join(path.dirname(file), name));
    closure(fs.existsSync(beside) ? beside : name, found);
  }
  return found;
}

// Lines of code and lines that are nothing but comment.
function count(files) {
  let code = 0;
  let comments = 0;
  for (const file of files) {
    for (const line of read(file).split("\n")) {
      if (/^\s*\/\//.test(line)) ++comments;
      else if (line.trim() !== "") ++code;
    }
  }
  return { code, share: (100 * comments) / (code + comments) };
}

module.exports = { closure, count, libraryFiles, read };
