import { expect, test } from "vitest";
import { besides } from "./queue";

test("a file beside one of the same name gets a number before its ending", () => {
  expect(besides("a/report.csv")).toBe("a/report (2).csv");
  expect(besides("a/report (2).csv")).toBe("a/report (3).csv");
  expect(besides("a.b/README")).toBe("a.b/README (2)");
});
