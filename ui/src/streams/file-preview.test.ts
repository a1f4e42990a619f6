import { expect, test } from "vitest";
import { previewCsv } from "./file-preview";

test("quoted commas, quotes and line breaks stay in their field", () => {
  const seen = previewCsv('Id,Name\n1,"a, ""b""\nc"\n', true);
  expect(seen).toEqual({ columns: ["Id", "Name"], rows: [["1", 'a, "b"\nc']] });
});

test("the last line of a part of a file is left out", () => {
  expect(previewCsv("Id,Name\r\n1,a\r\n2,b", false).rows).toEqual([["1", "a"]]);
});
