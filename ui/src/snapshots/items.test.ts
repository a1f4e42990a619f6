import { expect, test } from "vitest";
import type { FileEntry, StreamOverview } from "@/api/types";
import { crumbsOf, itemsOf, shownItems } from "./items";

function file(path: string, size: number): FileEntry {
  return { path, size, modified: "2026-11-20T10:00:00Z", sha256: "", sealed: false, version: 1 };
}

function stream(name: string): StreamOverview {
  return { stream: name, stream_version: 0, key: ["Id"], rows: 3, size_bytes: 10, last: null };
}

const page = {
  version: 1,
  folder: "",
  folders: ["maps"],
  files: [file("b.csv", 9), file("a.csv", 20)],
  next_cursor: null,
};

test("folders come first, then streams, then files, whatever the order", () => {
  const items = itemsOf("", [page], [stream("Account")]);
  const names = shownItems(items, "", { column: "size", isDown: true }).map((item) => item.name);
  expect(names).toEqual(["maps", "Account", "a.csv", "b.csv"]);
});

test("streams are shown at the top only", () => {
  const items = itemsOf("maps", [{ ...page, folder: "maps", folders: [], files: [] }], [stream("Account")]);
  expect(items).toEqual([]);
});

test("the search looks at names and not at the case of letters", () => {
  const items = itemsOf("", [page], [stream("Account")]);
  expect(shownItems(items, "ACC", { column: "name", isDown: false }).map((item) => item.name)).toEqual([
    "Account",
  ]);
});

test("a path is told as the folders that lead to it", () => {
  expect(crumbsOf("a/b")).toEqual([
    { name: "a", path: "a" },
    { name: "b", path: "a/b" },
  ]);
  expect(crumbsOf("")).toEqual([]);
});
