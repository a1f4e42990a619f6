import { expect, test } from "vitest";
import { panelSearch } from "./search";

test("what an address says is kept where it means something", () => {
  const known = { sort: "-bytes", order: "changed", v: 3, panel: "history", as: "text" };
  expect(panelSearch(known)).toEqual(known);
  const unknown = {
    sort: "constructor",
    order: "-",
    v: -1,
    panel: "x",
    as: "x",
    view: 5,
    only: "all",
    more: 1,
  };
  expect(panelSearch(unknown)).toEqual({});
});
