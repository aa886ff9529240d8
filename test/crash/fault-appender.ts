import { writeSync } from 'node:fs'
import { systemClock, systemIds } from '@plat/core'
import { openLedger } from '@plat/ledger'
import { type OpenJournal, openFileJournal } from '@plat/state'

/** Records that each of the two files must take before the process ends. */
const RECORDS = 40
const RETRY_MS = 20
/** Small, so that errors hit the sealing of segments. */
const SEGMENT_BYTES = 2048
const STDOUT = 1

/** Appends to `<folder>/audit.jsonl` and `<folder>/journal.jsonl` whatever fails, prints what was acknowledged, and exits 0 when both took enough. */
const folder = process.argv[2] ?? ''
const path = `${folder}/audit.jsonl`

// Timers of the clock do not keep a process alive; recovery needs one that does.
const alive = setInterval(() => {}, 1000)
await Promise.all([appendRecords(), appendEvents()])
clearInterval(alive)

async function untilWorks<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch {
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
}

async function appendRecords(): Promise<void> {
  const sealing = { bytes: SEGMENT_BYTES, seconds: 0 }
  const options = { path, tenant: '', replica: 'faults', clock: systemClock, ids: systemIds(systemClock), sealing }
  const ledger = await untilWorks(() => openLedger(options))
  for (let count = 0; count < RECORDS; count++) {
    const { hash } = await untilWorks(() => ledger.append({ kind: 'admin', argsBytes: count }))
    writeSync(STDOUT, `record ${hash}\n`)
  }
  await ledger.close()
}

async function appendEvents(): Promise<void> {
  const options = { path: `${folder}/journal.jsonl`, clock: systemClock, decode: Number }
  const journal = await untilWorks(() => openFileJournal(options))
  for (let event = 0; event < RECORDS; event++) {
    await untilWorks(() => journal.append('key', [event]))
    writeSync(STDOUT, `event ${event}\n`)
    // The snapshot repeats the last event, so that a swap of the file is part of what fails.
    if (event === RECORDS / 2) await compact(journal)
  }
  await journal.close()
}

async function compact(journal: OpenJournal<number>): Promise<void> {
  let last = { seq: 0, version: 0, event: 0 }
  for await (const entry of journal.read(0)) last = entry
  // One that fails leaves the events as they were.
  await journal
    .compact(last.seq - 1, [{ key: 'key', version: last.version - 1, event: last.event - 1 }])
    .catch(() => {})
}
