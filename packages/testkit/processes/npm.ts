import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

const CACHE = path.resolve(import.meta.dirname, '../../../node_modules/.cache/plat-npm')
/** Time to install a package once, in milliseconds. */
const INSTALL_TIMEOUT_MS = 480_000

/** The folder of an installed package, or the reason why there is none. */
export type InstalledPackage = { readonly folder: string } | { readonly missing: string }

/** Resolves to a package with its dependencies, installed once for each version and without install scripts. */
export async function npmPackage(name: string, version: string): Promise<InstalledPackage> {
  const dir = path.join(CACHE, `${name.replaceAll('/', '-')}-${version}`)
  const folder = path.join(dir, 'node_modules', name)
  const complete = path.join(dir, 'complete')
  if (existsSync(complete)) return { folder }
  try {
    rmSync(dir, { recursive: true, force: true })
    mkdirSync(dir, { recursive: true })
    writeFileSync(path.join(dir, 'package.json'), '{"private":true}')
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error']
    await run('npm', ['install', ...options, `${name}@${version}`], { cwd: dir, timeout: INSTALL_TIMEOUT_MS })
    writeFileSync(complete, '')
    return { folder }
  } catch (error) {
    const [line = 'no reason'] = (error instanceof Error ? error.message : String(error)).split('\n')
    return { missing: `${name}@${version}: ${line}` }
  }
}
