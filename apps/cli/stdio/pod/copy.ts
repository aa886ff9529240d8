import { type FlagTable, parseFlags } from '@plat/config'
import { reasonOf } from '@plat/core'
import { printUsage, refuseStart } from '@plat/process'
import { copyRuntime } from './runtime.ts'

const FLAGS = {
  to: { type: 'string', default: '', help: 'Folder to copy into; required.' },
} as const satisfies FlagTable

/**
 * `plat-stdio-copy`, the init container of a stdio server: copies the bridge into the volume from which the container of the server runs it.
 * Returns the exit status: 0, 1 if it cannot copy, 2 for wrong usage.
 */
export async function main(argv: readonly string[]): Promise<number> {
  const parsed = parseFlags(FLAGS, argv, 'plat-stdio-copy')
  if (!parsed.ok) return printUsage(parsed)
  if (parsed.values.to === '') return refuseStart(['-to: Required value'])
  try {
    copyRuntime(parsed.values.to)
    return 0
  } catch (error) {
    return refuseStart([reasonOf(error)])
  }
}
