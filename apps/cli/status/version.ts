import { buildInfo } from '@plat/core'
import type { Format, Output } from '../shared/output.ts'
import { printObject } from '../shared/print.ts'

/** `plat version`: the build of this program. */
export async function version(format: Format, output: Output): Promise<number> {
  const { version, commit, buildDate, goVersion: runtime, platform } = buildInfo('cli')
  printObject(output, format, { version, commit, buildDate, runtime, platform })
  return 0
}
