import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resource } from '../testing/resource.ts'
import { admit, isPlan } from './admission.ts'

const warmPool = { template: 'warm', size: 1 }
const settings = {
  gatewayUrl: 'http://g',
  attestationUrl: '',
  gatewayLabels: {},
  workspaceSize: '1Gi',
  browserImage: '',
  codeInterpreterImage: 'c',
}
const templateOf = (image: string, more: object = {}) => ({
  spec: { podTemplate: { spec: { containers: [{ name: 'agent', image }], ...more } } },
})

interface Case {
  readonly agent?: object
  readonly tier?: object
  readonly session?: object
  readonly parent?: ReturnType<typeof resource<'AgentSession'>>
  readonly template?: ReturnType<typeof templateOf> | null
}

function admitted({ agent = {}, tier = {}, session = {}, parent, template = null }: Case) {
  return admit({
    session: resource('AgentSession', 's', { agentRef: 'a', ...session }),
    parent,
    agent: resource('Agent', 'a', { image: 'i', tier: 't', tools: [{ name: 'notes' }], ...agent }),
    tier: resource('TrustTier', 't', tier),
    ...{ template, settings, currency: 'USD', home: 'plat-system' },
    ...{ parentClaim: null, snapshot: null, snapshotsServed: true },
  })
}

/** The mode of the plan, or the reason why there is none. */
function outcome(parts: Case): string {
  const answer = admitted(parts)
  return isPlan(answer) ? answer.mode : answer.reason
}

test('a session claims a warm pod that matches its Agent, and gets a dedicated pod otherwise', () => {
  // Shows D2.agent.workspace.sandboxOnly.
  const template = templateOf('i')
  const warm = { tier: { warmPool }, template }
  assert.equal(outcome(warm), 'claim')
  assert.equal(outcome({ template }), 'direct')
  assert.equal(outcome({ ...warm, template: null }), 'direct')
  assert.equal(outcome({ ...warm, template: templateOf('another') }), 'direct')
  // A warm pod without the isolation of the tier is none of it.
  const isolated = { warmPool, isolation: 'gvisor', runtimeClassName: 'gvisor' }
  assert.equal(outcome({ tier: isolated, template }), 'direct')
  assert.equal(outcome({ tier: isolated, template: templateOf('i', { runtimeClassName: 'gvisor' }) }), 'claim')
  for (const agent of [
    { workspace: { size: '1Gi' } },
    { command: ['node'] },
    { args: ['-v'] },
    { resources: { limits: { cpu: 1 } } },
    { profile: 'codeInterpreter' },
    { env: [{ name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } }] },
    { env: [{ name: 'A', valueFrom: { fileKeyRef: { volumeName: 'v', path: 'p', key: 'k' } } }] },
  ])
    assert.equal(outcome({ ...warm, agent }), 'direct', JSON.stringify(agent))
  const env = [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }]
  assert.equal(outcome({ ...warm, agent: { env } }), 'claim')
})

test('a fork names every session that it descends from, with the Agent of each', () => {
  const forkedFrom = (session: object, parent?: Case['parent']) => {
    const answer = admitted({ session, ...(parent !== undefined && { parent }) })
    return isPlan(answer) ? answer.forkedFrom : answer.message
  }
  const parent = resource('AgentSession', 'p', { agentRef: 'planner' })
  const fork = { fork: { parent: 'p' } }
  assert.deepEqual(forkedFrom({}), [])
  assert.deepEqual(forkedFrom(fork, parent), ['planner/p'])
  assert.deepEqual(forkedFrom(fork, { ...parent, status: { forkedFrom: ['first/f'] } }), ['planner/p', 'first/f'])
  assert.deepEqual(forkedFrom(fork), ['a/p'], 'of a parent that is gone only the name is known')
})

test('a session has the scopes of its Agent or some of them, and never others', () => {
  const scopesOf = (session: object) => {
    const answer = admitted({ session, agent: { model: { endpoint: 'https://llm.example' } } })
    return isPlan(answer) ? answer.scopes : answer.message
  }
  assert.deepEqual(scopesOf({}), ['tools:notes', 'models:team.a'])
  // Shows D2.agent.modelRoutes.
  const routed = admitted({ session: {}, agent: { modelRoutes: ['small', 'large'] } })
  assert.ok(isPlan(routed))
  assert.deepEqual(routed.scopes, ['tools:notes', 'models:small', 'models:large'])
  // Shows D2.agent.modelUses.
  const drawing = admitted({ session: {}, agent: { modelRoutes: ['small'], modelUses: ['images', 'audio'] } })
  assert.ok(isPlan(drawing))
  assert.deepEqual(drawing.scopes, ['tools:notes', 'models:small', 'models.images:small', 'models.audio:small'])
  assert.deepEqual(scopesOf({ scopes: ['tools:notes'] }), ['tools:notes'])
  assert.deepEqual(scopesOf({ scopes: [] }), [])
  assert.equal(scopesOf({ scopes: ['tools:notes', 'tools:other'] }), 'scopes: Agent a is not granted tools:other')
})

test('a session that a tier, a profile or a missing object prevents names it, and the fix', () => {
  assert.equal(outcome({ agent: { profile: 'browser' } }), 'ProfileNotServed')
  assert.equal(outcome({ agent: { profile: 'codeInterpreter' } }), 'direct')
  assert.equal(
    outcome({ agent: { profile: 'codeInterpreter' }, tier: { allowedProfiles: ['default'] } }),
    'ProfileNotAllowed',
  )
  assert.equal(outcome({ tier: { allowedProfiles: ['default'] } }), 'direct')
  const workspace = { size: '1Gi', volumeSnapshotClassName: 'fast' }
  assert.equal(outcome({ agent: { workspace }, session: { fork: { parent: 'p' } } }), 'ParentNotFound')
  assert.equal(outcome({ agent: { workspace } }), 'direct')
  const endpoint = { endpoint: 'https://llm.example', apiKeySecretRef: { name: 'llm', key: 'k' } }
  const env = [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'llm', key: 'k' } } }]
  assert.equal(outcome({ agent: { model: endpoint, env } }), 'AgentRefused')
  const volumes = [{ name: 'v', secret: { secretName: 'llm' } }]
  assert.equal(outcome({ agent: { model: endpoint }, tier: { podDefaults: { volumes } } }), 'TierRefused')
  assert.equal(outcome({ tier: { podDefaults: { volumes } } }), 'direct')
})

test('a tier that requires a proof gets no token for a pod that brings none', () => {
  const template = templateOf('i')
  const kubernetes = { warmPool, requireProof: ['kubernetes'] }
  assert.equal(outcome({ tier: kubernetes, template }), 'claim')
  assert.equal(outcome({ tier: kubernetes }), 'ProofRequired')
  assert.equal(outcome({ tier: { warmPool, requireProof: ['kubernetes', 'tee'] }, template }), 'ProofRequired')
  // Attested sessions get no token here at all.
  assert.equal(outcome({ tier: { requireProof: ['tee'], attested: true } }), 'direct')
})
