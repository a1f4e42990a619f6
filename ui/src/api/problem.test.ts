import { expect, test } from "vitest";
import { asProblem, problemFrom } from "./problem";

test("a part of the page that did not load is told as that, in the words of any browser", () => {
  const told = [
    "Unable to preload CSS for http://127.0.0.1/assets/a.css",
    "Failed to fetch dynamically imported module: http://127.0.0.1/assets/a.js",
    "error loading dynamically imported module",
    "Importing a module script failed.",
  ];
  for (const text of told) expect(asProblem(new TypeError(text)).code).toBe("PAGE_PART");
  expect(asProblem(new TypeError("x is undefined")).code).toBe("PAGE");
});

test("a proxy's page is told by its status alone", () => {
  const problem = problemFrom(502, "<html>Bad gateway</html>", "r-1");
  expect([problem.status, problem.title, problem.requestId]).toEqual([
    502,
    "The service answered 502.",
    "r-1",
  ]);
});
