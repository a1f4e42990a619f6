import { expect, test } from "vitest";
import { boundedWidth, GAP, tracks } from "./grid-columns";

const KEY = { id: "Id", pixels: 200, isPinned: true };
const OTHER = { id: "Name", pixels: 150 };

test("a key column stays at its width where there is room", () => {
  const found = tracks([KEY, OTHER], {}, 1000);
  expect(found.template).toBe("200px minmax(150px, 1fr)");
  expect(found.minWidth).toBe(200 + 150 + GAP + 20);
  expect(found.sizes).toEqual([200, 150]);
  expect([...found.pinned]).toEqual([["Id", 0]]);
});

test("on a narrow screen the key is narrower and still stays", () => {
  const found = tracks([KEY, OTHER], {}, 360);
  expect(found.template).toBe("162px minmax(150px, 1fr)");
  expect(found.pinned.has("Id")).toBe(true);
});

test("of a key of several columns as many stay as leave room for the rest", () => {
  const keys = ["A", "B", "C"].map((id) => ({ ...KEY, id }));
  expect([...tracks([...keys, OTHER], {}, 1000).pinned]).toEqual([
    ["A", 0],
    ["B", 212],
  ]);
  expect([...tracks([...keys, OTHER], {}, 360).pinned.keys()]).toEqual(["A"]);
});

test("a width that somebody chose is the column's", () => {
  expect(tracks([KEY, OTHER], { Id: 90, Name: 300 }, 1000).template).toBe("90px 300px");
  expect([boundedWidth(3), boundedWidth(120.4), boundedWidth(5000)]).toEqual([56, 120, 900]);
});

test("columns with tracks of their own need no width of the row", () => {
  const found = tracks([{ id: "A", width: "minmax(0, 1fr)" }], {}, 500);
  expect(found).toEqual({
    template: "minmax(0, 1fr)",
    minWidth: undefined,
    sizes: undefined,
    pinned: new Map(),
  });
});
