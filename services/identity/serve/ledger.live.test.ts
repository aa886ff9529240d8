import assert from 'node:assert/strict'
import { appendFile, readFile } from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { isObject, TestClock } from '@plat/core'
import { OAuthError } from '@plat/http/endpoints'
import { type Ledger, type Rec, verifyLedger } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { testProver } from '@plat/testkit/dpop'
import { tempFolder } from '@plat/testkit/local'
import { base, jsonFile, startTestBroker, text } from '../testing/broker.ts'
import { recordIssued, recordRefused } from './audit.ts'

const rule = { allowedScopes: ['tools:a'], allowedNamespaces: ['default'] }

async function setUp(t: TestContext) {
  const auditPath = path.join(tempFolder(), 'audit.jsonl')
  const exchangeConfig = await jsonFile({ audiences: { reports: rule } })
  return { auditPath, broker: await startTestBroker(t, { auditPath, exchangeConfig }) }
}

async function recordsIn(file: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return (await readFile(file, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => {
      const { rec }: { rec: unknown } = JSON.parse(line)
      assert.ok(isObject(rec))
      return rec
    })
}

test('with -audit-path each issuance and each refusal of an authenticated caller is a record that verifies', async (t) => {
  const { auditPath, broker } = await setUp(t)
  const { token, jti } = await broker.mint({ user: 'ada', scopes: ['tools:a', 'agents:helper'] })
  const actor = await broker.mint({ agent: 'helper', session: 'h1' })
  const prover = testProver({ clock: broker.clock })
  const url = `${broker.identity.url}/v1/token/bind`
  const exchanged = await broker.exchange({ subject_token: token, audience: 'reports' })
  const delegated = await broker.exchange({ subject_token: token, actor_token: actor.token })
  assert.equal((await broker.bind(token, prover.proof(url, token))).status, 200)
  // Refused: of a known caller twice, of an unknown one once.
  await broker.post('/v1/token', { ...base, ttlSeconds: -1 })
  await broker.exchange({ subject_token: token, audience: 'elsewhere' })
  await broker.exchange({ subject_token: 'x', audience: 'reports' })
  await broker.identity.close()
  const finding = await verifyLedger(auditPath)
  assert.equal(finding.verdict, 'valid', JSON.stringify(finding))
  const records = (await recordsIn(auditPath)).filter(({ kind }) => kind === 'decision')
  assert.deepEqual(
    records.map(({ op, action, code }) => [op, action, code]),
    [
      ['identity.mint', 'allow', undefined],
      ['identity.mint', 'allow', undefined],
      ['identity.exchange', 'allow', undefined],
      ['identity.delegation', 'allow', undefined],
      ['identity.bind', 'allow', undefined],
      ['identity.mint', 'deny', undefined],
      ['identity.exchange', 'deny', 'invalid_target'],
    ],
  )
  const [mint, , exchange, delegation] = records
  assert.deepEqual(
    [mint?.jti, mint?.namespace, mint?.agent, mint?.session, mint?.user, mint?.facts],
    [jti, 'default', 'assistant', 's1', 'ada', { scopes: ['tools:a', 'agents:helper'] }],
  )
  assert.deepEqual([exchange?.parent, exchange?.audience], [jti, 'reports'])
  assert.equal(delegation?.parent, jti)
  assert.ok(
    isObject(delegation.facts) &&
      isDeepStrictEqual(delegation.facts.chain, [`spiffe://plat.local/ns/default/agent/assistant/session/s1`]),
  )
  const whole = await readFile(auditPath, 'utf8')
  for (const secret of [token, actor.token, text(exchanged.body.access_token), text(delegated.body.access_token)]) {
    assert.ok(secret !== '' && !whole.includes(secret.split('.')[2] ?? secret))
  }
})

test('a ledger that is damaged, or that another broker writes, is not started over', async (t) => {
  const { auditPath, broker } = await setUp(t)
  await assert.rejects(startTestBroker(t, { auditPath }), /^Error: -audit-path: .*in use by another process/)
  await broker.mint()
  await broker.identity.close()
  await appendFile(auditPath, '{"hash":"x"}\n')
  await assert.rejects(startTestBroker(t, { auditPath }), /^Error: -audit-path: .*is damaged at line 3/)
})

test('while the ledger cannot be written nothing is issued, and a refusal stays a refusal', async () => {
  const appended: Rec[] = []
  const ledger: Ledger = {
    async append(record) {
      appended.push(record)
      throw new Error('no space left')
    },
    enter: (_, waiter) => waiter.failed(new Error('no space left')),
    head: () => ({ seq: 0, hash: '' }),
    health: 'poisoned',
    close: async () => {},
  }
  const parts = { log: silentLog, ledger, clock: new TestClock() }
  const facts = { jti: 'j', sub: 'spiffe://plat.local/ns/n/agent/a/session/s', user: null, scope: '' }
  await assert.rejects(
    async () => recordIssued(parts, 'mint', facts),
    (error) => error instanceof OAuthError && error.status === 503 && error.code === 'temporarily_unavailable',
  )
  recordRefused(parts, 'exchange', new OAuthError(400, 'invalid_target', 'no'), { jti: 'j' })
  recordRefused(parts, 'exchange', new OAuthError(400, 'invalid_grant', 'no'), {})
  assert.deepEqual(
    appended.map(({ action }) => action),
    ['allow', 'deny'],
  )
})
