// What the keys may do, as in an IAM policy: these actions, on tables whose
// names begin with this prefix.  Everything else is refused as AWS refuses it,
// whether the table exists or not.
//
//   new Policy("locks:GetItem,PutItem", clock)
//
// Each part of a transaction needs the permission for its own action.
"use strict";

const answers = require("./answers");

const CODE = "AccessDeniedException";

class Policy {
  constructor(text, clock) {
    const [prefix, actions, ...more] = text.split(":");
    if (!prefix || !actions || more.length !== 0) {
      throw new Error("--allow is not PREFIX:ACTION,...");
    }
    this.prefix = prefix;
    this.actions = new Set(actions.split(","));
    this.clock = clock;
  }

  // The answer that refuses the request; null if it is allowed.
  refusal({ action, body }) {
    for (const [what, table] of deedsOf(action, body)) {
      if (table === "") continue; // Not a valid request: the engine says so.
      if (this.actions.has(what) && table.startsWith(this.prefix)) continue;
      const message =
        `User: arn:aws:iam::123456789012:user/tester is not authorized to ` +
        `perform: dynamodb:${what} on resource: arn:aws:dynamodb:us-east-1:` +
        `123456789012:table/${table} because no identity-based policy ` +
        `allows the dynamodb:${what} action`;
      return answers.refusal(this.clock, CODE, message);
    }
    return null;
  }
}

// The action and the table of each part of the request.
function deedsOf(action, body) {
  let request = {};
  try {
    request = JSON.parse(body);
  } catch {
    // The engine will refuse it.
  }
  if (!Array.isArray(request?.TransactItems)) {
    return [[action, String(request?.TableName ?? "")]];
  }
  return request.TransactItems.flatMap((part) =>
    Object.entries(part ?? {}).map(([name, deed]) => [
      name === "ConditionCheck" ? "ConditionCheckItem" : `${name}Item`,
      String(deed?.TableName ?? ""),
    ]),
  );
}

module.exports = { Policy };
