import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { PROGRAMS } from '../package/programs.ts'

/** Files that a bundle is made of, and those that make it. */
const INPUTS = '{packages,services,apps,tools/package}/**/*.{ts,mjs,json,pem}'

const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Bundles the programs of plat as its package does, once for each state of the sources: a test that starts a program loads a few files instead of
 * hundreds, and runs what is shipped. Returns the URL of a module to preload, or null where the bundle is missing: programs run from their
 * sources then. `build`: whether to build a bundle that is missing.
 */
export async function joinServices(root: string, build: boolean): Promise<string | null> {
  const home = path.join(root, '.cache/services')
  const folder = path.join(home, keyOf(root))
  if (!existsSync(folder) && !(build && (await buildInto(root, folder)))) return null
  return pathToFileURL(path.join(folder, 'hook.mjs')).href
}

function keyOf(root: string): string {
  const hash = createHash('sha256').update(readFileSync(path.join(root, 'package-lock.json')))
  const files = globSync(INPUTS, { cwd: root, exclude: (name) => /(?:^|\/)node_modules$|\.test\.ts$/.test(name) })
  for (const file of files.sort()) {
    if (!file.endsWith('.test.ts')) hash.update(`${file}\n`).update(readFileSync(path.join(root, file)))
  }
  return hash.digest('hex').slice(0, 16)
}

/** Another run may use a bundle that is not old. */
function removeOld(home: string): void {
  for (const name of readdirSync(home)) {
    const folder = path.join(home, name)
    if (statSync(folder).mtimeMs < Date.now() - DAY_MS) rmSync(folder, { recursive: true, force: true })
  }
}

async function buildInto(root: string, folder: string): Promise<boolean> {
  const home = path.dirname(folder)
  mkdirSync(home, { recursive: true })
  removeOld(home)
  const building = mkdtempSync(`${folder}-`)
  try {
    const { bundle } = await import('../package/bundle.ts')
    await bundle({ root, out: building, entries: PROGRAMS })
    writeFileSync(path.join(building, 'package.json'), '{"type":"module"}')
    writeFileSync(path.join(building, 'hook.mjs'), hookOf(root))
    renameSync(building, folder)
  } catch (error) {
    console.error(`the programs run from their sources: ${error instanceof Error ? error.message : String(error)}`)
    rmSync(building, { recursive: true, force: true })
  }
  return existsSync(folder)
}

/** Preloaded into every process of the tests; only the programs of plat import these modules by their URL. */
function hookOf(root: string): string {
  const urls = Object.entries(PROGRAMS).map(([name, file]) => [
    pathToFileURL(path.join(root, file)).href,
    `./${name}.js`,
  ])
  return `import module from 'node:module'
const bundled = new Map(${JSON.stringify(urls)})
if (/\\/bin\\/plat[a-z-]*\\.mjs$/.test(process.argv[1] ?? '')) module.registerHooks?.({
  resolve(name, context, next) {
    const file = bundled.get(name)
    if (file === undefined) return next(name, context)
    return { url: new URL(file, import.meta.url).href, format: 'module', shortCircuit: true }
  },
})
`
}
