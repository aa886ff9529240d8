import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { ownerKey, ownerOf } from '../builtin/memory/owner.ts'
import { agentOf, callerOf, type Identity } from '../call/facts.ts'
import { testIdentity } from '../call/testing/identity.ts'
import { sessionKey } from '../decide/approvals/store/book.ts'
import type { RevocationTarget } from '../decide/revocations/format.ts'
import { RevocationList } from '../decide/revocations/list.ts'

/** A principal, and one that differs from it in exactly one part. */
const ada: Identity = {
  ...testIdentity,
  tenant: 't',
  user: 'ada',
  issuer: 'https://one.example',
  verified: 'requester',
}
const OTHERS = {
  tenant: { ...ada, tenant: 'other' },
  namespace: { ...ada, namespace: 'other' },
  agent: { ...ada, agent: 'other' },
  session: { ...ada, session: 'other' },
  user: { ...ada, user: 'other' },
  issuer: { ...ada, issuer: 'https://two.example' },
  token: { ...ada, jti: 'other' },
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

/** Each decision about principals: how it names one, and which parts distinguish two principals. */
const DECISIONS: Readonly<Record<string, readonly [name: (who: Identity) => string, parts: readonly Part[]]>> = {
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
}

for (const [decision, [nameOf, parts]] of Object.entries(DECISIONS)) {
  test(`${decision}: principals that differ in one part are distinguished by exactly its parts`, () => {
    for (const [part, other] of Object.entries(OTHERS)) {
      const isPart = parts.some((one) => one === part)
      assert.equal(nameOf(other) !== nameOf(ada), isPart, part)
    }
  })
}
