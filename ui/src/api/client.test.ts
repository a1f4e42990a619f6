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
  /\bchange(?:<[^()]*?>)?\(\s*"(POST|PUT|PATCH|DELETE)",\s*([^\n]+?),\s*("[^"]*"|condition|\{ "If-[^}]*\}|\{ "If-)/g;

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
  expect(found.sort()).toMatchInlineSnapshot(`
    [
      "DELETE /keys/{id}: "an end"",
      "DELETE /session: "a session"",
      "DELETE scheduleAddress(place, name): "an end"",
      "DELETE streamAddress(place, stream): "undone at once"",
      "DELETE tenantAddress(place): condition",
      "DELETE …/blobs/{blob}: "one's own"",
      "DELETE …/tags/{(name)}: "a setting"",
      "PATCH scheduleAddress(place, name): "a setting"",
      "POST /environments/{environment}/job-groups/{group}/{how}: "an end"",
      "POST /environments/{environment}/job-groups: "a new thing"",
      "POST /environments/{environment}/tenants: "a new thing"",
      "POST /keys/{id}/rotate: "an end"",
      "POST /keys: "a new thing"",
      "POST /session: "a session"",
      "POST …/clone: "a new thing"",
      "POST …/deliveries/{name}/retries: "an end"",
      "POST …/file-batches: "in the body"",
      "POST …/file-batches: "in the body"",
      "POST …/file-deletions: "undone at once"",
      "POST …/file-moves: "a move"",
      "POST …/folder-moves: "a move"",
      "POST …/folders: "a new thing"",
      "POST …/import-preview: "only a check"",
      "POST …/import: "a new thing"",
      "POST …/import: "a new thing"",
      "POST …/jobs/{(jobId)}/cancel: "an end"",
      "POST …/jobs/{(jobId)}/discard: "an end"",
      "POST …/jobs/{(jobId)}/dry-runs: "a new thing"",
      "POST …/jobs/{(jobId)}/publish: "an end"",
      "POST …/jobs/{(jobId)}/repetitions: "a new thing"",
      "POST …/jobs: "a new thing"",
      "POST …/restorations: condition",
      "POST …/row-changes: { "If-Match": etag }",
      "POST …/row-restorations: condition",
      "POST …/runs: "a new thing"",
      "POST …/schedules: "a new thing"",
      "PUT …/policy: "a setting"",
      "PUT …/tags/{(name)}: "a setting"",
    ]
  `);
});
