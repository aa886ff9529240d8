import { systemClock, systemIds } from '@plat/core'
import { repairLedger, restoreSegment } from '@plat/ledger'
import { LockedError } from '@plat/state'
import { CommandError, type Output } from '../shared/output.ts'

/**
 * Sets the damaged part of a ledger aside, byte for byte, and lets the chain go on after the last good record. Returns the exit code: 2 if a sealed
 * segment is missing.
 */
export async function auditRepair({ path }: { readonly path: string }, output: Output): Promise<number> {
  const { entries, damage, aside, missing } = await explained(
    repairLedger({ path, clock: systemClock, ids: systemIds(systemClock) }),
  )
  if (damage === null || aside === null) {
    output.out(
      `${path}: ${entries} records, no damage in the active file; nothing was changed but what any start mends. Sealed segments were not read: plat audit verify does`,
    )
    return reportMissing(missing, output)
  }
  output.out(`${path}: line ${damage.line} (record ${damage.seq}, byte ${damage.offset}) was damaged: ${damage.what}`)
  output.out(
    `${entries} good records stay. ${aside.bytes} bytes from there on are kept, as they were, in ${aside.file}`,
  )
  output.out('A `recovered` record holds their SHA-256. Keep that file: it is the evidence, and may hold good records.')
  return reportMissing(missing, output)
}

/** Returns the exit code: 2 if sealed segments are missing. */
function reportMissing(missing: readonly string[], output: Output): number {
  for (const file of missing)
    output.err(`plat: ${file} is missing: restore it from a copy with \`plat audit repair <ledger> -from <copy>\``)
  return missing.length === 0 ? 0 : 2
}

/** Replaces a damaged sealed segment by a copy, if the copy is what was sealed. */
export async function auditRestore(
  { path, from }: { readonly path: string; readonly from: string },
  output: Output,
): Promise<number> {
  const { first, last, wasValid, ...restored } = await explained(restoreSegment(path, from))
  if (wasValid) {
    output.out(`${restored.path}: records ${first} to ${last} are what was sealed; nothing was changed`)
    return 0
  }
  output.out(
    `${restored.path}: records ${first} to ${last} are restored from ${from}, verified against the segment record`,
  )
  if (restored.aside !== null) output.out(`The damaged file is kept, as it was, as ${restored.aside}`)
  return 0
}

async function explained<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (error instanceof LockedError) throw new CommandError(`${error.message}; stop the gateway first`)
    if (error instanceof Error) throw new CommandError(error.message)
    throw error
  }
}
