const assert = require("node:assert");
const { frequencies } = require("./index.js");

describe("frequencies", () => {
  it("counts words in any case", () => assert.deepEqual(frequencies("Ab ab, C"), { ab: 2, c: 1 }));
  it("finds none in nothing", () => assert.deepEqual(frequencies(""), {}));
});
