// Builds the console into the folder that the broker serves and the wheel contains. Each file is also there compressed, so
// that the broker does not have to.

import { appendFile, copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { constants, gzipSync } from "node:zlib";

import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const target = here("../broker/http/console_files/");

await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
const { metafile } = await build({
  absWorkingDir: here("."),
  entryPoints: { console: here("src/main.tsx") },
  outdir: target,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none", // `licences` has them all
  logLevel: "warning",
  metafile: true,
});
for (const [path, output] of Object.entries(metafile.outputs)) {
  await appendFile(here(path), await licences(Object.keys(output.inputs)));
}
for (const name of ["index.html", "icon.svg"]) {
  await copyFile(here(`src/${name}`), `${target}${name}`);
}
for (const name of await readdir(target)) {
  const content = await readFile(`${target}${name}`);
  await writeFile(`${target}${name}.gz`, gzipSync(content, { level: constants.Z_BEST_COMPRESSION }));
}

/** A comment with the licences of the libraries that these files come from: each copy of a library needs its licence. */
async function licences(paths) {
  const libraries = paths.map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  const names = [...new Set(libraries.filter((name) => name !== undefined))].sort();
  const texts = names.map(async (name) => `${name}\n\n${await readFile(here(`node_modules/${name}/LICENSE`), "utf8")}`);
  return `/*!\n${(await Promise.all(texts)).join("\n\n")}*/\n`;
}
