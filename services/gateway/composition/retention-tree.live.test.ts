import assert from 'node:assert/strict'
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { receiptBeside, verifyLedger, verifyReceipt } from '@plat/ledger'
import { createAudit } from '../evidence/audit/index.ts'
import { DAY_MS, type Fixture, fill, setUp, stillHere, untilPass } from './testing/retention.ts'

/** Begins a ledger of which the first segments left. Closes it, and returns what starts it again. */
async function withLeft(fixture: Fixture) {
  const { auditPath, audit, clock, shared } = fixture
  const segments = await fill(fixture, 3)
  await audit.checkpoints.last(true)
  const retention = fixture.start()
  await clock.advance(DAY_MS + 3_600_000)
  await untilPass(fixture, () => stillHere(auditPath, segments).length === 0, 'all to leave')
  await retention.close()
  await audit.close()
  const before = readFileSync(`${auditPath}.tree`)
  return { before, restart: () => createAudit(shared) }
}

/** Appends records and a checkpoint. Returns a receipt of the first of them. */
async function proveMore(audit: Awaited<ReturnType<typeof createAudit>>, { auditPath, key }: Fixture) {
  const { seq } = await audit.ledgers.of('').append({ kind: 'alert' })
  for (let count = 0; count < 5; count++) await audit.ledgers.of('').append({ kind: 'alert' })
  const checkpoint = await audit.checkpoints.last(true)
  const receipt = await receiptBeside(auditPath, seq)
  const found =
    typeof receipt === 'string' ? receipt : verifyReceipt(receipt, { keys: [key.signer.publicKey], hmacKey: null })
  return { seq, checkpoint, found }
}

test('the tree is rebuilt from the list of segments when it is missing, cut or changed after segments left', async (t) => {
  const fixture = await setUp(t, { archive: 'delete', days: 1 })
  const { auditPath, key } = fixture
  const tree = `${auditPath}.tree`
  const { before, restart } = await withLeft(fixture)
  const changed = Buffer.from(before).fill(7)
  for (const [what, damage] of [
    ['missing', () => rmSync(tree)],
    ['cut', () => truncateSync(tree, 320)],
    ['changed', () => writeFileSync(tree, changed)],
  ] as const) {
    damage()
    const audit = await restart()
    const { seq, checkpoint, found } = await proveMore(audit, fixture)
    await audit.close()
    assert.ok(Number(checkpoint?.rec.upTo) >= seq, `${what}: no checkpoint`)
    assert.ok(typeof found !== 'string' && found.signed === true, `${what}: ${String(found)}`)
    // The roots are compared with those that the segment records state, on from the one that left.
    const verified = await verifyLedger(auditPath, { beside: true, strict: true, key: key.pub })
    assert.deepEqual([verified.exitCode, verified.archived.length > 0], [0, true], `${what}: ${verified.message}`)
  }
})
