import { expect, test } from "vitest";
import type { StreamOverview, TenantVersion } from "@/api/types";
import { growthOf, largestChange, within } from "./growth";

function version(number: number, day: number, inserted: number, deleted: number): TenantVersion {
  return {
    version: number,
    timestamp: `2026-11-0${day}T00:00:00Z`,
    kind: "commit",
    who: "",
    job_id: null,
    message: "",
    streams: { A: { inserted, updated: 1, unchanged: 0, deleted } },
    streams_dropped: [],
    files_written: [],
    files_deleted: [],
    tags: [],
  };
}

const versions = [version(2, 3, 0, 4), version(1, 2, 5, 0), version(0, 1, 10, 0)];
const streams: StreamOverview[] = [{ stream: "A", version: 2, key: [], rows: 11, size_bytes: 1, last: null }];

test("rows of the past are counted back from now", () => {
  expect(growthOf(versions, streams).map((point) => point.rows)).toEqual([10, 15, 11]);
});

test("bars of all versions are drawn to the largest change", () => {
  expect(largestChange(versions)).toBe(11);
});

test("a period leaves the versions that were made in it", () => {
  const period = { from: Date.parse("2026-11-02T00:00:00Z"), to: Date.parse("2026-11-02T12:00:00Z") };
  expect(within(versions, period).map((one) => one.version)).toEqual([1]);
});
