import { expect, test } from "vitest";
import { comparisonsOf, conditionLabel, conditionText } from "./conditions";

test("a type has the comparisons that mean something for it", () => {
  const labels = (type: string) => comparisonsOf(type).map((one) => one.label);
  expect(labels("boolean")).toEqual(["is", "is missing", "has a value"]);
  expect(labels("decimal(10,2)")).toContain("≥");
  expect(labels("timestamp")).toContain("before");
  expect(labels("struct")).toEqual(["is missing", "has a value"]);
});

test("a condition is SQL: names in backticks, text in quotes, numbers without", () => {
  expect(conditionText("City", "=", "O'Hare \\")).toBe("`City` = 'O''Hare \\\\'");
  expect(conditionText("a`b", "=", "")).toBe("`a``b` = ''");
  expect(conditionText("Amount", "<=", "-1.5", "double")).toBe("`Amount` <= -1.5");
  expect(conditionText("Amount", "<=", "many", "double")).toBe("`Amount` <= 'many'");
  expect(conditionText("Id", "=", "007", "string")).toBe("`Id` = '007'");
  expect(conditionText("City", "is null", "x")).toBe("`City` is null");
  expect(conditionLabel("`City` = 'Bern'")).toBe("City = 'Bern'");
});
