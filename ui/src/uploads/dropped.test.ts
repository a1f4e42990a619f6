import { expect, test } from "vitest";
import { droppedFiles } from "./dropped";

const READ_AT_ONCE = 100;

function file(path: string) {
  const found = new File(["x"], path.split("/").at(-1) ?? "");
  return { isFile: true, fullPath: `/${path}`, file: (give: (file: File) => void) => give(found) };
}

function folder(path: string, entries: readonly object[]) {
  const createReader = () => {
    const left = [...entries];
    return { readEntries: (give: (some: object[]) => void) => give(left.splice(0, READ_AT_ONCE)) };
  };
  return { isFile: false, fullPath: `/${path}`, createReader };
}

const dropped = (...entries: (object | null)[]) =>
  ({
    items: entries.map((entry) => ({ webkitGetAsEntry: () => entry })),
    files: [],
  }) as unknown as DataTransfer;

test("a folder of more files than a reader gives at once is read to the bottom, with its paths", async () => {
  const many = Array.from({ length: 101 }, (_, number) => file(`maps/${number}.txt`));
  const maps = folder("maps", [...many, folder("maps/deep", [file("maps/deep/last.txt")])]);
  const paths = (await droppedFiles(dropped(maps, null, file("beside.txt")))).map(({ path }) => path);

  expect(paths).toHaveLength(103);
  expect(paths.slice(-3)).toEqual(["maps/100.txt", "maps/deep/last.txt", "beside.txt"]);
});
