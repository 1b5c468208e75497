const assert = require("node:assert");
const { test } = require("node:test");
const request = require("supertest");
const app = require("./index.js");

test("answers on a port of its own", async () => {
  const answer = await request(app).get("/initials/real%20time");
  assert.deepEqual([answer.status, answer.body], [200, { initials: "RT" }]);
});

test("many at once", async () => {
  const server = app.listen(0, "localhost");
  await new Promise((ready) => server.once("listening", ready));
  const at = `http://localhost:${server.address().port}/initials/a`;
  const answers = await Promise.all(Array.from({ length: 20 }, () => fetch(at).then((answer) => answer.json())));
  assert.ok(answers.every((answer) => answer.initials === "A"));
  await new Promise((closed) => server.close(closed));
});

test("what is not there", async () => assert.equal((await request(app).get("/nothing")).status, 404));
