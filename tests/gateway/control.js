// The control port: JSON over HTTP, for tests and for curl.
//
//   POST   /rules   a rule (faults.js) behind those there are
//   DELETE /rules   none any more
//   POST   /mode    {"mode": "open" | "refuse" | "hang"}
//   POST   /clock   {"offset_s": N, "date": false}, either or both
//   POST   /seed    {"seed": N}: chance starts anew
//   POST   /forget  all counts are 0 again
//   GET    /counts
//
// What is not understood gets 400 and {"error": "..."}, and changes nothing.
"use strict";

const http = require("node:http");
const { BadRequest, checkMembers, demand } = require("./faults");
const { HOST } = require("./doors");

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

// By method and path: the body's members (none: there is no body), and what
// to do; what it returns is the answer.
const ROUTES = {
  "POST /rules": [null, (gateway, rule) => gateway.faults.add(rule)],
  "DELETE /rules": [[], (gateway) => gateway.faults.clear()],
  "POST /mode": [["mode"], (gateway, { mode }) => gateway.mode.set(mode)],
  "POST /clock": [
    ["offset_s", "date"],
    (gateway, value) => setClock(gateway.clock, value),
  ],
  "POST /seed": [["seed"], setSeed],
  "POST /forget": [[], (gateway) => gateway.counts.forget()],
  "GET /counts": [[], (gateway) => gateway.counts],
};

function parse(text) {
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text);
  } catch {
    throw new BadRequest("the body is not JSON");
  }
}

async function respond(gateway, method, url, text) {
  const route = ROUTES[`${method} ${url}`];
  if (route === undefined) {
    return [404, { error: `${method} ${url} is nothing here` }];
  }
  const [members, act] = route;
  try {
    const value = parse(text);
    if (members !== null) checkMembers(value, members);
    return [200, (await act(gateway, value)) ?? {}];
  } catch (problem) {
    const status = problem instanceof BadRequest ? 400 : 500;
    return [status, { error: problem.message }];
  }
}

// Returns its port.
async function startControl(gateway) {
  const server = http.createServer(async (request, response) => {
    const pieces = [];
    request.on("error", () => {}); // It has gone: nothing to do.
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", async () => {
      const text = Buffer.concat(pieces).toString();
      const { method, url } = request;
      const [status, value] = await respond(gateway, method, url, text);
      const json = Buffer.from(JSON.stringify(value) + "\n");
      response.writeHead(status, {
        "Content-Type": "application/json",
        "Content-Length": json.length,
      });
      response.end(json);
    });
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, HOST, resolve);
  });
  return server.address().port;
}

module.exports = { startControl };
