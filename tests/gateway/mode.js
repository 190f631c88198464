// Whether anything goes on: "open", "refuse" (the doors are shut) or "hang".
"use strict";

const { demand } = require("./faults");

const MODES = ["open", "refuse", "hang"];

class Mode {
  constructor(doors) {
    this.doors = doors;
    this.now = "open";
    this.waiting = [];
    this.change = Promise.resolve();
  }

  // One change after the other, in the order in which they were asked for.
  set(mode) {
    demand(MODES.includes(mode), `"mode" is none of ${MODES.join(", ")}`);
    const changed = this.change.then(() => this.#set(mode));
    this.change = changed.catch(() => {});
    return changed;
  }

  // At once, but if it hangs: then once it is open again.
  async pass() {
    while (this.now === "hang") {
      await new Promise((resolve) => this.waiting.push(resolve));
    }
  }

  async #set(mode) {
    this.now = mode;
    for (const door of this.doors) {
      await (mode === "refuse" ? door.shut() : door.open());
    }
    if (mode !== "open") return;
    const waiting = this.waiting;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }
}

module.exports = { Mode };
