import { cpSync, existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { writeAssets } from '@plat/console'
import { buildConsole } from '@plat/console/build'
import { build, type Metafile, type Plugin } from 'esbuild'
import { rewriteSource } from './rewrite.ts'

/** For CommonJS libraries in an ES module. */
const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

/** Folders of plat's sources; everything else in a bundle is a library. */
const SOURCES = ['packages', 'services', 'apps', 'examples']

/** Its files are built for browsers, and read by the programs. */
const CONSOLE = 'apps/console'

/** A thread, or a process of a program, is started from a file, which the bundler does not find by itself. */
const THREAD = /(?:new Worker\(\s*|_PROGRAM = )new URL\('(\.[^']+\.ts)', import\.meta\.url\)/g

export interface BundleOptions {
  /** The repository. */
  readonly root: string
  /** Gets the files of the bundle, in one flat folder, and `data/`. */
  readonly out: string
  /** Modules to start from, by the name of their file in the bundle, without `.js`. */
  readonly entries: Readonly<Record<string, string>>
}

/**
 * Joins the modules that the entries import, libraries included, into files that Node runs without anything beside them. A module that is only
 * imported by a dynamic import stays in a separate file. Threads are entries too, and data files that a module names by `new URL('…', import.meta.url)` are
 * copied. Throws for a module that finds its files in another way.
 */
export async function bundle({ root, out, entries }: BundleOptions): Promise<Metafile> {
  const threads = threadsIn(root)
  const data = new Set<string>()
  const result = await build({
    absWorkingDir: root,
    entryPoints: { ...entries, ...Object.fromEntries([...threads].map((file) => [threadName(root, file), file])) },
    outdir: out,
    bundle: true,
    splitting: true,
    platform: 'node',
    target: 'node26',
    format: 'esm',
    chunkNames: '[name]-[hash]',
    banner: { js: REQUIRE },
    plugins: [platSources(root, threads, data), cedarWasm(data), requiredHttp()],
    // Builds the console in a clone; a bundle contains the built files.
    external: ['esbuild'],
    // Class names are part of messages; functions keep theirs unless two in one file are equal.
    minifySyntax: true,
    metafile: true,
    logLevel: 'silent',
  })
  for (const file of data) {
    // A build may lack an optional file.
    if (existsSync(file)) cpSync(file, path.join(out, 'data', path.relative(root, file)), { recursive: true })
  }
  const built = path.join(root, CONSOLE, 'built/')
  if (!data.has(built.slice(0, -1)) && !data.has(built)) return result.metafile
  const console = await buildConsole(path.join(root, CONSOLE))
  await writeAssets(path.join(out, 'data', CONSOLE, 'built'), console.assets)
  const inputs = Object.entries(console.metafile.inputs).map(([file, input]) => [path.join(CONSOLE, file), input])
  return { ...result.metafile, inputs: { ...result.metafile.inputs, ...Object.fromEntries(inputs) } }
}

function threadsIn(root: string): ReadonlySet<string> {
  const files = SOURCES.flatMap((folder) =>
    globSync(`${folder}/**/*.ts`, { cwd: root, exclude: (name) => name.endsWith('node_modules') }),
  )
  const found = new Set<string>()
  for (const file of files) {
    if (/\.test\.ts$|(?:^|\/)(?:testing|testkit|fixtures)\//.test(file)) continue
    const text = readFileSync(path.join(root, file), 'utf8')
    for (const [, name = ''] of text.matchAll(THREAD)) found.add(path.resolve(root, path.dirname(file), name))
  }
  return found
}

function threadName(root: string, file: string): string {
  return `thread-${path.relative(root, file).replace(/\.ts$/, '').replaceAll(path.sep, '-')}`
}

function platSources(root: string, threads: ReadonlySet<string>, data: Set<string>): Plugin {
  return {
    name: 'plat sources',
    setup(builder) {
      builder.onLoad({ filter: /\.m?ts$|\.mjs$/ }, ({ path: file }) => {
        if (file.includes('node_modules')) return undefined
        const source = readFileSync(file, 'utf8')
        const rewritten = rewriteSource(source, (name) => {
          const target = path.resolve(path.dirname(file), name)
          if (threads.has(target)) return `./${threadName(root, target)}.js`
          data.add(target)
          return `./data/${path.relative(root, target)}${name.endsWith('/') ? '/' : ''}`
        })
        if (typeof rewritten === 'string') return { contents: rewritten, loader: 'ts' }
        return { errors: rewritten.problems.map((text) => ({ text, location: { file } })) }
      })
    },
  }
}

/**
 * An ES import of `node:http` reads every export, and so loads Node's implementation of `fetch` and WebSockets: 40 ms of each start. `require`
 * reads only what is used.
 */
function requiredHttp(): Plugin {
  const namespace = 'required'
  return {
    name: 'required http',
    setup(builder) {
      builder.onResolve({ filter: /^(?:node:)?http$/ }, ({ kind }) =>
        kind === 'require-call' ? { path: 'node:http', external: true } : { path: 'node:http', namespace },
      )
      builder.onLoad({ filter: /.*/, namespace }, () => ({ contents: "module.exports = require('node:http')" }))
    },
  }
}

/** The engine of Cedar reads its program from the folder of its module. */
function cedarWasm(data: Set<string>): Plugin {
  return {
    name: 'cedar wasm',
    setup(builder) {
      builder.onLoad({ filter: /cedar_wasm\.js$/ }, ({ path: file }) => {
        data.add(path.join(path.dirname(file), 'cedar_wasm_bg.wasm'))
        const folder = `node_modules/${file.split('node_modules/').at(-1)}`
        const contents = readFileSync(file, 'utf8').replace(
          /`\$\{__dirname\}\/cedar_wasm_bg\.wasm`/,
          `new URL('./data/${path.dirname(folder)}/cedar_wasm_bg.wasm', import.meta.url)`,
        )
        return { contents, loader: 'js' }
      })
    },
  }
}
