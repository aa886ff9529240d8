import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { buildInfo, systemClock, systemIds } from '@plat/core'
import type { RecordPlace } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { createGatewayMetrics } from '../../metrics.ts'
import { createAudit } from './index.ts'

async function opened(auditPath: string, since: RecordPlace | null) {
  const config = {
    ...{ auditPath, auditCheckpointKey: '', auditCheckpointPQKey: '', auditCheckpointPublicKeyFiles: [] },
    ...{ auditCheckpointIntervalSeconds: 60, auditCheckpointEvery: 1000 },
    ...{ auditSegmentBytes: 65_536, auditSegmentSeconds: 0, auditVerifyBytesPerSecond: 100_000_000 },
  }
  const metrics = createGatewayMetrics(buildInfo('gateway'), config)
  const seen: number[] = []
  const onRecord = (_record: Buffer, { seq }: RecordPlace) => void seen.push(seq)
  const parts = { config, env: {}, clock: systemClock, ids: systemIds(systemClock), log: silentLog, metrics }
  const audit = await createAudit({ ...parts, since, onRecord })
  const gauge = (name: string) =>
    Number(new RegExp(`^plat_gateway_audit_${name} (\\S+)$`, 'm').exec(metrics.expose())?.[1])
  return { audit, seen, gauge }
}

/** The response of `GET /v1/audit/head`. */
async function headOf({ routes }: { readonly routes: object }) {
  type Handler = (request: object, reply: object, caller: object) => Promise<object>
  const handlers = new Map<string, Handler>()
  const on = (route: string, handler: Handler) => void handlers.set(route, handler)
  Reflect.apply(Reflect.get(routes, 'mount'), routes, [{ on }])
  return JSON.parse(JSON.stringify(await handlers.get('GET /v1/audit/head')?.({ query: {} }, {}, { tenant: () => '' })))
}

test('a start reads no sealed segment, keeps recent records, and damage in one is found while it serves', async () => {
  // Shows D3.audit.auditVerifyBytesPerSecond, D3.metric.plat_gateway_audit_verified_segments and
  // D3.metric.plat_gateway_audit_damaged_segments. D3.flag.verify-ledger starts without a position.
  const path = join(tempFolder(), 'audit.jsonl')
  const segments = () => readdirSync(join(path, '..')).filter((name) => /\.\d{20}\.jsonl$/.test(name))
  const first = await opened(path, null)
  const ledger = first.audit.ledgers.of('')
  await ledger.append({ kind: 'approval', approval: 'a-1' })
  while (segments().length < 3) {
    await Promise.all(Array.from({ length: 50 }, () => ledger.append({ kind: 'admin', reason: 'x'.repeat(200) })))
  }
  await first.audit.close()
  const position = ledger.head()
  const [oldest = ''] = segments()
  const file = join(path, '..', oldest)
  const [, missing = ''] = segments()
  writeFileSync(file, readFileSync(file, 'utf8').replace('a-1', 'a-2'))

  const second = await opened(path, { seq: position.seq, hash: position.hash })
  const active = Number(/(\d{20})/.exec(segments().at(-1) ?? '')?.[1])
  assert.ok((second.seen[0] ?? 0) > active, 'no record of a sealed segment was read')
  assert.deepEqual(
    second.audit.recent().map(({ approval }) => approval),
    ['a-1'],
  )
  await until(async () => second.gauge('verified_segments') === 2, 'the verification of the others')
  assert.equal(second.gauge('damaged_segments'), 1)
  const { damagedSegments } = await headOf(second.audit)
  assert.deepEqual([damagedSegments.length, damagedSegments[0].first], [1, 0])
  assert.match(damagedSegments[0].problem, /the hash does not match the line/)
  await second.audit.close()
  rmSync(join(path, '..', missing))
  const third = await opened(path, { seq: position.seq, hash: position.hash })
  await until(async () => third.gauge('damaged_segments') === 2, 'the missing segment')
  assert.match((await headOf(third.audit)).damagedSegments[1].problem, /is missing: restore it from a copy/)
  await third.audit.close()
  await assert.rejects(opened(path, null), /is a sealed segment/)
})

test('the ledger of another tenant is not opened', async () => {
  const path = join(tempFolder(), 'audit.jsonl')
  const { audit } = await opened(path, null)
  await audit.ledgers.of('').append({ kind: 'alert', reason: ',"tenant":"red",' })
  const moved = join(tempFolder(), 'audit.jsonl')
  writeFileSync(moved, readFileSync(path))
  const opening = { tenant: 'red', path: moved, since: null, onRecord() {} }
  await assert.rejects(audit.open(opening), /is of the fleet, not of tenant red: was it moved\?/)
  await audit.close()
})
