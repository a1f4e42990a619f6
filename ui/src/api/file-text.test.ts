import { expect, test } from "vitest";
import { csvTable, decoded, jsonProblem, pictureType } from "./file-text";

const bytes = (...values: number[]) => new Uint8Array(values);
const utf16 = (text: string) =>
  new Uint8Array(new Uint16Array([...text].map((one) => one.charCodeAt(0))).buffer);

test("text is found in the encoding that it has", () => {
  expect(decoded(new TextEncoder().encode("Zürich €"))).toEqual({ text: "Zürich €", encoding: "UTF-8" });
  expect(decoded(bytes(0x5a, 0xfc, 0x72, 0x69, 0x63, 0x68))).toEqual({ text: "Zürich", encoding: "Latin-1" });
  expect(decoded(utf16("Id,Ort\n1,Zürich\n"))).toEqual({ text: "Id,Ort\n1,Zürich\n", encoding: "UTF-16" });
  expect(decoded(bytes(0xff, 0xfe, 0x1a, 0x04))).toEqual({ text: "К", encoding: "UTF-16" });
  expect(decoded(bytes(0xfe, 0xff, 0x04, 0x1a))).toEqual({ text: "К", encoding: "UTF-16" });
});

test("what is no text is none in any encoding", () => {
  expect(decoded(bytes(0x50, 0x4b, 0x03, 0x04, 0xff, 0x00, 0x81))).toBeNull();
  expect(decoded(bytes())).toEqual({ text: "", encoding: "UTF-8" });
});

test("a beginning ends with its last whole line, also within a letter", () => {
  const whole = new TextEncoder().encode("one\ntwo ü");
  expect(decoded(whole.subarray(0, whole.length - 1), false)).toEqual({ text: "one\n", encoding: "UTF-8" });
  expect(decoded(new TextEncoder().encode("no line"), false)?.text).toBe("no line");
});

test("pictures are known by the end of their name", () => {
  expect([pictureType("a/Logo.PNG"), pictureType("a.txt"), pictureType("a")]).toEqual([
    "image/png",
    undefined,
    undefined,
  ]);
});

test("valid JSON has no problem", () => {
  expect(jsonProblem('{"a": [1, null]}')).toBe(null);
});

test("a problem is told with its line", () => {
  expect(jsonProblem('{\n  "a": 1,\n}')).toContain("line 3");
});

test("a text that ends too early is not JSON", () => {
  expect(jsonProblem('{"a":')).toContain("Invalid JSON");
});

test("quoted commas, quotes and line breaks stay in their field", () => {
  const seen = csvTable('\uFEFFId,Name\r\n1,"a, ""b""\nc"\r\n');
  expect(seen).toEqual({ columns: ["Id", "Name"], rows: [["1", 'a, "b"\nc']] });
});

test("a record longer than the header shows all of its fields", () => {
  expect(csvTable("Id\n1,2\n").columns).toEqual(["Id", ""]);
});

test("an empty file has neither columns nor rows", () => {
  expect(csvTable("")).toEqual({ columns: [], rows: [] });
});
