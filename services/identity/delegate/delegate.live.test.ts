import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { testProver } from '@plat/testkit/dpop'
import { testIssuer } from '@plat/testkit/identity'
import type { StartIdentityOptions } from '../index.ts'
import { type BrokerResponse, claimsIn, jsonFile, startTestBroker, text } from '../testing/broker.ts'

const JWT = 'urn:ietf:params:oauth:token-type:jwt'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

const planner = {
  agent: 'planner',
  session: 'p1',
  user: 'ada',
  scopes: ['agents:helper', 'agents:team/remote', 'tools:secret'],
  tier: 'tier-0',
  groups: ['staff'],
  principalVerified: 'requester',
  inheritedTaints: ['web', 'both'],
}
const helper = {
  agent: 'helper',
  session: 'h1',
  user: 'bob',
  scopes: ['tools:a', 'tools:b'],
  tier: 'tier-2',
  groups: ['other'],
  inheritedTaints: ['both', 'mail'],
  parentSession: 'h0',
}

async function setUp(t: TestContext, options: Partial<StartIdentityOptions> = {}) {
  const broker = await startTestBroker(t, options)
  const delegate = (subject: string, actor: string, more: Readonly<Record<string, string>> = {}, proof?: string) =>
    broker.exchange({ subject_token: subject, actor_token: actor, ...more }, proof ?? null)
  return { ...broker, delegate, url: `${broker.identity.url}/v1/exchange` }
}

function assertRefused({ status, body }: BrokerResponse, expectedStatus: number, error: string): void {
  assert.deepEqual([status, body.error], [expectedStatus, error], JSON.stringify(body))
  assert.equal(typeof body.error_description, 'string')
}

test('the result is for the actor, on behalf of the delegator and its user', async (t) => {
  // Shows D1.service.delegates, D1.exchange.actor_token, D1.delegation.actorIsOwnSessionToken,
  // D1.delegation.subject.sessionToken, D1.delegation.subject.grantsAgent, D1.delegation.actChain,
  // D1.delegation.delegatorJti, D1.claim.actNested, D1.claim.plat_delegator_jti, D1.scope.agents.
  const { mint, delegate, verify, clock } = await setUp(t)
  const [a, b] = [await mint(planner), await mint(helper)]
  for (const types of [
    {},
    { subject_token_type: JWT, actor_token_type: JWT },
    { subject_token_type: ACCESS_TOKEN, actor_token_type: ACCESS_TOKEN, audience: 'plat-gateway' },
  ]) {
    const { status, body } = await delegate(a.token, b.token, types)
    assert.equal(status, 200, JSON.stringify(body))
    const { access_token, ...rest } = body
    assert.deepEqual(rest, {
      issued_token_type: JWT,
      token_type: 'Bearer',
      expires_in: 900,
      scope: 'tools:a tools:b',
    })
    const { jti, ...claims } = claimsIn(access_token)
    const now = clock.now() / 1000
    assert.deepEqual(claims, {
      iss: 'plat-identity',
      sub: b.spiffeId,
      aud: 'plat-gateway',
      iat: now,
      nbf: now,
      exp: now + 900,
      act: { sub: a.spiffeId, act: { sub: 'user:ada' } },
      scope: 'tools:a tools:b',
      plat_ns: 'default',
      plat_agent: 'helper',
      plat_session: 'h1',
      plat_tier: 'tier-2',
      plat_groups: 'staff',
      plat_principal_verified: 'requester',
      plat_parent_session: 'h0',
      plat_inherited_taints: 'web both mail',
      plat_delegator_jti: a.jti,
      plat_lineage: ['spiffe://plat.local/ns/default/agent/helper/session/h0'],
      plat_delegation_jtis: [a.jti, b.jti],
    })
    assert.ok(jti !== a.jti && jti !== b.jti)
    assert.equal((await verify(text(access_token))).valid, true)
  }
})

test('an actor that is not an own session token is refused', async (t) => {
  const exchangeConfig = await jsonFile({
    audiences: { 'plat-gateway': { allowedScopes: ['tools:a'], allowedNamespaces: ['default'] } },
  })
  const { mint, delegate, exchange, clock } = await setUp(t, { exchangeConfig })
  const [a, b] = [await mint(planner), await mint({ ...helper, scopes: ['tools:a', 'agents:planner'] })]
  assertRefused(await delegate(a.token, 'x'), 400, 'invalid_grant')
  assertRefused(await delegate(a.token, testIssuer({ clock }).token()), 400, 'invalid_grant')
  assertRefused(await delegate(a.token, (await mint({ ...helper, audience: 'other' })).token), 400, 'invalid_grant')
  const exchanged = await exchange({ subject_token: b.token, audience: 'plat-gateway' })
  assertRefused(await delegate(a.token, text(exchanged.body.access_token)), 400, 'invalid_grant')
  const delegated = await delegate(a.token, b.token)
  const third = await mint({ agent: 'third', session: 't', scopes: ['agents:helper'] })
  assertRefused(await delegate(third.token, text(delegated.body.access_token)), 400, 'invalid_grant')
})

test('a subject that is bad, exchanged or bound is refused', async (t) => {
  // Shows D1.delegation.subject.notBound.
  const exchangeConfig = await jsonFile({
    audiences: { 'plat-gateway': { allowedScopes: ['agents:helper'], allowedNamespaces: ['default'] } },
  })
  const { mint, delegate, exchange, bind, identity, clock } = await setUp(t, { exchangeConfig })
  const b = (await mint(helper)).token
  const prover = testProver({ clock })
  assertRefused(await delegate('x', b), 400, 'invalid_grant')
  assertRefused(await delegate((await mint({ ...planner, audience: 'other' })).token, b), 400, 'invalid_grant')
  assertRefused(await delegate((await mint({ ...planner, dpopJkt: prover.jkt })).token, b), 400, 'invalid_grant')
  const a = (await mint(planner)).token
  const exchanged = await exchange({ subject_token: a, audience: 'plat-gateway' })
  assertRefused(await delegate(text(exchanged.body.access_token), b), 400, 'invalid_grant')
  assert.equal((await delegate(a, b)).status, 200)
  await bind(a, prover.proof(`${identity.url}/v1/token/bind`, a))
  assertRefused(await delegate(a, b), 400, 'invalid_grant')
})

test('the subject has to grant the actor, in its namespace or by namespace and name', async (t) => {
  // Shows D1.delegation.subject.grantsAgentAcrossNamespaces.
  const { mint, delegate } = await setUp(t)
  const b = (await mint(helper)).token
  const remote = (await mint({ ...helper, namespace: 'team', agent: 'remote' })).token
  const granting = async (...scopes: string[]) => (await mint({ ...planner, scopes })).token
  assert.equal((await delegate(await granting('agents:default/helper'), b)).status, 200)
  assert.equal((await delegate(await granting('agents:team/remote'), remote)).status, 200)
  for (const scopes of [
    [],
    ['agents:other'],
    ['agents:*'],
    ['agents:help'],
    ['tools:helper'],
    ['agents:team/helper'],
  ]) {
    assertRefused(await delegate(await granting(...scopes), b), 400, 'invalid_scope')
  }
  // The short form names an agent of the subject's own namespace only.
  assertRefused(await delegate(await granting('agents:remote'), remote), 400, 'invalid_scope')
})

test('the result has the scope of the actor, narrowed if requested', async (t) => {
  const { mint, delegate } = await setUp(t)
  const a = (await mint(planner)).token
  const b = (await mint(helper)).token
  const { body } = await delegate(a, b, { scope: 'tools:b tools:secret' })
  assert.equal(body.scope, 'tools:b')
  assertRefused(await delegate(a, b, { scope: 'tools:secret' }), 400, 'invalid_scope')
  const unscoped = await delegate(a, (await mint({ ...helper, scopes: [] })).token)
  assert.deepEqual([unscoped.status, unscoped.body.scope], [200, ''])
  assert.ok(!('scope' in claimsIn(unscoped.body.access_token)))
})

test('only the default audience can be requested', async (t) => {
  // Shows D1.delegation.audienceDefault.
  const { mint, delegate } = await setUp(t)
  const [a, b] = [await mint(planner), await mint(helper)]
  assertRefused(await delegate(a.token, b.token, { audience: 'reports' }), 400, 'invalid_target')
})

test('an agent cannot delegate to itself, not to another of its sessions either', async (t) => {
  const { mint, delegate } = await setUp(t)
  const a = await mint({ ...planner, scopes: ['agents:planner', 'agents:default/planner'] })
  const sameAgent = await mint({ ...planner, session: 'p2' })
  assertRefused(await delegate(a.token, a.token), 400, 'invalid_grant')
  assertRefused(await delegate(a.token, sameAgent.token), 400, 'invalid_grant')
  const namesake = await mint({ ...planner, namespace: 'team', session: 'p2' })
  const crossing = await mint({ ...planner, scopes: ['agents:team/planner'] })
  assert.equal((await delegate(crossing.token, namesake.token)).status, 200)
})

test('the result lives as long as the least of 15 minutes, the request and both tokens', async (t) => {
  // Shows D1.delegation.lifetime, D1.limit.delegatedLifetime.
  const { mint, delegate } = await setUp(t)
  const lifetime = async (subjectTtl: number, actorTtl: number, requested = '') => {
    const a = (await mint({ ...planner, ttlSeconds: subjectTtl })).token
    const b = (await mint({ ...helper, ttlSeconds: actorTtl })).token
    return (await delegate(a, b, { requested_ttl_seconds: requested })).body.expires_in
  }
  assert.deepEqual(
    [await lifetime(3600, 3600), await lifetime(3600, 3600, '5'), await lifetime(3600, 3600, '3600')],
    [900, 5, 900],
  )
  assert.deepEqual([await lifetime(60, 3600), await lifetime(3600, 70)], [60, 70])
})

/** Delegates through agents `a0`, `a1`, …; answers the last token and the refusal, if there was one. */
async function chain(t: TestContext, length: number, options: Partial<StartIdentityOptions> = {}) {
  const broker = await setUp(t, options)
  const agent = (index: number) =>
    broker.mint({ agent: `a${index}`, session: `s${index}`, user: 'ada', scopes: [`agents:a${index + 1}`] })
  const minted = await Promise.all(Array.from({ length: length + 1 }, (_, index) => agent(index)))
  let token = minted[0]?.token ?? ''
  let answer: BrokerResponse | null = null
  for (const { token: actor } of minted.slice(1)) {
    answer = await broker.delegate(token, actor)
    if (answer.status !== 200) break
    token = text(answer.body.access_token)
  }
  assert.ok(answer !== null)
  return { broker, minted, token, answer }
}

test('five delegations make a chain, the sixth is refused', async (t) => {
  // Shows D1.delegation.depth, D1.limit.delegationDepth, D1.flag.max-delegation-depth.
  const five = await chain(t, 5)
  assert.equal(five.answer.status, 200)
  const { act, plat_delegator_jti, plat_delegation_jtis } = claimsIn(five.token)
  const ids = five.minted.map(({ spiffeId }) => spiffeId)
  assert.deepEqual(act, {
    sub: ids[4],
    act: { sub: ids[3], act: { sub: ids[2], act: { sub: ids[1], act: { sub: ids[0], act: { sub: 'user:ada' } } } } },
  })
  assert.ok(Array.isArray(plat_delegation_jtis))
  assert.equal(plat_delegation_jtis[0], plat_delegator_jti)
  for (const { jti } of five.minted) assert.ok(plat_delegation_jtis.includes(jti))
  assertRefused((await chain(t, 6)).answer, 400, 'invalid_grant')
  assertRefused((await chain(t, 1, { maxDelegationDepth: 0 })).answer, 400, 'invalid_grant')
  assert.equal((await chain(t, 15, { maxDelegationDepth: 15 })).answer.status, 200)
})

test('a delegated token may be exchanged, and the result keeps its delegators', async (t) => {
  const exchangeConfig = await jsonFile({
    audiences: { reports: { allowedScopes: ['tools:a'], allowedNamespaces: ['default'] } },
  })
  const { mint, delegate, exchange } = await setUp(t, { exchangeConfig })
  const delegated = (await delegate((await mint(planner)).token, (await mint(helper)).token)).body.access_token
  const { status, body } = await exchange({ subject_token: text(delegated), audience: 'reports' })
  assert.equal(status, 200)
  const [before, after] = [claimsIn(delegated), claimsIn(body.access_token)]
  for (const name of ['act', 'sub', 'plat_delegator_jti', 'plat_delegation_jtis', 'plat_inherited_taints']) {
    assert.deepEqual(after[name], before[name], name)
  }
  assert.equal(after.plat_parent_jti, before.jti)
})

test('a bound actor proves its key, and the result is bound to it', async (t) => {
  // Shows D1.delegation.boundActorNeedsProof.
  const { mint, delegate, bind, identity, url, clock } = await setUp(t)
  const prover = testProver({ clock })
  const a = (await mint(planner)).token
  const inToken = (await mint({ ...helper, dpopJkt: prover.jkt })).token
  const byRecord = (await mint(helper)).token
  await bind(byRecord, prover.proof(`${identity.url}/v1/token/bind`, byRecord))
  for (const b of [inToken, byRecord]) {
    assertRefused(await delegate(a, b), 400, 'invalid_dpop_proof')
    assertRefused(await delegate(a, b, {}, testProver({ clock }).proof(url, b)), 400, 'invalid_dpop_proof')
    assertRefused(await delegate(a, b, {}, prover.proof(url, a)), 400, 'invalid_dpop_proof')
    const { status, body } = await delegate(a, b, {}, prover.proof(url, b))
    assert.equal(status, 200)
    assert.deepEqual(claimsIn(body.access_token).cnf, { jkt: prover.jkt })
  }
})

test('the order of refusals is grant, target, scope, proof', async (t) => {
  const { mint, delegate, clock } = await setUp(t)
  const bound = { ...helper, dpopJkt: testProver({ clock }).jkt }
  const b = (await mint(bound)).token
  const a = (await mint(planner)).token
  const foreign = (await mint({ ...planner, scopes: [] })).token
  assertRefused(await delegate('x', b, { audience: 'reports' }), 400, 'invalid_grant')
  assertRefused(await delegate(foreign, b, { audience: 'reports' }), 400, 'invalid_target')
  assertRefused(await delegate(foreign, b), 400, 'invalid_scope')
  assertRefused(await delegate(a, b), 400, 'invalid_dpop_proof')
})

test('a delegation and its refusal are recorded with the chain, and without a token', async (t) => {
  const { mint, delegate, lines } = await setUp(t)
  const [a, b] = [await mint(planner), await mint(helper)]
  const { body } = await delegate(a.token, b.token)
  await delegate(a.token, b.token, { audience: 'reports' })
  const records = lines.filter((line) => line.includes('"event":"delegation"'))
  assert.equal(records.length, 2)
  const { jti } = claimsIn(body.access_token)
  for (const part of [text(jti), a.jti, a.spiffeId, b.spiffeId]) assert.ok(records[0]?.includes(part), part)
  assert.match(records[1] ?? '', /"code":"invalid_target"/)
  for (const token of [a.token, b.token, text(body.access_token)]) {
    assert.ok(!lines.join('').includes(token.split('.')[2] ?? '-'))
  }
})
