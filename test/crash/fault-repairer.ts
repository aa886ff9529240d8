import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock, systemIds } from '@plat/core'
import { repairLedger, restoreSegment } from '@plat/ledger'

/** Repairs `<folder>/ledger/audit.jsonl` as `plat audit repair` does, with `-from <folder>/copy.jsonl` if that exists. Exits 0 when it is done. */
const folder = process.argv[2] ?? ''
const path = join(folder, 'ledger', 'audit.jsonl')
const copy = join(folder, 'copy.jsonl')
if (existsSync(copy)) await restoreSegment(path, copy)
else await repairLedger({ path, clock: systemClock, ids: systemIds(systemClock) })
