import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { build, type Metafile } from 'esbuild'
import type { ConsoleAsset } from './asset.ts'

/** Everything that the built files depend on, below the folder of the console. */
const SOURCES = '{app,ui,pages,api}/**/*.{ts,tsx,css,svg,html}'
const ENTRIES = { main: 'app/main.tsx', style: 'ui/style.css', icon: 'ui/icon.svg' }
/** Browsers of 2024 and later: `light-dark()` in the style sheet needs them too. */
const TARGET = ['es2023', 'chrome123', 'firefox120', 'safari17.5']
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const brotliOf = promisify(zlib.brotliCompress)
const gzipOf = promisify(zlib.gzip)

export interface BuiltConsole {
  readonly assets: readonly ConsoleAsset[]
  /** Names the libraries inside. */
  readonly metafile: Metafile
}

/** Identifies the sources and the pinned libraries. */
export function digestOfSources(home: string): string {
  const hash = createHash('sha256')
  for (const name of ['build.ts', ...sourcesOf(home), '../../package-lock.json'])
    hash.update(`${name}\n`).update(readFileSync(path.join(home, name)))
  return hash.digest('hex').slice(0, 16)
}

/** Builds the files of the console from its folder. Throws with file and line if a source has an error. */
export async function buildConsole(home: string): Promise<BuiltConsole> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: home,
    entryPoints: Object.entries(ENTRIES).map(([out, source]) => ({ in: source, out })),
    outdir: 'assets',
    entryNames: '[name].[hash]',
    // Code of a single page is loaded by that page.
    splitting: true,
    chunkNames: '[name].[hash]',
    bundle: true,
    minify: true,
    format: 'esm',
    target: TARGET,
    charset: 'utf8',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    loader: { '.svg': 'copy' },
    metafile: true,
    write: false,
    logLevel: 'silent',
  })
  const files = outputFiles.map(({ path: file, contents }) => ({
    name: path.relative(home, file).split(path.sep).join('/'),
    bytes: Buffer.from(contents),
  }))
  const page = pageOf(
    readFileSync(path.join(home, 'app/index.html'), 'utf8'),
    files.map(({ name }) => name),
  )
  const all = [{ name: 'index.html', bytes: Buffer.from(page) }, ...files]
  return { assets: await Promise.all(all.map(({ name, bytes }) => assetOf(name, bytes))), metafile }
}

function sourcesOf(home: string): readonly string[] {
  return globSync(SOURCES, { cwd: home })
    .filter((name) => !name.endsWith('.test.ts'))
    .sort()
}

/** The page with the names of the built files: `assets/main.js` becomes `assets/main.<hash>.js`. */
function pageOf(page: string, files: readonly string[]): string {
  return page.replaceAll(/assets\/(\w+)\.(\w+)/g, (written, name: string, extension: string) => {
    const built = files.find((file) => file.startsWith(`assets/${name}.`) && file.endsWith(`.${extension}`))
    if (built === undefined) throw new Error(`app/index.html: names ${written}, which is not built`)
    return built
  })
}

async function assetOf(name: string, bytes: Buffer): Promise<ConsoleAsset> {
  const [brotli, gzip] = await Promise.all([
    brotliOf(bytes),
    gzipOf(bytes, { level: zlib.constants.Z_BEST_COMPRESSION }),
  ])
  return {
    path: name,
    type: TYPES[path.extname(name)] ?? 'application/octet-stream',
    bytes,
    brotli: brotli.length < bytes.length ? brotli : null,
    gzip: gzip.length < bytes.length ? gzip : null,
    immutable: name !== 'index.html',
  }
}
