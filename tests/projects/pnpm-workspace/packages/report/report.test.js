const { execFileSync } = require("node:child_process");
const { mkdtempSync, writeFileSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const { report } = require("./index.js");

test("a word is a line", () => expect(report("one two two")).toBe("one: 1\ntwo: 2"));

test("a program of its own can use it", () => {
  const script = join(mkdtempSync(join(tmpdir(), "report-")), "script.js");
  writeFileSync(script, `console.log(require(${JSON.stringify(join(__dirname, "index.js"))}).report("a"))`);
  expect(execFileSync(process.execPath, [script], { encoding: "utf8" })).toBe("a: 1\n");
});

test("reports match what was seen before", () => expect(report("x y x")).toMatchSnapshot());
