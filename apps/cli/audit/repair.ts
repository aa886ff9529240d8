import { systemClock, systemIds } from '@plat/core'
import { repairLedger } from '@plat/ledger'
import { LockedError } from '@plat/state'
import { CommandError, type Output } from '../shared/output.ts'

/** Sets the damaged part of a ledger aside, byte for byte, and lets the chain go on after the last good record. */
export async function auditRepair({ path }: { readonly path: string }, output: Output): Promise<number> {
  const { entries, damage, aside } = await repair(path)
  if (damage === null || aside === null) {
    output.out(`${path}: ${entries} records, no damage inside; nothing was changed but what any start mends`)
    return 0
  }
  output.out(`${path}: line ${damage.line} (record ${damage.seq}, byte ${damage.offset}) was damaged: ${damage.what}`)
  output.out(
    `${entries} good records stay. ${aside.bytes} bytes from there on are kept, as they were, in ${aside.file}`,
  )
  output.out('A `recovered` record holds their SHA-256. Keep that file: it is the evidence, and may hold good records.')
  return 0
}

async function repair(path: string): ReturnType<typeof repairLedger> {
  try {
    return await repairLedger({ path, clock: systemClock, ids: systemIds(systemClock) })
  } catch (error) {
    if (error instanceof LockedError) throw new CommandError(`${error.message}; stop the gateway first`)
    if (error instanceof Error) throw new CommandError(error.message)
    throw error
  }
}
