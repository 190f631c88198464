// Tables that are made and deleted as slowly as AWS's, though the engine makes
// and deletes them at once:
//
//   CreateTable    answers CREATING, and for a moment the table is not found
//   CREATING       its items are not found, it cannot be changed or deleted
//   DeleteTable    answers DELETING; until it is gone, it cannot be made again
//
// Only MOST_AT_ONCE tables can be CREATING at once, and a table's TTL can be
// changed only once an hour.
"use strict";

const answers = require("./answers");

const MOST_AT_ONCE = 6;
const UNSEEN = 0.25; // The part of CREATING in which it is not found.
const HOUR_MS = 3600000;

const OF_TABLES = [
  "CreateTable",
  "DescribeTable",
  "DeleteTable",
  "UpdateTimeToLive",
];

// The tables that a request is about.
function namesIn(body) {
  const names = new Set([body.TableName]);
  for (const part of body.TransactItems ?? []) {
    for (const deed of Object.values(part)) names.add(deed.TableName);
  }
  names.delete(undefined);
  return [...names];
}

function parsed(bytes) {
  try {
    return JSON.parse(bytes);
  } catch {
    return {};
  }
}

class Tables {
  // `ms`: how long making and deleting one takes.
  constructor(ms, clock, now = () => performance.now()) {
    this.ms = ms;
    this.clock = clock;
    this.now = now;
    this.all = new Map(); // By name: {made, deleted, described, changed}.
  }

  // The answer to a request that the engine must not see; null if it must.
  before({ action, body }) {
    const request = parsed(body);
    for (const name of namesIn(request)) {
      const answer = this.#answer(action, name);
      if (answer !== null) return answer;
    }
    const making = [...this.all.values()].filter((one) => this.#isMaking(one));
    if (action === "CreateTable" && making.length >= MOST_AT_ONCE) {
      return this.#error("LimitExceededException", "Too many operations");
    }
    return null;
  }

  // The answer to give instead of the engine's.
  after({ action, body }, answer) {
    const request = parsed(body);
    const name = request.TableName;
    if (answer.status !== 200 || !OF_TABLES.includes(action)) return answer;
    if (action === "CreateTable") this.all.set(name, { made: this.now() });
    const one = this.all.get(name) ?? { made: -Infinity };
    this.all.set(name, one);
    if (action === "UpdateTimeToLive") one.changed = this.now();
    if (action === "DeleteTable") one.deleted = this.now();
    const told = parsed(answer.body);
    const description = told.TableDescription ?? told.Table;
    if (description === undefined) return answer;
    one.described = description;
    return { ...answer, body: this.#described(action, one) };
  }

  #isMaking(one) {
    return this.now() < one.made + this.ms;
  }

  #status(one) {
    if (one.deleted !== undefined) return "DELETING";
    return this.#isMaking(one) ? "CREATING" : "ACTIVE";
  }

  #described(action, one) {
    const described = { ...one.described, TableStatus: this.#status(one) };
    const member = action === "DescribeTable" ? "Table" : "TableDescription";
    return Buffer.from(JSON.stringify({ [member]: described }));
  }

  #answer(action, name) {
    const one = this.all.get(name);
    if (one === undefined) return null;
    if (this.now() >= one.deleted + this.ms) {
      this.all.delete(name);
      return null;
    }
    if (one.deleted !== undefined) return this.#ofDeleting(action, name, one);
    if (this.#isMaking(one)) return this.#ofCreating(action, name, one);
    if (action === "UpdateTimeToLive" && this.now() < one.changed + HOUR_MS) {
      return this.#error(
        "ValidationException",
        "Time to live has been modified multiple times within a fixed interval",
      );
    }
    return null;
  }

  #ofDeleting(action, name, one) {
    if (action === "CreateTable" || action === "UpdateTimeToLive") {
      return this.#inUse(`Table is being deleted: ${name}`);
    }
    if (!OF_TABLES.includes(action)) return this.#notFound(name);
    const body = this.#described(action, one);
    return answers.fromService(this.clock, 200, body);
  }

  #ofCreating(action, name, one) {
    if (action === "CreateTable") {
      return this.#inUse(`Table already exists: ${name}`);
    }
    const unseen = this.now() < one.made + this.ms * UNSEEN;
    if (unseen || !OF_TABLES.includes(action)) return this.#notFound(name);
    if (action === "DescribeTable") return null;
    return this.#inUse(`Table is being created: ${name}`);
  }

  #inUse(message) {
    const what = "Attempt to change a resource which is still in use: ";
    return this.#error("ResourceInUseException", what + message);
  }

  #notFound(name) {
    const message = `Requested resource not found: Table: ${name} not found`;
    return this.#error("ResourceNotFoundException", message);
  }

  #error(code, message) {
    return answers.ofTable(this.clock, code, message);
  }
}

module.exports = { Tables };
