import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { bundle } from './bundle.ts'
import { noticeOf } from './notice.ts'
import { PROGRAMS } from './programs.ts'

/** Folder of the page and of the package that is built. */
const HOME = 'apps/cli'

/** Name under which the package is published; the name without a scope belongs to another project. */
const NAME = '@plat-gov/cli'

/** The launcher has no types, since the system's Node may be too old for the programs. It expects the package two folders above itself. */
const LAUNCHER = 'packages/process/launch.mjs'
const APP = 'dist/app'

/** The launcher loads it when a program fails to start. */
const START_ERROR = 'packages/process/start-error.ts'

/**
 * Builds the package that is published into an empty folder: all programs with their libraries as JavaScript, the launcher, licenses, and the page. Throws
 * if a module or a library cannot be bundled.
 */
export async function buildPackage(root: string, out: string): Promise<void> {
  rmSync(out, { recursive: true, force: true })
  const app = path.join(out, APP)
  const metafile = await bundle({ root, out: app, entries: { ...PROGRAMS, 'start-error': START_ERROR } })
  writeFileSync(path.join(app, 'launch.js'), launcher(root))
  mkdirSync(path.join(out, 'bin'))
  for (const name of Object.keys(PROGRAMS))
    writeFileSync(path.join(out, 'bin', `${name}.mjs`), programOf(name), { mode: 0o755 })
  writeFileSync(path.join(out, 'package.json'), `${JSON.stringify(manifest(root), null, 2)}\n`)
  writeFileSync(path.join(out, 'NOTICE'), noticeOf(root, metafile))
  writeFileSync(path.join(out, 'README.md'), pageOf(root))
  cpSync(path.join(root, 'LICENSE'), path.join(out, 'LICENSE'))
}

/** The page of the package. A comment in it names the section of another page that replaces it. */
function pageOf(root: string): string {
  const page = readFileSync(path.join(root, HOME, 'README.md'), 'utf8')
  return page.replace(/^<!-- (\S+): (.+) -->$/m, (_, file: string, heading: string) => {
    const text = readFileSync(path.join(root, file), 'utf8')
    const [, section] = text.split(`\n## ${heading}\n`)
    if (section === undefined) throw new Error(`${file}: has no section "${heading}"`)
    return `## ${heading}\n${section.split('\n## ')[0]}`.trim()
  })
}

function launcher(root: string): string {
  const text = readFileSync(path.join(root, LAUNCHER), 'utf8')
  const imported = "import('./start-error.ts')"
  if (!text.includes(imported)) throw new Error(`${LAUNCHER}: does not contain ${imported}`)
  return text.replace(imported, "import('./start-error.js')")
}

function programOf(name: string): string {
  return `#!/usr/bin/env node
import { launch } from '../${APP}/launch.js'

await launch(new URL('../${APP}/${name}.js', import.meta.url))
`
}

/** Manifest for the registry. Version and pinned runtimes are those of the repository. */
function manifest(root: string): object {
  const { version, description, keywords, license, engines, optionalDependencies } = JSON.parse(
    readFileSync(path.join(root, 'package.json'), 'utf8'),
  )
  const bin = Object.fromEntries(Object.keys(PROGRAMS).map((name) => [name, `bin/${name}.mjs`]))
  return {
    ...{ name: NAME, version, description, keywords, license },
    ...{ type: 'module', bin, files: ['bin', 'dist', 'NOTICE'], engines, optionalDependencies },
  }
}
