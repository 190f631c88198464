#!/usr/bin/env node
// Contestant: npm's dynamodb-lock-client, a lock taken and released: of its two
// kinds the one whose locks have a lease and are renewed.  That sends three
// requests: GetItem and PutItem, and PutItem to release.
//
//   cycle_lock_client.js URL
//
// What it is asked and answers is told in contestant.hpp.  Keys come from the
// environment.
"use strict";

process.env.AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE = "1";
const fs = require("fs");
const http = require("http");
const readline = require("readline");
const { promisify } = require("util");
const AWS = require("aws-sdk");
const { FailOpen } = require("dynamodb-lock-client");

const requestsPerCycle = 3;
let requests = 0;

function cycleAt(url) {
  const dynamodb = new AWS.DynamoDB.DocumentClient({
    endpoint: url, region: "eu-west-1",
    // By itself this SDK connects anew for each request.
    httpOptions: { agent: new http.Agent({ keepAlive: true }) } });
  const client = new FailOpen({ dynamodb, lockTable: "locks",
    partitionKey: "name", owner: "web-17.example:4711",
    leaseDurationMs: 60_000, heartbeatPeriodMs: 20_000 });
  const acquire = promisify(client.acquireLock.bind(client));
  return async () => {
    const lock = await acquire("nightly-report");
    await promisify(lock.release.bind(lock))();
    requests += requestsPerCycle;
  };
}

function statusOfProcess(name) {
  const status = fs.readFileSync("/proc/self/status", "latin1");
  return Number(new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(status)[1]);
}

async function run(cycle, warmup, cycles) {
  const settled = requests;
  for (let i = 0; i < warmup; ++i) await cycle();
  const begin = requests;
  const times = new Float64Array(cycles);
  const before = process.cpuUsage();
  let last = process.hrtime.bigint();
  for (let i = 0; i < cycles; ++i) {
    await cycle();
    const now = process.hrtime.bigint();
    times[i] = Number(now - last);
    last = now;
  }
  const { user, system } = process.cpuUsage(before);
  const median = times.sort()[Math.floor(cycles / 2)];
  console.log([(user + system) * 1000, median, requests - begin,
    begin - settled, 0, statusOfProcess("VmHWM"), statusOfProcess("Threads"),
  ].join(" "));
}

async function main() {
  if (process.argv.length !== 3) {
    console.error("usage: cycle_lock_client.js URL");
    process.exit(2);
  }
  const cycle = cycleAt(process.argv[2]);
  for await (const line of readline.createInterface(process.stdin)) {
    const [warmup, cycles] = line.split(" ").map(Number);
    if (cycles === 0) console.log(requests);
    else await run(cycle, warmup, cycles);
  }
  process.exit();  // Idle connections would keep it.
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
