import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { unpackDebianPackage } from '@plat/testkit/processes/debian'

/** The Debian package that holds promtool. */
const PACKAGE = 'prometheus'

/** Checks metrics and rules with promtool of Prometheus. */
export interface Promtool {
  /** A folder that goes with it. */
  readonly dir: string
  /** Returns its output, which starts with `exit <status>` if it failed. */
  run(args: readonly string[], input?: string): string
  remove(): void
}

/** Downloads it. Throws where the package cannot be had. */
export function fetchPromtool(): Promtool {
  const dir = mkdtempSync(join(tmpdir(), 'plat-'))
  const program = join(unpackDebianPackage(PACKAGE, dir), 'usr/bin/promtool')
  return {
    dir,
    run(args, input = '') {
      const { status, stdout, stderr } = spawnSync(program, args, { input, encoding: 'utf8', cwd: dir })
      return status === 0 ? `${stdout}${stderr}` : `exit ${status}\n${stdout}${stderr}`
    },
    remove: () => rmSync(dir, { recursive: true }),
  }
}
