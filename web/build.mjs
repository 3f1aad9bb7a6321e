// Builds the pages: `node build.mjs OUT` writes what the console serves to the folder OUT.
//
// Names of assets follow from what is in them, so that browsers may keep them for ever; index.html alone has a name
// that stays. The same sources and the same package-lock.json give the same bytes on any machine.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2];
if (!out) throw new Error("say where to: node build.mjs OUT");

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: { main: "src/main.tsx", style: "src/style/style.css", icon: "src/style/icon.svg" },
  outdir: out,
  entryNames: "assets/[name]-[hash]",
  chunkNames: "assets/[name]-[hash]",
  assetNames: "assets/[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["chrome111", "firefox115", "safari16.4"],
  minify: true,
  metafile: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".woff2": "file", ".svg": "copy" },
  publicPath: "/",
  legalComments: "none",
  logLevel: "warning",
});

const made = Object.entries(metafile.outputs).map(([path, about]) => ({
  path: `/${relative(out, join(here, path))}`,
  from: about.entryPoint ?? Object.keys(about.inputs)[0],
}));
const of = (source) => {
  const found = made.find((each) => each.from === source);
  if (!found) throw new Error(`nothing was made from ${source}`);
  return found.path;
};
const font = made.find((each) => each.path.endsWith(".woff2"));
const page = readFileSync(join(here, "src/index.html"), "utf8")
  .replace("{script}", of("src/main.tsx"))
  .replace("{style}", of("src/style/style.css"))
  .replace("{icon}", of("src/style/icon.svg"))
  .replace("{font}", font.path);
writeFileSync(join(out, "index.html"), page);
writeFileSync(join(out, "LICENSES"), licences(metafile));

/** The licences of what is bundled, each with the package that it is of. */
function licences({ inputs }) {
  const folders = new Set(
    Object.keys(inputs)
      .map((path) => path.match(/.*node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0])
      .filter((folder) => folder !== undefined),
  );
  const texts = [...folders].sort().map((folder) => {
    const about = JSON.parse(readFileSync(join(here, folder, "package.json"), "utf8"));
    const text = readFileSync(join(here, folder, "LICENSE"), "utf8").trim();
    return `${about.name} ${about.version} (${about.license})\n\n${text}\n`;
  });
  return `What others have written that these pages hold.\n\n${texts.join(`\n${"-".repeat(80)}\n\n`)}`;
}
