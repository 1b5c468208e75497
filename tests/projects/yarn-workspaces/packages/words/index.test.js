const assert = require("node:assert");
const { test } = require("node:test");
const { initials } = require("./index.js");

test("one letter a word", () => assert.equal(initials(" real time clock "), "RTC"));
test("nothing of nothing", () => assert.equal(initials(""), ""));
