const express = require("express");
const { initials } = require("words");

const app = express();
app.get("/initials/:text", (request, response) => response.json({ initials: initials(request.params.text) }));
module.exports = app;
