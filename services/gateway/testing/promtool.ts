import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { unpackDebianPackage } from '@plat/testkit/processes/debian'

/** The Debian package that holds promtool. */
const PACKAGE = 'prometheus'

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
