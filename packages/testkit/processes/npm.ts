import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

const CACHE = path.resolve(import.meta.dirname, '../../../node_modules/.cache/plat-npm')
/** Time to install packages once, in milliseconds. */
const INSTALL_TIMEOUT_MS = 480_000

/** The folder of an installed package, or the reason why there is none. */
export type InstalledPackage = { readonly folder: string } | { readonly missing: string }

/** Resolves to a package with its dependencies, installed once for each version and without install scripts. */
export async function npmPackage(name: string, version: string): Promise<InstalledPackage> {
  const installed = await npmPackages([`${name}@${version}`])
  return 'missing' in installed ? installed : { folder: path.join(installed.folder, name) }
}

/** Resolves to a `node_modules` with packages, each given as `<name>@<version>`. They are installed like a single one. */
export async function npmPackages(packages: readonly string[]): Promise<InstalledPackage> {
  const key = createHash('sha256').update(packages.join('\n')).digest('hex').slice(0, 16)
  const dir = path.join(CACHE, key)
  const folder = path.join(dir, 'node_modules')
  const complete = path.join(dir, 'complete')
  if (existsSync(complete)) return { folder }
  try {
    rmSync(dir, { recursive: true, force: true })
    mkdirSync(dir, { recursive: true })
    writeFileSync(path.join(dir, 'package.json'), '{"private":true}')
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error']
    await run('npm', ['install', ...options, ...packages], { cwd: dir, timeout: INSTALL_TIMEOUT_MS })
    writeFileSync(complete, '')
    return { folder }
  } catch (error) {
    const [line = 'no reason'] = (error instanceof Error ? error.message : String(error)).split('\n')
    return { missing: `${packages.join(' ')}: ${line}` }
  }
}
