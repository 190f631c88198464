// A port on which tests, and curl, command a stand-in: JSON over HTTP.
//
//   const routes = {
//     "POST /mode": [["mode"], (subject, { mode }) => subject.set(mode)],
//     "GET /counts": [[], (subject) => subject.counts],
//   };
//   const port = await startJsonPort(routes, subject);
//
// By method and path: the members that the body may have (none: there need be
// no body; null: the deed checks them itself), and the deed; what that returns
// is the answer.  What is not understood gets 400 and {"error": "..."}.
"use strict";

const http = require("node:http");
const { BadRequest, checkMembers } = require("./faults");
const { HOST } = require("./doors");

function parse(text) {
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text);
  } catch {
    throw new BadRequest("the body is not JSON");
  }
}

async function respond(routes, subject, method, url, text) {
  const route = routes[`${method} ${url}`];
  if (route === undefined) {
    return [404, { error: `${method} ${url} is nothing here` }];
  }
  const [members, act] = route;
  try {
    const value = parse(text);
    if (members !== null) checkMembers(value, members);
    return [200, (await act(subject, value)) ?? {}];
  } catch (problem) {
    const status = problem instanceof BadRequest ? 400 : 500;
    return [status, { error: problem.message }];
  }
}

// Returns its port.
async function startJsonPort(routes, subject) {
  const server = http.createServer(async (request, response) => {
    const pieces = [];
    request.on("error", () => {}); // It has gone: nothing to do.
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", async () => {
      const text = Buffer.concat(pieces).toString();
      const { method, url } = request;
      const [status, value] = await respond(routes, subject, method, url, text);
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

module.exports = { startJsonPort };
