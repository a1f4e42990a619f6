import { expect, test } from "vitest";
import type { TenantVersion } from "@/api/types";
import { barParts, largestChange } from "./change-bars";

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
