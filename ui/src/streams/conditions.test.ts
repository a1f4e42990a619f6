import { expect, test } from "vitest";
import { comparisonsOf, conditionText } from "./conditions";

test("a type has the comparisons that mean something for it", () => {
  const labels = (type: string) => comparisonsOf(type).map((one) => one.label);
  expect(labels("boolean")).toEqual(["is", "is missing", "is there"]);
  expect(labels("decimal(10,2)")).toContain("≥");
  expect(labels("timestamp")).toContain("before");
  expect(labels("struct")).toEqual(["is missing", "is there"]);
});

test("text that would lose its ends is put into quotes", () => {
  expect(conditionText("City", "=", "Bern")).toBe("City = Bern");
  expect(conditionText("City", "=", " Bern")).toBe('City = " Bern"');
  expect(conditionText("City", "=", "")).toBe('City = ""');
  expect(conditionText("City", "is null", "x")).toBe("City is null");
});
