import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/compile'

const closed = { additionalProperties: false } as const

/** Why nothing more is released. */
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

/** What the broker established from evidence: the attestation result (RFC 9334), as it stands in claim `plat_substrate`. */
const resultSchema = Type.Record(Type.String(), Type.String())

/** Who redeemed a release, and the token that was given last. */
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
 * A session's claim to a token: what it is to say, and what evidence releases it. Times are milliseconds since the epoch. It is a line of the
 * journal as it stands, a whole one with each change.
 */
const releaseSchema = Type.Object(
  {
    id: Type.String(),
    name: Type.Object({ namespace: Type.String(), agent: Type.String(), session: Type.String() }, closed),
    /** What the broker is asked to mint, in the members of `POST /v1/token`. */
    session: Type.Record(Type.String(), Type.Unknown()),
    /** The appraisal policy for attestation results (RFC 9334). An empty list or null: the broker's own rules are enough. */
    checks: Type.Array(Type.String()),
    digests: Type.Array(Type.String()),
    isolation: Type.Union([Type.String(), Type.Null()]),
    redeemBy: Type.Number(),
    /** End of the session; null: none. */
    endsAt: Type.Union([Type.Number(), Type.Null()]),
    /** Null: nobody has redeemed it. */
    holder: Type.Union([holderSchema, Type.Null()]),
    /** Null: it is pending, or under renewal. */
    ended: Type.Union([Type.Object({ why: Type.Enum(END_REASONS), at: Type.Number() }, closed), Type.Null()]),
  },
  closed,
)

export type Release = Readonly<Static<typeof releaseSchema>>
export type Result = Readonly<Static<typeof resultSchema>>
export type EndReason = (typeof END_REASONS)[number]

const isRelease = Compile(releaseSchema)

/** Reads a line of the journal. Throws for one that this version does not know. */
export function decodeRelease(event: unknown): Release {
  if (isRelease.Check(event)) return event
  throw new Error('the journal of releases holds what this version does not know')
}

/** The one text that names a session: none of the three may hold a slash. */
export function sessionKey({ namespace, agent, session }: Release['name']): string {
  return `${namespace}/${agent}/${session}`
}

export function stateOf({ holder, ended }: Release): 'pending' | 'active' | 'ended' {
  if (ended !== null) return 'ended'
  return holder === null ? 'pending' : 'active'
}
