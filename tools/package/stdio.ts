import path from 'node:path'
import { build } from 'esbuild'

const ROOT = path.resolve(import.meta.dirname, '../..')
const PROGRAM = 'apps/cli/stdio/pod/program.ts'
/** Where `plat-stdio-copy` finds it. */
const BUILT = 'apps/cli/stdio/pod/built/bridge.mjs'

/** For CommonJS libraries in an ES module. */
const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

/**
 * `node tools/package/stdio.ts [file]`: makes the bridge of stdio servers on a cluster one file, which Node runs without anything beside it; by default
 * where the image needs it.
 */
const out = path.resolve(ROOT, process.argv[2] ?? BUILT)
await build({
  absWorkingDir: ROOT,
  entryPoints: [PROGRAM],
  outfile: out,
  bundle: true,
  platform: 'node',
  target: 'node26',
  format: 'esm',
  banner: { js: REQUIRE },
  minifySyntax: true,
  logLevel: 'silent',
})
console.log(`built ${path.relative(process.cwd(), out)}`)
