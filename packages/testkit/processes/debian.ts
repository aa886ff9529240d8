import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Found on the PATH. */
const APT = 'apt-get'
const DPKG = 'dpkg-deb'

/**
 * Downloads a Debian package into `dir` and unpacks it without installing it. Needs the lists that `apt-get update` fetches. Returns the
 * folder that holds its files. Throws where the package cannot be downloaded.
 */
export function unpackDebianPackage(name: string, dir: string): string {
  mkdirSync(dir, { recursive: true })
  // The download needs no rights of root; apt warns when it runs with them.
  execFileSync(APT, ['download', '-q', '-o', 'Acquire::Retries=5', name], { cwd: dir, stdio: 'pipe' })
  const archive = readdirSync(dir).find((file) => file.startsWith(`${name}_`))
  assert.ok(archive !== undefined, `apt-get downloaded no archive of ${name}`)
  const unpacked = join(dir, 'unpacked')
  execFileSync(DPKG, ['--extract', join(dir, archive), unpacked])
  return unpacked
}
