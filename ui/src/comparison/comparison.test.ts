import { expect, test } from "vitest";
import type { FileEntry, Overview, StreamDetail } from "@/api/types";
import { columnDifferences, filePairs, streamPairs } from "./comparison";

const overview = (...names: string[]) => ({ streams: names.map((stream) => ({ stream })) }) as Overview;
const detail = (key: string[], columns: Record<string, string>) =>
  ({ key, columns: Object.entries(columns).map(([name, type]) => ({ name, type })) }) as StreamDetail;
const file = (path: string, sha256: string, sealed = false) => ({ path, sha256, sealed }) as FileEntry;

test("streams of either tenant are listed once", () => {
  const found = streamPairs(overview("B", "A"), overview("B", "C"));
  expect(found.map((one) => [one.name, one.left !== undefined, one.right !== undefined])).toEqual([
    ["A", true, false],
    ["B", true, true],
    ["C", false, true],
  ]);
});

test("columns that differ are told, and keys", () => {
  const left = detail(["Id"], { Id: "string", Old: "string", N: "long" });
  const right = detail(["N"], { Id: "string", N: "double", New: "date" });
  expect(columnDifferences(left, right, ["acme", "globex"])).toEqual([
    "Old is in acme only",
    "N is long and double",
    "New is in globex only",
    "the key is Id and N",
  ]);
  expect(columnDifferences(left, left, ["acme", "globex"])).toEqual([]);
});

test("files that differ are told, and how many do not", () => {
  const left = [file("a", "1"), file("b", "2"), file("c", "3"), file("s", "4", true)];
  const right = [file("a", "1"), file("b", "9"), file("d", "5"), file("s", "4", true)];
  expect(filePairs(left, right)).toEqual([
    [
      { path: "b", kind: "differs" },
      { path: "c", kind: "left" },
      { path: "d", kind: "right" },
      { path: "s", kind: "sealed" },
    ],
    1,
  ]);
});
