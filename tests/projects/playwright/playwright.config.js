const { defineConfig } = require("@playwright/test");

module.exports = defineConfig({
  testDir: "tests",
  reporter: "list",
  workers: 1,
  timeout: 60000,
  use: {
    baseURL: "http://127.0.0.1:8123",
    launchOptions: { executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] },
  },
  webServer: { command: "node server.js 8123", url: "http://127.0.0.1:8123/", timeout: 30000 },
});
