import { expect, test } from "vitest";
import { csvTable } from "./csv-table";

test("quoted commas, quotes and line breaks stay in their field", () => {
  const seen = csvTable('\uFEFFId,Name\r\n1,"a, ""b""\nc"\r\n');
  expect(seen).toEqual({ columns: ["Id", "Name"], rows: [["1", 'a, "b"\nc']] });
});

test("a record longer than the header shows all of its fields", () => {
  expect(csvTable("Id\n1,2\n").columns).toEqual(["Id", ""]);
});

test("an empty file has neither columns nor rows", () => {
  expect(csvTable("")).toEqual({ columns: [], rows: [] });
});
