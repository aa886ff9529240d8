import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/compile'

const closed = { additionalProperties: false } as const

const END_REASONS = [
  'ended',
  'not_redeemed',
  'session_over',
  'lapsed',
  'evidence_refused',
  'measurement_refused',
  'platform_changed',
  'session_revoked',
] as const

/** Facts established by the broker from evidence: the attestation result (RFC 9334), as in claim `plat_substrate`. */
const resultSchema = Type.Record(Type.String(), Type.String())

/** Holder of a release, and its last token. */
const holderSchema = Type.Object(
  {
    /** RFC 7638 thumbprint of the key that the evidence was made for. */
    jkt: Type.String(),
    jti: Type.String(),
    tokenEndsAt: Type.Number(),
    result: resultSchema,
  },
  closed,
)

/**
 * A session's claim to a token: the token's content, and the evidence that releases it. Times are milliseconds since the epoch. Each change is
 * written to the journal as a whole.
 */
const releaseSchema = Type.Object(
  {
    id: Type.String(),
    name: Type.Object({ namespace: Type.String(), agent: Type.String(), session: Type.String() }, closed),
    /** Members of `POST /v1/token` for the broker. */
    session: Type.Record(Type.String(), Type.Unknown()),
    /** The appraisal policy for attestation results (RFC 9334). An empty list or null: the broker's own rules are enough. */
    checks: Type.Array(Type.String()),
    digests: Type.Array(Type.String()),
    isolation: Type.Union([Type.String(), Type.Null()]),
    redeemBy: Type.Number(),
    /** End of the session; null without one. */
    endsAt: Type.Union([Type.Number(), Type.Null()]),
    /** Null: not redeemed yet. */
    holder: Type.Union([holderSchema, Type.Null()]),
    /** Null: pending, or under renewal. */
    ended: Type.Union([Type.Object({ why: Type.Enum(END_REASONS), at: Type.Number() }, closed), Type.Null()]),
  },
  closed,
)

export type Release = Readonly<Static<typeof releaseSchema>>
export type Result = Readonly<Static<typeof resultSchema>>
export type EndReason = (typeof END_REASONS)[number]

const isRelease = Compile(releaseSchema)

/** Decodes a journal event. Throws on an unknown one. */
export function decodeRelease(event: unknown): Release {
  if (isRelease.Check(event)) return event
  throw new Error('the journal of releases holds what this version does not know')
}

/** Returns a unique text for a session: its names contain no slash. */
export function sessionKey({ namespace, agent, session }: Release['name']): string {
  return `${namespace}/${agent}/${session}`
}

export function stateOf({ holder, ended }: Release): 'pending' | 'active' | 'ended' {
  if (ended !== null) return 'ended'
  return holder === null ? 'pending' : 'active'
}
