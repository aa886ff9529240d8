import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { INSTALL_TIMEOUT_MS, installOnce } from './install-once.ts'

const run = promisify(execFile)

const CACHE = path.resolve(import.meta.dirname, '../../../node_modules/.cache/plat-npm')

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
  const reason = await installOnce(dir, async () => {
    mkdirSync(dir, { recursive: true })
    writeFileSync(path.join(dir, 'package.json'), '{"private":true}')
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error']
    await run('npm', ['install', ...options, ...packages], { cwd: dir, timeout: INSTALL_TIMEOUT_MS })
  })
  return reason === null ? { folder } : { missing: `${packages.join(' ')}: ${reason}` }
}
