import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock, systemIds } from '@plat/core'
import { LedgerSequence, verifyEvidence } from '@plat/ledger'
import { tempFolder } from '@plat/testkit/local'
import { EvidenceMaker } from '../evidence/objects/make.ts'
import { EvidenceStore } from '../evidence/objects/store.ts'
import { DAY_MS, type Fixture, fill, setUp, stillHere, untilPass } from './testing/retention.ts'

/** Segments that are due, and a store of evidence objects about their records. */
async function withEvidence(t: TestContext) {
  const dir = join(tempFolder(), 'evidence')
  const store = new EvidenceStore(dir)
  const fixture = await setUp(t, { archive: 'delete', days: 1, evidence: (segments) => store.needs(segments) })
  const { auditPath, audit } = fixture
  const segments = await fill(fixture, 5)
  const parts = { auditPath, checkpoints: audit.checkpoints, store, clock: systemClock, ids: systemIds(systemClock) }
  const maker = new EvidenceMaker({ ...parts, maxBytes: 10_000_000 })
  /** Makes an object about one of the sessions, each of which has one record. */
  const make = async (seq: number, about: Readonly<Record<string, string>> = {}) => {
    const range = Object.keys(about).length === 0 ? { from: seq, to: seq } : { from: null, to: null }
    const { head } = await maker.make({ about, ...range, by: 'token:admin' })
    return join(dir, `${head.id}.evidence`)
  }
  return { fixture, segments, make }
}

async function replace(object: string, content: string | Buffer): Promise<void> {
  await chmod(object, 0o600)
  await writeFile(object, content)
}

async function lineOf(auditPath: string, seq: number): Promise<string> {
  await using sequence = await LedgerSequence.open(auditPath)
  return String((await sequence.lineOf(seq))?.line)
}

async function start({ audit, clock, ...fixture }: Fixture) {
  await audit.checkpoints.last(true)
  await clock.advance(DAY_MS + 3_600_000)
  return fixture.start()
}

test('only the segments with records of evidence objects stay, and the objects verify', async (t) => {
  const { fixture, segments, make } = await withEvidence(t)
  const { auditPath, key, gauge } = fixture
  const [, second, , fourth] = segments
  // The search for the session covers the whole ledger, and finds one record in the fourth segment.
  const inFourth = (fourth?.first ?? 0) + 2
  const session = JSON.parse(await lineOf(auditPath, inFourth)).rec.session
  const objects = [
    await make((second?.first ?? 0) + 1),
    await make(0, { namespace: 'default', agent: 'assistant', session }),
  ]
  await start(fixture)
  await untilPass(fixture, () => stillHere(auditPath, segments).length === 2, 'the others to leave')
  await untilPass(fixture, () => gauge('segments_held') === 2, 'the count of those that stay')
  assert.deepEqual(stillHere(auditPath, segments), [second?.file, fourth?.file])
  for (const object of objects) {
    const found = await verifyEvidence(readFileSync(object), {
      keys: [key.signer.publicKey],
      hmacKey: null,
      logKeys: null,
    })
    assert.ok(typeof found !== 'string', String(found))
  }
})

test('an evidence object that cannot be read keeps all segments, until it is restored', async (t) => {
  const { fixture, segments, make } = await withEvidence(t)
  const { auditPath, clock, gauge, logged } = fixture
  const object = await make((segments[0]?.first ?? 0) + 1)
  const bytes = readFileSync(object)
  const whole = bytes.toString()
  const changes = [
    whole.replace('"evidence":1', '"evidence":2'),
    whole.slice(0, 100),
    '',
    whole.replace(/"seq":1,/g, '"seq":2,'),
    whole.slice(0, -2),
  ]
  await replace(object, changes[0] ?? '')
  await start(fixture)
  for (const [index, changed] of changes.entries()) {
    assert.notEqual(changed, whole)
    await replace(object, changed)
    await untilPass(fixture, () => gauge('retention_failures_total') > index, `the failure of ${index}`)
    await clock.advance(60_000)
    assert.equal(stillHere(auditPath, segments).length, segments.length, `change ${index}`)
  }
  const lines = logged.filter((line) => /cannot leave, will retry/.test(line))
  assert.match(
    lines.join('\n'),
    /\.evidence is unreadable: its first line is not a head of an evidence object: restore it from a copy, or move it/,
  )
  await replace(object, bytes)
  await untilPass(fixture, () => stillHere(auditPath, segments).length === 1, 'the others to leave')
  assert.deepEqual(stillHere(auditPath, segments), [segments[0]?.file])
})
