import { systemClock, systemIds } from '@plat/core'
import { openLedger } from '@plat/ledger'

/** Callers that append at the same time, so that commits are groups. */
const CALLERS = 32
/** Small, so that kills hit the sealing of segments. */
const SEGMENT_BYTES = 64 * 1024

/** Appends to the ledger named on the command line until it is killed, and prints `<seq> <hash>` for each record that was acknowledged. */
const ledger = await openLedger({
  path: process.argv[2] ?? '',
  tenant: '',
  replica: 'crash',
  clock: systemClock,
  ids: systemIds(systemClock),
  sealing: { bytes: SEGMENT_BYTES, seconds: 0 },
})
await Promise.all(Array.from({ length: CALLERS }, (_, caller) => appendForever(caller)))

async function appendForever(caller: number): Promise<void> {
  for (let count = 0; ; count++) {
    const { seq, hash } = await ledger.append({ kind: 'admin', tool: `caller-${caller}`, argsBytes: count })
    process.stdout.write(`${seq} ${hash}\n`)
  }
}
