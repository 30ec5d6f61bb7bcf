// Runs the tests of the pure files in Node. esbuild compiles them, because Node 18 does not read TypeScript.

import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const tests = fileURLToPath(new URL("tests/", import.meta.url));
const target = await mkdtemp(join(tmpdir(), "console-tests-"));
try {
  const names = (await readdir(tests)).map((name) => join(tests, name));
  const outExtension = { ".js": ".mjs" };
  await build({ entryPoints: names, outdir: target, outExtension, bundle: true, platform: "node", format: "esm" });
  const built = (await readdir(target)).map((name) => join(target, name));
  process.exitCode = spawnSync(process.execPath, ["--test", ...built], { stdio: "inherit" }).status ?? 1;
} finally {
  await rm(target, { recursive: true, force: true });
}
