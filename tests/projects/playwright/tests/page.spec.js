const { expect, test } = require("@playwright/test");

test("counts clicks", async ({ page }) => {
  await page.goto("/");
  await page.getByRole("button").click({ clickCount: 3 });
  await expect(page.getByRole("button")).toHaveText("3");
  expect(await page.evaluate(() => localStorage.count)).toBe("3");
});

test("shows what the server sends", async ({ page }) => {
  await page.goto("/");
  await expect(page.locator("p")).toHaveText("from the server");
});

test("takes a picture", async ({ page }, info) => {
  await page.goto("/");
  expect((await page.screenshot({ path: info.outputPath("page.png") })).length).toBeGreaterThan(1000);
});
