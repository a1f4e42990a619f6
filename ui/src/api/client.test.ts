import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const SOURCES = new URL("..", import.meta.url);
const REQUEST = /\b(\w+)(?:<[^()]*?>)?\(\s*"(POST|PUT|PATCH|DELETE)",/g;

test("every request that changes something goes by `change`, which demands a condition or a reason", () => {
  const others = readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
    .filter((name) => /(?<!\.test|\.d)\.tsx?$/.test(name))
    .flatMap((name) =>
      [...readFileSync(new URL(name, SOURCES), "utf8").matchAll(REQUEST)].map((one) => `${name} ${one[1]}`),
    )
    .filter((one) => !one.endsWith(" change"));
  // A file's bytes, always with the condition of `putFile`; and an upload's, which nobody sees until its batch.
  expect(others.sort()).toEqual(["api/changes.ts send", "uploads/queue.ts open"]);
});
