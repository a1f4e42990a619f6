import { expect, test } from "vitest";
import { sorted, sortedBy, sortFrom, sortText } from "./sorting";

test("a sort survives the way through an address", () => {
  expect(["size", "-size"].map((text) => sortText(sortFrom(text, "name")))).toEqual(["size", "-size"]);
  expect(sortFrom(undefined, "-changed")).toEqual({ column: "changed", isDown: true });
});

test("a second click on the same head turns the order round", () => {
  const once = sortedBy({ column: "name", isDown: false }, "size");
  expect(once).toEqual({ column: "size", isDown: false });
  expect(sortedBy(once, "size")).toEqual({ column: "size", isDown: true });
});

test("names are sorted as people count, missing values last either way", () => {
  const rows = ["file10", null, "file2", "File1"];
  expect(sorted(rows, (row) => row, false)).toEqual(["File1", "file2", "file10", null]);
  expect(sorted(rows, (row) => row, true)).toEqual(["file10", "file2", "File1", null]);
});
