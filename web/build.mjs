// Builds the bundle in dist/ from src/: the files that the server embeds, and nothing else.
//
// The output depends on the sources and on package-lock.json alone, so that check.sh can compare it byte by byte with
// what is committed.

import { build } from "esbuild";
import { copyFile, mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(fileURLToPath(import.meta.url));
const dist = join(root, "dist");

// The licences of what the bundle contains want to be told with it, whole.
const licences = await Promise.all([["Lit", "lit"], ["uPlot", "uplot"]].map(async ([name, folder]) =>
    `This file contains ${name}.\n\n${await readFile(join(root, "node_modules", folder, "LICENSE"), "utf8")}`));

await rm(dist, { recursive: true, force: true });
await mkdir(dist, { recursive: true });
await build({
    absWorkingDir: root,
    entryPoints: { app: "src/main.ts" },
    bundle: true,
    minify: true,
    format: "esm",
    target: ["es2022"],
    // Without it Lit's development build is taken, which warns in the console.
    conditions: ["production"],
    outdir: "dist",
    charset: "utf8",
    legalComments: "none",
    banner: { js: `/*\n${licences.join("\n")}*/` },
    logLevel: "warning",
});
for (const file of ["index.html", "favicon.svg"]) {
    await copyFile(join(root, "src", file), join(dist, file));
}
