import { expect, test } from "vitest";
import { exactJson } from "@/api/client";
import type { RowErasure } from "@/api/types";
import { type Found, orderOf, tickedAtFirst } from "./erasure";

function found(stream: string, key: string[], rows: number, ...states: string[]): Found {
  const effect = { key, rows_erased: rows, deliveries: Object.fromEntries(states.map((one) => [one, 0])) };
  return { stream, order: { keys: null, where: null }, effect: effect as unknown as RowErasure };
}

test("a key is asked of streams with so many key columns", () => {
  const two = { key: ["No", "Line"] };
  expect(orderOf("key", '["A-1", 2]', two)).toEqual({ keys: [{ No: "A-1", Line: 2 }], where: null });
  expect(orderOf("key", "7", { key: ["Id"] })).toEqual({ keys: [{ Id: "7" }], where: null });
  expect(orderOf("key", '["[7"]', { key: ["Id"] })).toEqual({ keys: [{ Id: "[7" }], where: null });
  expect(orderOf("key", "7", two)).toBe("its key has 2 columns");
  expect(orderOf("key", "[1, 2]", { key: ["Id"] })).toBe("its key has 1 column");
  expect(orderOf("where", "Id = 7", { key: [] })).toBe("it has no key");
  expect(() => orderOf("key", "[7", { key: ["Id"] })).toThrow("no JSON array");
});

test("a key has all its digits, or is refused where the browser cannot keep them", () => {
  const long = "9007199254740993";
  const keys = (one: string) => orderOf("key", `[${one}, 2]`, { key: ["No", "Line"] });
  const exact = { keys: [{ No: long, Line: 2 }], where: null };
  expect(keys(`"${long}"`)).toEqual(exact);
  if (typeof exactJson(long) === "string") expect(keys(long)).toEqual(exact);
  else expect(() => keys(long)).toThrow("no JSON array");
});

test("streams are ticked in advance where the key is that of one thing", () => {
  const customers = [found("Customer", ["Id"], 1), found("Lead", ["Id"], 2), found("Note", ["No"], 0)];
  const others = [...customers, found("Orders", ["No"], 1)];
  expect([...tickedAtFirst("key", customers)]).toEqual(["Customer", "Lead"]);
  expect([...tickedAtFirst("key", others)]).toEqual([]);
  expect([...tickedAtFirst("where", others)]).toEqual(["Customer", "Lead", "Orders"]);
});

test("the state of a delivery goes with its stream, also if the stream has the row no more", () => {
  const state = "Account.delivery.shop";
  const both = [found("Account", ["Id"], 0, state), found(state, ["Id"], 1)];
  expect([...tickedAtFirst("key", both)]).toEqual(["Account"]);
  expect([...tickedAtFirst("where", both.slice(1))]).toEqual([state]);
});
