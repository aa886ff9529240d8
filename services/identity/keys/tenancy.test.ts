import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isObject, systemIds, TestClock } from '@plat/core'
import { ephemeralSigner, KeyServiceError, type Signer } from '@plat/keys'
import { silentLog } from '@plat/process'
import { testProver } from '@plat/testkit/dpop'
import { createProofVerifier, createVerifier, staticSource } from '@plat/tokens'
import { bindEndpoint } from '../bind/endpoint.ts'
import { readExchangeConfig } from '../exchange/config.ts'
import { exchangeEndpoint } from '../exchange/endpoint.ts'
import { defaultSettings } from '../flags.ts'
import { mintEndpoint } from '../mint/mint.ts'
import { createProofs } from '../proof/proofs.ts'
import { createRevocations } from '../sessions/revocations.ts'
import { createSessions } from '../sessions/sessions.ts'
import { memoryState } from '../state/state.ts'
import { text } from '../testing/broker.ts'
import { ask } from '../testing/endpoints.ts'
import type { Tenancy } from './tenancy.ts'

/** Two tenants, one a namespace; the key of a tenant can vanish. */
function setUp() {
  const clock = new TestClock()
  const ids = systemIds(clock)
  const keys = new Map<string, Signer>(['red', 'blue'].map((tenant) => [tenant, ephemeralSigner()]))
  const trusted = staticSource([...keys.values()].map((signer) => signer.publicKey))
  const tenancy: Tenancy = {
    tenantOf: (namespace) => namespace.split('-')[0] ?? null,
    signerFor: (namespace) => keys.get(namespace.split('-')[0] ?? '') ?? null,
    binding: (namespace) => (keys.has(namespace.split('-')[0] ?? '') ? 'bound' : 'unavailable'),
  }
  const log = silentLog
  const settings = { ...defaultSettings, publicUrl: 'https://id.example' }
  const verifier = createVerifier({ keys: trusted, audience: settings.audience, leewaySeconds: 0, clock })
  const sessions = createSessions(verifier, tenancy, createRevocations({ path: '', clock, log }))
  const rule = { allowedScopes: ['tools:a'], allowedNamespaces: ['red-1', 'blue-1'] }
  const audiences = readExchangeConfig(Buffer.from(JSON.stringify({ audiences: { reports: rule } })), 'x', [])
  const config = {
    audience: (name: string) => audiences.get(name) ?? null,
    audiences: () => audiences,
    close: () => {},
  }
  const state = memoryState({ clock, ids })
  const proofs = createProofVerifier({ clock, replays: state.replays })
  const issuing = { settings, sessions, tenancy, proofs, records: state.records, config, clock, ids, log }
  const mintProofs = createProofs([], { requireProof: false, nonces: state.nonces, log })
  const endpoints = {
    mint: mintEndpoint({ settings, tenancy, proofs: mintProofs, clock, ids, log }),
    bind: bindEndpoint(issuing),
    exchange: exchangeEndpoint({ ...issuing, transactions: null, once: state.once }),
  }
  const mint = async (namespace: string, agent: string) => {
    const scopes = ['tools:a', 'agents:red-2/b', 'agents:blue-1/b']
    const answer = await ask(endpoints.mint, { namespace, agent, session: 's', scopes })
    return text(isObject(answer) ? answer.token : '')
  }
  return { clock, keys, endpoints, mint }
}

function outcomeOf(answer: object): readonly unknown[] {
  return isObject(answer) ? [answer.status, answer.error] : []
}

test('a tenant whose key is missing gets nothing from any endpoint, and other tenants are unaffected', async () => {
  // Shows D1.error.token.503.tenantKey, D1.error.bind.503.tenantKey,
  // D1.error.exchange.503.temporarily_unavailable.
  const { clock, keys, endpoints, mint } = setUp()
  const [a, b] = [await mint('red-1', 'a'), await mint('red-2', 'b')]
  const other = await mint('blue-1', 'a')
  keys.delete('red')
  const minted = await ask(endpoints.mint, { namespace: 'red-1', agent: 'a', session: 's' })
  assert.equal(outcomeOf(minted)[0], 503)
  const dpop = testProver({ clock }).proof('https://id.example/v1/token/bind', a)
  const bound = await ask(endpoints.bind, {}, { authorization: `Bearer ${a}`, dpop })
  assert.deepEqual(outcomeOf(bound), [503, 'temporarily_unavailable'])
  const exchanged = await ask(endpoints.exchange, { subject_token: a, audience: 'reports' })
  assert.deepEqual(outcomeOf(exchanged), [503, 'temporarily_unavailable'])
  const delegated = await ask(endpoints.exchange, { subject_token: a, actor_token: b })
  assert.deepEqual(outcomeOf(delegated), [503, 'temporarily_unavailable'])
  assert.ok('access_token' in (await ask(endpoints.exchange, { subject_token: other, audience: 'reports' })))
})

test('a delegation stays within its tenant, across namespaces too', async () => {
  // Shows D1.delegation.sameTenant.
  const { endpoints, mint } = setUp()
  const a = await mint('red-1', 'a')
  const delegate = async (actor: string) => ask(endpoints.exchange, { subject_token: a, actor_token: actor })
  assert.ok('access_token' in (await delegate(await mint('red-2', 'b'))))
  assert.deepEqual(outcomeOf(await delegate(await mint('blue-1', 'b'))), [400, 'invalid_grant'])
})

test('a key service that does not sign makes every endpoint refuse with 503, and its token is issued once it signs again', async () => {
  const { clock, keys, endpoints, mint } = setUp()
  const [a, b] = [await mint('red-1', 'a'), await mint('red-2', 'b')]
  const local = keys.get('red') ?? assert.fail('no key')
  const namespaces: unknown[] = []
  let kind: KeyServiceError['kind'] | null = 'unavailable'
  keys.set('red', {
    ...local,
    async sign(bytes, caller) {
      namespaces.push(caller)
      if (kind !== null) throw new KeyServiceError(kind, 'secret detail of the key service')
      return await local.sign(bytes)
    },
  })
  const body = { namespace: 'red-1', agent: 'a', session: 's' }
  const bind = () => {
    const dpop = testProver({ clock }).proof('https://id.example/v1/token/bind', a)
    return ask(endpoints.bind, {}, { authorization: `Bearer ${a}`, dpop })
  }
  const exchange = () => ask(endpoints.exchange, { subject_token: a, audience: 'reports' })
  const delegate = () => ask(endpoints.exchange, { subject_token: a, actor_token: b })
  for (kind of ['unavailable', 'overloaded', 'refused'] as const) {
    const minted = await ask(endpoints.mint, body)
    assert.equal(outcomeOf(minted)[0], 503)
    for (const refused of [await bind(), await exchange(), await delegate()])
      assert.deepEqual(outcomeOf(refused), [503, 'temporarily_unavailable'])
    assert.ok(!JSON.stringify(minted).includes('secret detail'))
  }
  assert.deepEqual(new Set(namespaces), new Set(['red-1', 'red-2']), 'each namespace has its share of the queue')
  kind = null
  assert.ok(await mint('red-1', 'a'))
  for (const issued of [await exchange(), await delegate(), await bind()])
    assert.ok('access_token' in issued || 'token' in issued, JSON.stringify(issued))
})
