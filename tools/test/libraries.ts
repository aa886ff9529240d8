import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

/** Libraries of many small files that almost every process loads, by the names under which anything imports them. */
export const LIBRARY_NAMES = [
  ...['typebox', 'typebox/compile', 'typebox/format', 'typebox/guard', 'typebox/schema', 'typebox/system'],
  ...['typebox/type', 'typebox/value', '@bufbuild/cel', '@bufbuild/protobuf', '@bufbuild/protobuf/wkt'],
  ...['fastify', 'yaml'],
]

/** CommonJS libraries that look for files beside their own. */
const NOT_JOINED = ['pino']

/** For joined CommonJS modules. */
const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"

/**
 * Preloaded into every process of the tests. A relative import names a file, for which Node need not look for links and manifests. Older versions of
 * Node, which only start the pinned one, have no hooks.
 */
const HOOK = `import module from 'node:module'
const names = new Set(${JSON.stringify(LIBRARY_NAMES)})
const formats = { '.ts': 'module-typescript', 'mjs': 'module' }
module.registerHooks?.({
  resolve(name, context, next) {
    if (!context.conditions.includes('import')) return next(name, context)
    if (names.has(name)) {
      return { url: new URL(\`./\${name}.js\`, import.meta.url).href, format: 'module', shortCircuit: true }
    }
    const format = name.startsWith('.') ? formats[name.slice(-3)] : undefined
    if (format === undefined || !context.parentURL?.startsWith('file:')) return next(name, context)
    return { url: new URL(name, context.parentURL).href, format, shortCircuit: true }
  },
})
`

/**
 * Joins the files of large libraries, once for each state of the lock file: a process that starts a service loads 950 files instead of 1900. The code of
 * the libraries and of plat is unchanged. Returns the URL of a module to preload, or null where the bundler does not run: everything works
 * without it, only slower.
 */
export async function joinLibraries(root: string): Promise<string | null> {
  const inputs = [path.join(root, 'package-lock.json'), import.meta.filename].map((file) => readFileSync(file))
  const key = inputs.reduce((hash, input) => hash.update(input), createHash('sha256')).digest('hex')
  const folder = path.join(root, '.cache/libraries', key.slice(0, 16))
  if (!existsSync(folder) && !(await buildInto(root, folder))) return null
  return pathToFileURL(path.join(folder, 'hook.mjs')).href
}

async function buildInto(root: string, folder: string): Promise<boolean> {
  mkdirSync(path.dirname(folder), { recursive: true })
  const building = mkdtempSync(`${folder}-`)
  try {
    const { build } = await import('esbuild')
    for (const name of LIBRARY_NAMES) {
      const entry = path.join(building, 'entries', `${name}.js`)
      mkdirSync(path.dirname(entry), { recursive: true })
      writeFileSync(entry, entryOf(name, Object.keys(await import(name))))
    }
    await build({
      entryPoints: LIBRARY_NAMES.map((name) => ({ in: path.join(building, 'entries', `${name}.js`), out: name })),
      outdir: building,
      absWorkingDir: root,
      external: NOT_JOINED,
      banner: { js: REQUIRE },
      bundle: true,
      splitting: true,
      platform: 'node',
      format: 'esm',
      keepNames: true,
      logLevel: 'silent',
    })
    writeFileSync(path.join(building, 'package.json'), '{"type":"module"}')
    writeFileSync(path.join(building, 'hook.mjs'), HOOK)
    renameSync(building, folder)
  } catch {
    rmSync(building, { recursive: true, force: true })
  }
  // Another run may have built it meanwhile.
  return existsSync(folder)
}

/** Exports all that a library does. Node finds the names that a CommonJS module exports, which the bundler does not. */
function entryOf(name: string, exported: readonly string[]): string {
  const isCommonJs = exported.includes('module.exports')
  if (!isCommonJs)
    return `export * from '${name}'\n${exported.includes('default') ? `export { default } from '${name}'\n` : ''}`
  const members = exported.filter((key) => key !== 'default' && key !== 'module.exports')
  return [
    `import library from '${name}'`,
    'export default library',
    ...members.map((key, at) => `const export${at} = library.${key}\nexport { export${at} as ${key} }`),
  ].join('\n')
}
