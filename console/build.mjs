// Builds the console into the folder that the broker serves and the wheel contains.

import { copyFile, mkdir, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const target = here("../broker/http/console_files/");

await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
await build({
  entryPoints: { console: here("src/main.tsx") },
  outdir: target,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "eof", // the licences of the libraries
  logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) {
  await copyFile(here(`src/${name}`), `${target}${name}`);
}
