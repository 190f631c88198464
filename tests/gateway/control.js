// The control port: JSON over HTTP, for tests and for curl.
//
//   POST   /rules   a rule (faults.js) behind those there are
//   DELETE /rules   none any more
//   POST   /go      what waits for its time (faults.js: ms) goes on now
//   POST   /mode    {"mode": "open" | "refuse" | "hang"}
//   POST   /clock   {"offset_s": N, "date": false}, either or both
//   POST   /forget  all counts are 0 again
//   GET    /counts
//
// What is not understood gets 400 and {"error": "..."}, and changes nothing.
"use strict";

const { startJsonPort } = require("./json_port");

function setClock(clock, { offset_s: offset, date }) {
  if (offset !== undefined) clock.offset = offset * 1000;
  if (date !== undefined) clock.shown = date;
}

function forget(gateway) {
  gateway.counts.forget();
}

const ROUTES = {
  "POST /rules": [null, (gateway, rule) => gateway.faults.add(rule)],
  "DELETE /rules": [[], (gateway) => gateway.faults.clear()],
  "POST /go": [[], (gateway) => gateway.letGo()],
  "POST /mode": [["mode"], (gateway, { mode }) => gateway.mode.set(mode)],
  "POST /clock": [
    ["offset_s", "date"],
    (gateway, value) => setClock(gateway.clock, value),
  ],
  "POST /forget": [[], forget],
  "GET /counts": [[], (gateway) => gateway.counts.toJSON()],
};

// Returns its port.
function startControl(gateway) {
  return startJsonPort(ROUTES, gateway);
}

module.exports = { setClock, startControl };
