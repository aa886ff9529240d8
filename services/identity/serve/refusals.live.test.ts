import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { verifyLedger } from '@plat/ledger'
import { tempFolder } from '@plat/testkit/local'
import { jsonFile, startTestBroker } from '../testing/broker.ts'
import { RECORDED_PER_WINDOW } from './refusals.ts'

/** Refusals of the greedy session beyond its share. */
const MORE = 15
const WINDOW_MS = 60_000

test('a session whose exchanges are refused without end leaves its share of records, and another one its own', async (t) => {
  const auditPath = path.join(tempFolder(), 'audit.jsonl')
  const rule = { allowedScopes: ['tools:a'], allowedNamespaces: ['default'] }
  const broker = await startTestBroker(t, {
    auditPath,
    exchangeConfig: await jsonFile({ audiences: { reports: rule } }),
  })
  const greedy = await broker.mint({ session: 'greedy', scopes: ['tools:a'] })
  const modest = await broker.mint({ session: 'modest', scopes: ['tools:a'] })
  const refuse = async ({ token }: { readonly token: string }) => {
    const { status, body } = await broker.exchange({ subject_token: token, audience: 'elsewhere' })
    assert.deepEqual([status, body.error], [400, 'invalid_target'])
  }
  for (let count = 0; count < RECORDED_PER_WINDOW + MORE; count++) await refuse(greedy)
  await refuse(modest)
  await broker.clock.advance(WINDOW_MS)
  await refuse(greedy)
  await broker.identity.close()
  assert.equal((await verifyLedger(auditPath)).verdict, 'valid')
  const lines = (await readFile(auditPath, 'utf8')).trimEnd().split('\n')
  const denied = lines.map((line) => JSON.parse(line).rec).filter(({ action }) => action === 'deny')
  const of = (session: string) => denied.filter((one) => one.op === 'identity.exchange' && one.session === session)
  assert.equal(of('greedy').length, RECORDED_PER_WINDOW + 1)
  assert.equal(of('modest').length, 1)
  const [counted, ...more] = denied.filter(({ op }) => op === 'identity.refusals')
  assert.deepEqual([counted?.sub, counted?.count, more], [greedy.spiffeId, MORE, []])
  assert.deepEqual([counted?.namespace, counted?.session], ['default', 'greedy'], 'auditors of the namespace see it')
})
