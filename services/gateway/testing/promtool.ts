import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Debian's package, unpacked and not installed: needs apt and its mirrors, and lists that `apt-get update` has fetched. */
const PACKAGE = 'prometheus'
/** Found on the PATH. */
const APT = 'apt-get'
const DPKG = 'dpkg-deb'

/** What judges metrics and rules as Prometheus does. */
export interface Promtool {
  /** A folder that goes with it. */
  readonly dir: string
  /** What it has to say; begins with `exit <status>` when it is not content. */
  run(args: readonly string[], input?: string): string
  remove(): void
}

/** Downloads it. Throws where the package cannot be had. */
export function fetchPromtool(): Promtool {
  const dir = mkdtempSync(join(tmpdir(), 'plat-'))
  // The download needs no rights of root; apt warns where it runs with them, and is left to.
  execFileSync(APT, ['download', '-q', '-o', 'Acquire::Retries=5', PACKAGE], { cwd: dir, stdio: 'pipe' })
  const [archive] = readdirSync(dir)
  assert.ok(archive !== undefined)
  execFileSync(DPKG, ['--extract', join(dir, archive), join(dir, 'unpacked')])
  const program = join(dir, 'unpacked/usr/bin/promtool')
  return {
    dir,
    run(args, input = '') {
      const { status, stdout, stderr } = spawnSync(program, args, { input, encoding: 'utf8', cwd: dir })
      return status === 0 ? `${stdout}${stderr}` : `exit ${status}\n${stdout}${stderr}`
    },
    remove: () => rmSync(dir, { recursive: true }),
  }
}
