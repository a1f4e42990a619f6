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

const CHANGE =
  /\bchange(?:<[^()]*?>)?\(\s*"(POST|PUT|PATCH|DELETE)",\s*([^\n]+?),\s*("[^"]*"|condition|order\.condition|\{ "If-[^}]*\}|\{ "If-)/g;

test("each change rests on the state that was shown, or says why on none", () => {
  const found = readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
    .filter((name) => /(?<!\.test|\.d)\.tsx?$/.test(name))
    .flatMap((name) => {
      const text = readFileSync(new URL(name, SOURCES), "utf8");
      return [...text.matchAll(CHANGE)].map(([, method, url, condition]) => {
        const path = (url ?? "").replace(
          /^address|[`$]|\/environments\/\{environment\}|encodeURIComponent/g,
          "",
        );
        return `${method} ${path.replace(/\{(?:tenantAddress|streamAddress|scheduleAddress)\([^)]*\)\}/g, "…")}: ${condition}`;
      });
    });
  // What a tenant holds changes under a condition only; without one are new things, jobs and the like.
  const free = found.filter(
    (one) => !/: (condition|order|\{ "If-|"in the body"|"only a check"|"a new thing")/.test(one),
  );
  const others = /\/(session|keys|blobs|jobs|job-groups)\b|scheduleAddress/;
  expect(free.filter((one) => !others.test(one))).toEqual([]);
  expect(found.sort()).toMatchInlineSnapshot(`
    [
      "DELETE /keys/{id}: "of the queue"",
      "DELETE /session: "a session"",
      "DELETE scheduleAddress(place, name): "of the queue"",
      "DELETE streamAddress(place, stream): condition",
      "DELETE tenantAddress(place): condition",
      "DELETE …/blobs/{blob}: "one's own"",
      "DELETE …/tags/{(name)}: condition",
      "PATCH scheduleAddress(place, name): "of the queue"",
      "POST /environments/{environment}/job-groups/{group}/{how}: "of the queue"",
      "POST /environments/{environment}/job-groups: "a new thing"",
      "POST /environments/{environment}/tenants: "a new thing"",
      "POST /keys/{id}/rotate: "of the queue"",
      "POST /keys: "a new thing"",
      "POST /session: "a session"",
      "POST …/clone: "a new thing"",
      "POST …/deliveries/{name}/retries: condition",
      "POST …/erasures: condition",
      "POST …/file-batches: "in the body"",
      "POST …/file-batches: "in the body"",
      "POST …/file-deletions: condition",
      "POST …/file-moves: condition",
      "POST …/folder-moves: condition",
      "POST …/folders: "a new thing"",
      "POST …/import-preview: "only a check"",
      "POST …/import: order.condition",
      "POST …/import: order.condition",
      "POST …/jobs/{(jobId)}/cancel: "of the queue"",
      "POST …/jobs/{(jobId)}/discard: "of the queue"",
      "POST …/jobs/{(jobId)}/dry-runs: "a new thing"",
      "POST …/jobs/{(jobId)}/publish: "of the queue"",
      "POST …/jobs/{(jobId)}/repetitions: "a new thing"",
      "POST …/jobs: "a new thing"",
      "POST …/replays: "a new thing"",
      "POST …/restorations: condition",
      "POST …/reversions: condition",
      "POST …/row-changes: { "If-Match": etag }",
      "POST …/row-restorations: condition",
      "POST …/runs: "a new thing"",
      "POST …/schedules: "a new thing"",
      "PUT …/policy: condition",
      "PUT …/tags/{(name)}: condition",
    ]
  `);
});
