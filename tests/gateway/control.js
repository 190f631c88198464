// The control port: JSON over HTTP, for tests and for curl.
//
//   POST   /rules   a rule (faults.js) behind those there are
//   DELETE /rules   none any more
//   POST   /rate    how many requests a second go through (rate.js)
//   DELETE /rate    all of them
//   POST   /go      what waits for its time (faults.js: ms) goes on now
//   POST   /mode    {"mode": "open" | "refuse" | "hang"}
//   POST   /clock   {"offset_s": N, "date": false}, either or both
//   POST   /seed    {"seed": N}: chance starts anew
//   POST   /forget  all counts are 0 again
//   GET    /counts
//
// What is not understood gets 400 and {"error": "..."}, and changes nothing.
"use strict";

const { demand } = require("./faults");
const { startJsonPort } = require("./json_port");

const FARTHEST_S = 100 * 366 * 86400;

function setClock(clock, { offset_s: offset, date }) {
  demand(
    offset !== undefined || date !== undefined,
    'there is neither "offset_s" nor "date"',
  );
  demand(
    offset === undefined ||
      (Number.isFinite(offset) && Math.abs(offset) <= FARTHEST_S),
    '"offset_s" is not a number of seconds within a century',
  );
  demand(
    date === undefined || typeof date === "boolean",
    '"date" is neither true nor false',
  );
  if (offset !== undefined) clock.offset = offset * 1000;
  if (date !== undefined) clock.shown = date;
}

function setSeed(gateway, { seed }) {
  demand(
    Number.isInteger(seed) && seed >= 0 && seed <= 0xffffffff,
    '"seed" is not a whole number of 32 bits',
  );
  gateway.seed(seed);
}

function forget(gateway) {
  gateway.counts.forget();
  gateway.rate.forget();
}

const ROUTES = {
  "POST /rules": [null, (gateway, rule) => gateway.faults.add(rule)],
  "DELETE /rules": [[], (gateway) => gateway.faults.clear()],
  "POST /rate": [null, (gateway, limit) => gateway.rate.set(limit)],
  "DELETE /rate": [[], (gateway) => gateway.rate.clear()],
  "POST /go": [[], (gateway) => gateway.letGo()],
  "POST /mode": [["mode"], (gateway, { mode }) => gateway.mode.set(mode)],
  "POST /clock": [
    ["offset_s", "date"],
    (gateway, value) => setClock(gateway.clock, value),
  ],
  "POST /seed": [["seed"], setSeed],
  "POST /forget": [[], forget],
  "GET /counts": [
    [],
    (gateway) => ({ ...gateway.counts.toJSON(), rate: gateway.rate }),
  ],
};

// Returns its port.
function startControl(gateway) {
  return startJsonPort(ROUTES, gateway);
}

module.exports = { setClock, startControl };
