import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileArchive } from '@plat/gateway/file-archive'
import { LedgerSequence, ListKeeper, leave, removeLeftovers } from '@plat/ledger'

const RETRY_MS = 20

/** Archives the sealed segments of `<folder>/ledger/audit.jsonl` in `<folder>/archive` and removes them, whatever fails; exits 0 when all have left. */
const folder = process.argv[2] ?? ''
const path = join(folder, 'ledger', 'audit.jsonl')
const checkpoint = readFileSync(join(folder, 'checkpoint'), 'utf8')
const archive = fileArchive(join(folder, 'archive'))
const leaving = { ledgerPath: path, list: new ListKeeper(path, null, {}), files: null }

while (!(await hasPassed().catch(() => false))) await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
leaving.list.close()

/** One pass, in the order of a gateway; returns whether no segment is left to remove. */
async function hasPassed(): Promise<boolean> {
  const before = await segments()
  await removeLeftovers(leaving, before)
  for (const segment of before) {
    if (segment.left !== null || segment.file === null) continue
    const where = await archive.put(join(dirname(path), segment.file), segment.file)
    await leave(leaving, segment, { archive: where, checkpoint, left: new Date().toISOString() })
  }
  return (await segments()).every(({ file }) => file === null)
}

async function segments() {
  await using sequence = await LedgerSequence.open(path)
  return sequence.segments
}
