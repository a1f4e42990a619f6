import { describe, expect, test } from "vitest";
import type { TenantVersion } from "@/api/types";
import {
  barParts,
  bytesAxis,
  chartPoints,
  countAxis,
  largestChange,
  periodFrom,
  periodText,
  stepsPath,
  timeTicks,
  within,
} from "./growth";

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
  };
}

const versions = [version(2, 3, 0, 4), version(1, 2, 5, 0), version(0, 1, 10, 0)];

test("bytes are those of streams and files together", () => {
  const point = { version: 1, timestamp: "2026-11-01T00:00:00Z", rows: 3, stream_bytes: 5, file_bytes: 7 };
  expect(chartPoints([point])).toEqual([{ version: 1, at: Date.parse(point.timestamp), rows: 3, bytes: 12 }]);
});

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

test("a period leaves the versions that were made in it", () => {
  const period = { from: Date.parse("2026-11-02T00:00:00Z"), to: Date.parse("2026-11-02T12:00:00Z") };
  expect(within(versions, period).map((one) => one.version)).toEqual([1]);
});

test("an axis of bytes has steps of a power of two and ends above the most", () => {
  expect(bytesAxis(1_050_000)).toEqual({ max: 1_572_864, interval: 524_288 });
  expect(bytesAxis(1)).toEqual({ max: 1, interval: 1 });
});

test("a period comes back from the address as it went in; anything else is none", () => {
  expect(periodFrom(periodText({ from: 5, to: 9 }))).toEqual({ from: 5, to: 9 });
  for (const text of [undefined, "", "9-5", "a-b", "5", "5-99999999999999"])
    expect(periodFrom(text)).toBe(null);
});

describe("the chart", () => {
  test("ends at a number whose half is round", () => {
    expect([1, 2, 3, 200, 201, 999_999].map((most) => countAxis(most).max)).toEqual([
      2, 2, 4, 200, 400, 1_000_000,
    ]);
  });

  test("goes level from point to point", () => {
    expect(stepsPath([])).toBe("");
    expect(
      stepsPath([
        [1, 9],
        [4, 5],
        [6, 5],
      ]),
    ).toBe("M1,9H4V5H6V5");
  });

  test("has labels at both ends of its time", () => {
    const ticks = timeTicks(1_700_000_000_000, 1_700_900_000_000, 4);
    expect(ticks.map((tick) => tick.anchor)).toEqual(["start", "middle", "middle", "end"]);
    expect([ticks[0]?.at, ticks.at(-1)?.at]).toEqual([1_700_000_000_000, 1_700_900_000_000]);
    expect(timeTicks(0, 1, 0)).toHaveLength(2);
  });
});
