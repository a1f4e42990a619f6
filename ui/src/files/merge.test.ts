import { expect, test } from "vitest";
import { joined } from "./merge";

const BASE = "a\nb\nc\nd\ne\nf";

test("changes of different lines are joined", () => {
  expect(joined(BASE, "A\nb\nc\nd\ne\nf", "a\nb\nc\nd\ne\nF")).toEqual({
    text: "A\nb\nc\nd\ne\nF",
    taken: 1,
    conflicts: 0,
  });
});

test("changes of lines that lie beside each other are joined", () => {
  expect(joined(BASE, "a\nB\nc\nd\ne\nf", "a\nb\nC\nd\ne\nf").text).toBe("a\nB\nC\nd\ne\nf");
});

test("lines that both changed stay as mine and are counted", () => {
  expect(joined(BASE, "a\nb\ntheirs\nd\ne\nf", "a\nb\nmine\nd\ne\nf")).toEqual({
    text: "a\nb\nmine\nd\ne\nf",
    taken: 0,
    conflicts: 1,
  });
});

test("the same change of both is one", () => {
  expect(joined(BASE, "a\nb\nX\nd\ne\nf", "a\nb\nX\nd\ne\nf")).toEqual({
    text: "a\nb\nX\nd\ne\nf",
    taken: 0,
    conflicts: 0,
  });
});

test("lines that came and lines that went are joined too", () => {
  expect(joined(BASE, "b\nc\nd\ne\nf", "a\nb\nc\nd\ne\nf\ng").text).toBe("b\nc\nd\ne\nf\ng");
  expect(joined("a\nb\nc\nd", "a\nb\nc\nd\ntheirs", "mine\na\nb\nc\nd").text).toBe(
    "mine\na\nb\nc\nd\ntheirs",
  );
});

test("both adding at the end is a conflict", () => {
  const seen = joined("a\nb\n", "a\nb\n3,theirs", "a\nb\n4,mine");
  expect([seen.text, seen.conflicts]).toEqual(["a\nb\n4,mine", 1]);
});
