// A line a fault in a file, so that it can be laid beside what clients logged:
//
//   81233471234567 drop-answer PutItem ddblock-nightly-report
//
// nanoseconds on CLOCK_MONOTONIC, kind, action, the item's key to the line's
// end.  Lines are kept for a moment and written together.
"use strict";

const fs = require("node:fs");

const KEPT_MS = 200;

// Of an action on one item: what its attribute `name` says, or else its first.
function keyOf(body) {
  let parsed;
  try {
    parsed = JSON.parse(body);
  } catch {
    return "";
  }
  const attributes = parsed?.Key ?? parsed?.Item ?? {};
  const value = attributes.name ?? Object.values(attributes)[0] ?? {};
  return String(value.S ?? value.N ?? value.B ?? "");
}

class Events {
  constructor(path) {
    this.file = fs.openSync(path, "a");
    this.lines = [];
  }

  add(kind, action, body) {
    const key = keyOf(body).replace(/[\x00-\x1f]/g, "?");
    this.lines.push(`${process.hrtime.bigint()} ${kind} ${action} ${key}\n`);
    if (this.lines.length === 1) setTimeout(() => this.flush(), KEPT_MS);
  }

  flush() {
    if (this.lines.length === 0) return;
    const text = this.lines.join("");
    this.lines = [];
    fs.writeSync(this.file, text);
  }
}

module.exports = { Events, keyOf };
