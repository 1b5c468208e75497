import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const sources = fileURLToPath(new URL("src", import.meta.url));

export default defineConfig({
  resolve: { alias: { zod: sources } },
  test: { include: ["src/v4/classic/tests/**/*.test.ts", "src/v4/mini/tests/**/*.test.ts"] },
});
