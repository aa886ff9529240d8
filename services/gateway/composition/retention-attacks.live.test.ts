import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ListKeeper, type Rec, verifyLedger } from '@plat/ledger'
import { DAY_MS, fill, listed, setUp, stillHere, untilPass } from './testing/retention.ts'

/** How long a segment is about to leave while a hold is made, in milliseconds. */
const WINDOW_MS = 300

test('a hold that is made while a segment is about to leave keeps every file that is there when it is in force', async (t) => {
  const fixture = await setUp(t, { archive: 'delete', days: 1 })
  const { auditPath, audit, ledger, clock, gauge } = fixture
  const segments = await fill(fixture, 3)
  await audit.checkpoints.last(true)
  await clock.advance(DAY_MS + 3_600_000)
  const { last = 0 } = segments.at(-1) ?? {}
  const inForce: Promise<string[]>[] = []
  const append = async (rec: Rec) => {
    if (rec.action === 'segment.left') {
      const adding = retention.holds.keeper.add({ from: 0, to: last }, 'token:a', 'a case')
      if (inForce.length === 0) inForce.push(adding.then(() => stillHere(auditPath, segments)))
      await Promise.race([...inForce, sleep(WINDOW_MS)])
    }
    return ledger.append(rec)
  }
  const retention = fixture.start({ ledger: { append } })
  await untilPass(fixture, () => inForce.length > 0, 'the first departure')
  const remaining = (await inForce[0]) ?? assert.fail()
  await untilPass(fixture, () => gauge('segments_held') === remaining.length, 'a pass with the hold')
  assert.deepEqual(stillHere(auditPath, segments), remaining)
  assert.equal(remaining.length, segments.length - 1, 'one had left before')
  const { exitCode, message } = await verifyLedger(auditPath, { beside: true, key: fixture.key.pub })
  assert.equal(exitCode, 0, message)
})

test('a file that cannot be removed is logged and counted at each pass, and is removed when it can be', async (t) => {
  const fixture = await setUp(t, { archive: 'delete', days: 1 })
  const { auditPath, audit, clock, gauge, logged } = fixture
  const segments = await fill(fixture, 2)
  await audit.checkpoints.last(true)
  await clock.advance(DAY_MS + 3_600_000)
  const path = join(auditPath, '..', segments[0]?.file ?? '')
  // A folder in its place fails for every user; permissions would not stop root.
  const blocked: Pick<ListKeeper, 'change' | 'update'> = {
    async change(edit) {
      await audit.segments.list.change(edit)
      rmSync(path, { force: true })
      mkdirSync(path, { recursive: true })
    },
    update: () => audit.segments.list.update(),
  }
  const retention = fixture.start({ list: Object.assign(Object.create(audit.segments.list), blocked) })
  await untilPass(fixture, () => gauge('retention_failures_total') >= 2, 'two failures')
  assert.match(logged.join('\n'), /cannot leave, will retry .*(?:EISDIR|directory)/)
  await retention.close()
  assert.ok(gauge('segments_here') >= 1, 'those that are here are counted all the same')
  rmdirSync(path)
  writeFileSync(path, 'left by a failed removal')
  chmodSync(path, 0o600)
  fixture.start()
  await untilPass(fixture, () => stillHere(auditPath, segments).length === 0, 'all to leave')
  assert.ok((await listed(auditPath)).slice(0, 2).every(({ left }) => left !== null))
})
