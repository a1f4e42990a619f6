import { expect, test } from "vitest";
import type { TenantVersion } from "@/api/types";
import { barParts, keyOfRow, keyText, largestChange, steps, withDays } from "./versions";

function version(number: number, day: number, inserted: number, deleted: number): TenantVersion {
  return {
    version: number,
    timestamp: `2026-11-0${day}T00:00:00Z`,
    kind: "commit",
    who: "",
    job_id: null,
    request_id: "",
    message: "",
    streams: { A: { inserted, updated: 1, unchanged: 0, deleted } },
    restored: null,
    streams_dropped: [],
    files_written: [],
    files_deleted: [],
    tags: [],
    is_idle: false,
  };
}

const versions = [version(2, 3, 0, 4), version(1, 2, 5, 0), version(0, 1, 10, 0)];

test("bars of all versions are drawn to the largest change", () => {
  expect(largestChange(versions)).toBe(11);
});

test("a bar's parts are in proportion to each other, and its length to the root of its rows", () => {
  expect(barParts({ inserted: 1, updated: 0, deleted: 3 }, 400)).toEqual([
    { fate: "new", percent: 2.5 },
    { fate: "gone", percent: 7.5 },
  ]);
  expect(barParts({ inserted: 0, updated: 400, deleted: 0 }, 400)).toEqual([
    { fate: "changed", percent: 100 },
  ]);
  expect(barParts({ inserted: 0, updated: 0, deleted: 0 }, 400)).toEqual([]);
});

test("a key is taken from the side on which the row is there", () => {
  const gone = {
    fate: "delete" as const,
    before: { Id: "9007199254740993", City: "Bern" },
    after: {},
    changed: [],
  };
  expect(keyOfRow(gone, ["Id"])).toEqual({ Id: "9007199254740993" });
  const fresh = { fate: "insert" as const, before: {}, after: { A: 1, B: null, C: 2 }, changed: [] };
  expect(keyOfRow(fresh, ["A", "B"])).toEqual({ A: 1, B: null });
});

test("a key's text is the value, or an array where it could be read as something else", () => {
  expect(keyText({ Id: "007", City: "Bern" }, ["Id"])).toBe("007");
  expect(keyText({ Id: "a/b" }, ["Id"])).toBe("a/b");
  for (const odd of ["[x", "..", ".", ""]) expect(keyText({ Id: odd }, ["Id"])).toBe(JSON.stringify([odd]));
  expect(keyText({ Id: null }, ["Id"])).toBe("[null]");
  expect(keyText({ Id: 7, Day: "2026-11-01" }, ["Day", "Id"])).toBe('["2026-11-01",7]');
});

test("from now one goes back to what was before the newest version", () => {
  expect(steps([9, 5, 2], undefined)).toEqual({ current: 9, earlier: 5, later: undefined });
});

test("from a version between two changes one goes to the next that changed the stream", () => {
  expect(steps([9, 5, 2], 7)).toEqual({ current: 5, earlier: 2, later: "now" });
  expect(steps([9, 5, 2], 2)).toEqual({ current: 2, earlier: undefined, later: 5 });
});

test("before the first version there is only later", () => {
  expect(steps([9, 5, 2], 1)).toEqual({ current: undefined, earlier: undefined, later: 2 });
});

const idle = [false, true, true, true, false, true].map((isIdle, place) => ({
  ...version(5 - place, 1, 0, 0),
  is_idle: isIdle,
}));

test("versions that changed nothing are one entry", () => {
  const [, ...items] = withDays(idle, new Set());
  expect(
    items.map((item) =>
      Array.isArray(item) ? item.map((one) => one.version) : (item as TenantVersion).version,
    ),
  ).toEqual([5, [4, 3, 2], 1, 0]);
});

test("they are entries of their own when they are unfolded", () => {
  expect(withDays(idle, new Set([4, 3, 2]))).toHaveLength(idle.length + 1);
});
