import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { generateKeyFiles } from '@plat/keys'
import { silentLog } from '@plat/process'
import { testProver } from '@plat/testkit/dpop'
import { tempFolder } from '@plat/testkit/local'
import { usePostgres } from '@plat/testkit/postgres/server'
import { testTransactions } from '@plat/testkit/tokens/transactions'
import type { ProofCheck } from '../proof/check.ts'
import { jsonFile, startTestBroker, text } from '../testing/broker.ts'
import { openState } from './open.ts'

const PUBLIC = 'https://id.example'
const TXN_TOKEN = 'urn:ietf:params:oauth:token-type:txn_token'

const postgres = usePostgres()

const check: ProofCheck = {
  name: 'test',
  nonce: 'required',
  verify: async () => ({ kind: 'established', substrate: { check: 'test' } }),
}

/** Two brokers with one key behind one public URL, on one database. */
async function replicas(t: TestContext) {
  const dir = tempFolder()
  const { keyPath } = await generateKeyFiles(dir)
  const dsnFile = path.join(dir, 'dsn')
  await writeFile(dsnFile, `${postgres.dsn}\n`)
  const transactions = testTransactions()
  const txnTokenKeys = [await jsonFile(transactions.jwks)]
  const start = async () => {
    const clock = new TestClock()
    const opened = await openState(dsnFile, { clock, ids: systemIds(clock), log: silentLog })
    t.after(() => opened.close())
    const { state } = opened
    return startTestBroker(t, { signingKey: keyPath, publicUrl: PUBLIC, checks: [check], txnTokenKeys, state })
  }
  const [one, other] = [await start(), await start()]
  const prover = testProver({ clock: one.clock })
  return { one, other, prover, transactions, bindUrl: `${PUBLIC}/v1/token/bind` }
}

test('of many binds of one token over two replicas exactly one wins', async (t) => {
  const { one, other, bindUrl } = await replicas(t)
  const { token } = await one.mint()
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, n) => {
      const prover = testProver({ clock: one.clock })
      return (n % 2 === 0 ? one : other).bind(token, prover.proof(bindUrl, token))
    }),
  )
  const statuses = answers.map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 200).length, 1, statuses.join(' '))
  assert.equal(statuses.filter((status) => status === 409).length, 39, statuses.join(' '))
})

test('a nonce that one replica issued can be used once, on any replica', async (t) => {
  const { one, other } = await replicas(t)
  const { body } = await one.post('/v1/proof/nonce', { check: 'test' })
  const mint = { namespace: 'n', agent: 'a', session: 's', proof: { check: 'test', nonce: body.nonce } }
  const tries = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? one : other).post('/v1/token', mint))
  const statuses = (await Promise.all(tries)).map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 200).length, 1, statuses.join(' '))
  assert.equal(statuses.filter((status) => status === 403).length, 19, statuses.join(' '))
})

test('a proof that one replica has seen is a replay on the other, and so is a bind', async (t) => {
  const { one, other, prover, bindUrl } = await replicas(t)
  const subject = (await one.mint({ agent: 'planner', scopes: ['agents:helper'] })).token
  const actor = (await one.mint({ agent: 'helper', dpopJkt: prover.jkt })).token
  const proof = prover.proof(`${PUBLIC}/v1/exchange`, actor)
  const requested = { subject_token: subject, actor_token: actor }
  assert.equal((await one.exchange(requested, proof)).status, 200)
  const again = await other.exchange(requested, proof)
  assert.deepEqual([again.status, again.body.error], [400, 'invalid_dpop_proof'])
  assert.match(text(again.body.error_description), /used before/)
  assert.equal((await one.bind(subject, prover.proof(bindUrl, subject))).status, 200)
  const bound = await other.bind(subject, prover.proof(bindUrl, subject))
  assert.deepEqual([bound.status, bound.body.error], [400, 'invalid_request'])
  const { body } = await other.post('/v1/introspect', { token: subject })
  assert.deepEqual([body.active, body.cnf], [true, { jkt: prover.jkt }])
})

test('a transaction is good once over all replicas; the identical request gets the same token from each', async (t) => {
  const { one, other, transactions } = await replicas(t)
  const actor = (await one.mint({ agent: 'helper', scopes: ['tools:a', 'tools:b'] })).token
  const now = one.clock.now() / 1000
  const subject = transactions.token({ iat: now, exp: now + 60 })
  const requested = { subject_token: subject, subject_token_type: TXN_TOKEN, actor_token: actor }
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? one : other).exchange(requested)),
  )
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
  assert.equal(new Set(answers.map(({ body }) => body.access_token)).size, 1)
  const recorded = [...one.lines, ...other.lines].filter((line) => line.includes('"event":"delegation"'))
  assert.ok(recorded.length >= 1)
  const changed = await other.exchange({ ...requested, scope: 'tools:a' })
  assert.deepEqual([changed.status, changed.body.error], [400, 'invalid_grant'])
})

test('while the database is away what needs it answers 503, and the rest goes on; then all is well again', async (t) => {
  const { one, prover, bindUrl } = await replicas(t)
  const { token } = await one.mint()
  await postgres.stop()
  try {
    assert.equal((await one.post('/v1/token', { namespace: 'n', agent: 'a', session: 's' })).status, 200)
    assert.equal((await one.verify(token)).valid, true)
    const nonce = await one.post('/v1/proof/nonce', { check: 'test' })
    assert.deepEqual([nonce.status, Object.keys(nonce.body)], [503, ['error']])
    const bind = await one.bind(token, prover.proof(bindUrl, token))
    assert.deepEqual([bind.status, bind.body.error], [503, 'temporarily_unavailable'])
    assert.match(bind.headers.get('www-authenticate') ?? '', /^DPoP algs="EdDSA ES256"/)
    const proof = { check: 'test', nonce: 'K7WJ2MZQ4XH3T6YBRNDCVEGPA5FLSU2I' }
    const mint = await one.post('/v1/token', { namespace: 'n', agent: 'a', session: 's', proof })
    assert.deepEqual([mint.status, Object.keys(mint.body)], [503, ['error']])
    assert.equal((await one.post('/v1/introspect', { token })).status, 503)
  } finally {
    await postgres.start()
  }
  assert.equal((await one.bind(token, prover.proof(bindUrl, token))).status, 200)
})
