import { expect, test } from "vitest";
import { jsonProblem } from "./json-problem";

test("valid JSON has no problem", () => {
  expect(jsonProblem('{"a": [1, null]}')).toBe(null);
});

test("a problem is told with its line", () => {
  expect(jsonProblem('{\n  "a": 1,\n}')).toContain("line 3");
});

test("a text that ends too early is not JSON", () => {
  expect(jsonProblem('{"a":')).toContain("Invalid JSON");
});
