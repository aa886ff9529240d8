import { Type } from 'typebox'
import { mapOf } from '../../check.ts'
import { closed, conditions, duration, flag, label, longCount, oneOf, text, texts } from '../common.ts'

const { Optional } = Type

/** Agent, user and permissions are fixed when a session is created: otherwise anyone who can edit it could become another user. */
const FIXED = ['agentRef', 'user', 'groups', 'principalVerified', 'scopes', 'ttl', 'fork'] as const

export const agentSessionSpecSchema = Type.Object(
  {
    agentRef: label('Agent of the same namespace.'),
    user: Optional(text('User that the session acts for.', { maxLength: 256 })),
    groups: Optional(texts('Verified groups of the user.', { maxItems: 32 })),
    principalVerified: Optional(oneOf(['requester', 'trustedCreator', 'idToken'], 'How the user was bound.')),
    scopes: Optional(texts('Scopes of the session, of those that its Agent may be granted; absent: all of them.')),
    ttl: Optional(duration('Lifetime.')),
    fork: Optional(
      Type.Object(
        {
          parent: Optional(text('Session that this one goes on from.', { maxLength: 63 })),
          root: Optional(text('First session of the chain.', { maxLength: 63 })),
          inheritTaints: Optional(flag('Begin with the taints of the parent.')),
        },
        { ...closed, description: 'Where the session comes from.' },
      ),
    ),
    suspend: Optional(flag('Stop the pod, and keep the session.')),
    cancel: Optional(flag('End the session for good.')),
  },
  {
    ...closed,
    'x-kubernetes-validations': FIXED.map((name) => ({
      rule: `has(self.${name}) == has(oldSelf.${name}) && (!has(self.${name}) || self.${name} == oldSelf.${name})`,
      message: `${name} cannot be changed`,
    })),
  },
)

/** Phases of a session; the last five are final (docs/spec/crds.md, "States and transitions"). */
export const SESSION_PHASES = [
  'Pending',
  'Preparing',
  'Running',
  'Suspended',
  'Succeeded',
  'Failed',
  'Expired',
  'Revoked',
  'Cancelled',
] as const

const ENDS: ReadonlySet<string> = new Set(['Succeeded', 'Failed', 'Expired', 'Revoked', 'Cancelled'])

/** Returns whether the session has ended. */
export function isTerminal(phase: string | undefined): boolean {
  return phase !== undefined && ENDS.has(phase)
}

const time = (description: string) => Type.String({ format: 'date-time', maxLength: 64, description })
const reference = (description: string) =>
  Type.Object(
    { name: text('Name.', { maxLength: 253 }), uid: text('UID.', { maxLength: 128 }) },
    { ...closed, description },
  )

/** `AgentSession.status`: the broker writes `podRef`, and for claimed pods `spiffeId` and `jti`; the operator writes the rest. */
export const agentSessionStatusSchema = Type.Object(
  {
    phase: Optional(oneOf([...SESSION_PHASES], 'Where the session is.')),
    conditions: Optional(conditions()),
    observedGeneration: Optional(longCount('Generation that the status was written for.')),
    mode: Optional(oneOf(['claim', 'direct'], 'Whether it claimed a warm pod, or has a separate one.')),
    scopes: Optional(texts('Scopes of its tokens.')),
    spiffeId: Optional(text('Its name.', { maxLength: 2048 })),
    jti: Optional(text('Its newest token.')),
    sandboxRef: Optional(reference('The Sandbox that it runs in.')),
    podRef: Optional(reference('The pod that has its token.')),
    env: Optional(mapOf(Type.String({ maxLength: 4096 }), { maxProperties: 256 })),
    inheritedTaints: Optional(texts('Taints of the parent.')),
    forkedFrom: Optional(
      texts('Sessions that it descends from, as <agent>/<session>, nearest first.', { maxItems: 16 }),
    ),
    startedAt: Optional(time('When it was admitted.')),
    expiresAt: Optional(time('When it ends at the latest.')),
    lastActivity: Optional(time('When its agent last called something.')),
  },
  closed,
)
