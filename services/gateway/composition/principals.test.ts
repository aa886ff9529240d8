import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { SharedPool, TestClock } from '@plat/core'
import type { RuleMatch } from '@plat/resources/rendered'
import { createMemoryJournal } from '@plat/state'
import { testProver } from '@plat/testkit/dpop'
import { marksOf } from '../admin/people.ts'
import { may, principalOf } from '../admin/roles.ts'
import { DpopGate } from '../authn/identity/dpop.ts'
import { personOf } from '../authn/token-vault/owner.ts'
import { ownerKey as accountKey } from '../authn/token-vault/store/account.ts'
import { ownerKey, ownerOf } from '../builtin/memory/owner.ts'
import { Bindings } from '../call/bindings/bindings.ts'
import type { BindingEvent } from '../call/bindings/events.ts'
import { agentOf, callerOf, type Identity } from '../call/facts.ts'
import { testTarget } from '../call/testing/call.ts'
import { testIdentity } from '../call/testing/identity.ts'
import { scopeOf } from '../decide/approvals/grants/scope.ts'
import { digestOf } from '../decide/approvals/question/digest.ts'
import { sessionKey } from '../decide/approvals/store/book.ts'
import { callOf } from '../decide/approvals/testing/call.ts'
import { BudgetTable, type Match } from '../decide/budgets/caps/table.ts'
import { allOf, conditionsOf } from '../decide/policy/rules/conditions.ts'
import { rateOf } from '../decide/policy/rules/rates.ts'
import type { RevocationTarget } from '../decide/revocations/format.ts'
import { RevocationList } from '../decide/revocations/list.ts'
import { bindingOf } from '../planes/mcp/seal/seal.ts'

/** A principal, and one that differs from it in exactly one part. */
const ada: Identity = {
  ...testIdentity,
  tenant: 't',
  user: 'ada',
  groups: ['staff'],
  issuer: 'https://one.example',
  verified: 'requester',
  jkt: 'own',
}
const OTHERS = {
  tenant: { ...ada, tenant: 'other' },
  namespace: { ...ada, namespace: 'other' },
  agent: { ...ada, agent: 'other' },
  session: { ...ada, session: 'other' },
  user: { ...ada, user: 'other' },
  issuer: { ...ada, issuer: 'https://two.example' },
  token: { ...ada, jti: 'other' },
  groups: { ...ada, groups: ['others'] },
  tier: { ...ada, tier: 'other' },
  key: { ...ada, jkt: 'other' },
} as const
type Part = keyof typeof OTHERS

const clock = new TestClock()
const issuers = new Set([ada.issuer, OTHERS.issuer.issuer])

/** The name by which a store of memory of this scope knows a caller. */
function memoryOf(scope: 'agent' | 'session' | 'user') {
  const limits = { retentionMs: 1, maxItems: 1, maxItemBytes: 1, dlpProfile: '', taints: [] }
  return (who: Identity) => {
    const owner = ownerOf({ namespace: who.namespace, name: 'notes', scope, ...limits }, who, issuers)
    return typeof owner === 'string' ? assert.fail(owner) : ownerKey(owner)
  }
}

/** Whether a revocation of Ada by this target refuses a caller. */
function revokes(target: RevocationTarget) {
  const list = new RevocationList()
  list.add({ id: 'r', target, mode: 'revoke', reason: '', createdAt: '2026-01-01T00:00:00Z', expiresAt: null })
  return (who: Identity) => String(list.judge(who, clock) !== null)
}

/** Whether the pending approvals of a session are withdrawn. */
function ends(target: RevocationTarget) {
  const list = new RevocationList()
  list.add({ id: 'r', target, mode: 'revoke', reason: '', createdAt: '2026-01-01T00:00:00Z', expiresAt: null })
  return (who: Identity) => String(list.hasEnded(who, clock))
}

/** Whether a rule of policies with this `match` is for a caller. */
function ruled(match: RuleMatch) {
  const target = { ...testTarget, server: 'notes' }
  const question = { target, tool: null, operation: 'mcp.call', method: 'tools/call', taints: [], sinks: [] } as const
  const holds = allOf(conditionsOf(match)) ?? assert.fail('no condition')
  return (identity: Identity) => String(holds({ ...question, identity, args: null, now: 0 }))
}

/** The counter of a rate limit of a rule. */
function rated(per: 'session' | 'agent' | 'user' | 'group' | 'namespace') {
  const rate = rateOf({ count: 1, seconds: 60, per }, { policy: 'p', rule: 'r' })
  const question = { target: testTarget, tool: null, operation: 'mcp.call', method: 'tools/call' } as const
  return (identity: Identity) =>
    rate({ ...question, identity, taints: [], sinks: [], args: null, now: 0 })
      .map(({ key }) => key)
      .join()
}

/** The keys under which budgets with this selector count a caller; empty: it is not selected. */
function budgeted(match: Match, window: 'session' | 'day' = 'day') {
  const cap = { id: 'b', source: null, scope: 'agent', window, unit: 'micros', amount: 1, alerts: [] } as const
  const table = new BudgetTable(null, [{ cap, match }])
  return (who: Identity) =>
    table
      .matching(who)
      .map(({ key }) => key)
      .join()
}

/** The keys under which a template counts a caller. */
function budgetedEach(per: 'session' | 'agent' | 'user' | 'group') {
  const cap = { id: 'b', source: null, scope: per, window: 'day', unit: 'micros', amount: 1, alerts: [] } as const
  const table = new BudgetTable(null, [{ cap, match: {}, each: { per, names: null, except: [] } }])
  return (who: Identity) =>
    table
      .matching(who)
      .map(({ key }) => key)
      .join()
}

/** The connected account of a caller. */
function accountOf(isolateExternalIssuers: boolean) {
  const rules = {
    realm: 'staff',
    trustedIssuers: issuers,
    externalUserIssuers: issuers,
    isolateExternalIssuers,
    allowUnverifiedPrincipal: false,
  }
  return (who: Identity) => {
    const person = personOf(who, rules)
    return typeof person === 'string'
      ? assert.fail(person)
      : accountKey({ ...person, tenant: who.tenant, provider: 'p' })
  }
}

/** The roles that a person with these names has at the admin API, everywhere or in a namespace. */
function rolesBy(entry: string, place: 'everywhere' | 'namespace') {
  const table = { viewer: [entry] }
  const grants = {
    people: {},
    ...(place === 'everywhere'
      ? { roles: table, namespaceRoles: {} }
      : { roles: {}, namespaceRoles: { [ada.namespace]: table } }),
  }
  return ({ user, groups, namespace }: Identity) =>
    String(may(principalOf({ user: user ?? '', groups }, grants), 'viewer', namespace))
}

/** A call of a principal, as approvals cover it. */
function decidedCall(identity: Identity) {
  const call = callOf({})
  return { ...call, facts: { ...call.facts, identity } }
}
const approvedCall = async (who: Identity) => (await digestOf(decidedCall(who), 'r')) ?? assert.fail()
const approvedSession = (who: Identity) => scopeOf(decidedCall(who), []) ?? assert.fail()

/** Owner of a task that an agent gave to Ada. */
async function taskOwner() {
  const bindings = await Bindings.open({
    journal: createMemoryJournal<BindingEvent>(() => clock.now()),
    clock,
    pool: new SharedPool({ name: 'task_bindings' }),
    onFault: (error) => assert.fail(String(error)),
  })
  await bindings.bind({ identity: ada, server: 'a2a/default/b', call: 'c' }, 'task', 't')
  return (who: Identity) => String(bindings.owns(who, 'a2a/default/b', 'task', 't'))
}

/** Whether a caller whose token is bound to a key is accepted with a proof by Ada's key. */
async function proves(who: Identity): Promise<string> {
  const publicURL = 'https://gateway.example'
  const config = { require: true, publicURL, maxAgeSeconds: 60 }
  const gate = new DpopGate({ config, resourceBaseURL: '', clock, counted() {} })
  const prover = testProver({ clock })
  const wire = { method: 'POST', path: '/mcp/notes', query: '', headers: {}, body: Readable.from([]), remote: '' }
  const proof = prover.proof(`${publicURL}/mcp/notes`, 'token')
  const jkt = who.jkt === ada.jkt ? prover.jkt : who.jkt
  return String(await gate.ask(wire, { scheme: 'dpop', token: 'token', proof }, { ...who, jkt }))
}

const sealed = ['tenant', 'namespace', 'agent', 'session'] as const

/** Each decision about principals: how it names one, and which parts distinguish two principals. */
const DECISIONS: Readonly<
  Record<string, readonly [name: (who: Identity) => string | Promise<string>, parts: readonly Part[]]>
> = {
  'share of a pool by session': [callerOf, ['tenant', 'namespace', 'agent', 'session']],
  'share of a pool by agent': [agentOf, ['tenant', 'namespace', 'agent']],
  'pending approvals of a session': [sessionKey, ['tenant', 'namespace', 'agent', 'session']],
  'memory of an agent': [memoryOf('agent'), ['tenant', 'namespace', 'agent']],
  'memory of a session': [memoryOf('session'), ['tenant', 'namespace', 'agent', 'session']],
  'memory of a user': [memoryOf('user'), ['tenant', 'namespace', 'user', 'issuer']],
  'revocation of a token': [revokes({ jti: ada.jti }), ['token']],
  'revocation of a session': [
    revokes({ session: `${ada.namespace}/${ada.agent}/${ada.session}` }),
    ['namespace', 'agent', 'session'],
  ],
  'revocation of an agent': [revokes({ agent: `${ada.namespace}/${ada.agent}` }), ['namespace', 'agent']],
  'revocation of a namespace': [revokes({ namespace: ada.namespace }), ['namespace']],
  'revocation of a tenant': [revokes({ tenant: ada.tenant }), ['tenant']],
  // A user is revoked under this name at every issuer: more callers are refused, never fewer.
  'revocation of a user': [revokes({ user: 'ada' }), ['user']],
  'revocation of a user of one issuer': [revokes({ user: `${ada.issuer}#ada` }), ['user', 'issuer']],
  'approval of a call': [approvedCall, ['tenant', 'namespace', 'agent', 'session', 'user', 'issuer']],
  'approval for a session': [approvedSession, ['tenant', 'namespace', 'agent', 'session', 'user', 'issuer']],
  'approvals withdrawn by session': [
    ends({ session: `${ada.namespace}/${ada.agent}/${ada.session}` }),
    ['namespace', 'agent', 'session'],
  ],
  'approvals withdrawn by agent': [ends({ agent: `${ada.namespace}/${ada.agent}` }), ['namespace', 'agent']],
  'approvals withdrawn by namespace': [ends({ namespace: ada.namespace }), ['namespace']],
  'approvals withdrawn by tenant': [ends({ tenant: ada.tenant }), ['tenant']],
  'approvals withdrawn by user': [ends({ user: 'ada' }), ['user']],
  // Policies, rates and budgets go by names unless they name the issuer (docs/decisions/0153).
  'policy match by name of an agent': [ruled({ agents: [ada.agent] }), ['agent']],
  'policy match by namespace and agent': [ruled({ agents: [`${ada.namespace}/${ada.agent}`] }), ['namespace', 'agent']],
  'policy match by user': [ruled({ users: ['ada'] }), ['user']],
  'policy match by user of one issuer': [ruled({ users: [`${ada.issuer}#ada`] }), ['user', 'issuer']],
  'policy match by group': [ruled({ groups: ['staff'] }), ['groups']],
  'policy match by tier': [ruled({ tiers: [ada.tier] }), ['tier']],
  'rate of a rule by session': [rated('session'), ['tenant', 'namespace', 'agent', 'session']],
  'rate of a rule by agent': [rated('agent'), ['tenant', 'namespace', 'agent']],
  'rate of a rule by user': [rated('user'), ['tenant', 'user']],
  'rate of a rule by group': [rated('group'), ['tenant', 'groups']],
  'rate of a rule by namespace': [rated('namespace'), ['tenant', 'namespace']],
  'budget of an agent': [budgeted({ agents: [`${ada.namespace}/${ada.agent}`] }), ['namespace', 'agent']],
  'budget of a user': [budgeted({ users: ['ada'] }), ['user']],
  'budget of a user of one issuer': [budgeted({ users: [`${ada.issuer}#ada`] }), ['user', 'issuer']],
  'budget of a group': [budgeted({ groups: ['staff'] }), ['groups']],
  'budget of a namespace': [budgeted({ namespaces: [ada.namespace] }), ['namespace']],
  'budget of each session': [budgeted({}, 'session'), ['tenant', 'namespace', 'agent', 'session']],
  'template of each session': [budgetedEach('session'), ['tenant', 'namespace', 'agent', 'session']],
  'template of each agent': [budgetedEach('agent'), ['tenant', 'namespace', 'agent']],
  'template of each user': [budgetedEach('user'), ['tenant', 'user']],
  'template of each group': [budgetedEach('group'), ['tenant', 'groups']],
  'connected account': [accountOf(false), ['tenant', 'user']],
  'connected account where issuers are isolated': [accountOf(true), ['tenant', 'user', 'issuer']],
  'admin role of a user': [rolesBy('user:ada', 'everywhere'), ['user']],
  'admin role of a group': [rolesBy('staff', 'everywhere'), ['groups']],
  'admin role of a user in a namespace': [rolesBy('user:ada', 'namespace'), ['user', 'namespace']],
  'one person of several votes': [
    ({ user, issuer }) => marksOf({ names: [], subject: { issuer, subject: user ?? '' } }, {}).join(),
    ['user', 'issuer'],
  ],
  'owner of a task': [await taskOwner(), ['tenant', 'namespace', 'agent', 'user', 'issuer']],
  'sealed session of a server': [(who) => JSON.stringify(bindingOf('mcp-session', who, 'notes')), sealed],
  'proof of possession': [proves, ['key']],
}

for (const [decision, [nameOf, parts]] of Object.entries(DECISIONS)) {
  test(`${decision}: principals that differ in one part are distinguished by exactly its parts`, async () => {
    const own = await nameOf(ada)
    for (const [part, other] of Object.entries(OTHERS)) {
      const isPart = parts.some((one) => one === part)
      assert.equal((await nameOf(other)) !== own, isPart, part)
    }
  })
}
