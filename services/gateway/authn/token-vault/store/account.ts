import { hash } from 'node:crypto'
import { unknownEvent } from '@plat/state'
import Type, { type Static } from 'typebox'
import { Check } from 'typebox/value'

const closed = { additionalProperties: false } as const
const orNull = <T extends Type.TSchema>(of: T) => Type.Union([of, Type.Null()])

/** Owner and provider of an account. `realm`: the namespace of the user name. */
const ownerMembers = {
  tenant: Type.String(),
  realm: Type.String(),
  user: Type.String(),
  provider: Type.String(),
}

const accountSchema = Type.Object(
  {
    ...ownerMembers,
    /** Granted scopes. */
    scopes: Type.Array(Type.String()),
    /** Expiry of the access token, in milliseconds since the epoch; null: unknown. */
    expiresAt: orNull(Type.Number()),
    /** Time of the consent, in milliseconds since the epoch. */
    connectedAt: Type.Number(),
  },
  closed,
)

/** Tokens encrypted with a data key, which is wrapped by the key `kid`. Texts are base64url. */
const sealedSchema = Type.Object(
  { kid: Type.String(), key: Type.String(), nonce: Type.String(), data: Type.String() },
  closed,
)

const tokensSchema = Type.Object(
  {
    accessToken: Type.String({ minLength: 1 }),
    refreshToken: orNull(Type.String()),
    /** Milliseconds since the epoch; null: unknown. */
    expiresAt: orNull(Type.Number()),
    /** Milliseconds since the epoch. */
    obtainedAt: Type.Number(),
    scopes: Type.Array(Type.String()),
    /** Login tokens from which assertions are requested (grant `id-jag`); null for other grants. */
    login: orNull(Type.Object({ idToken: Type.String(), refreshToken: orNull(Type.String()) }, closed)),
  },
  closed,
)

const eventSchema = Type.Union([
  Type.Object({ t: Type.Literal('kept'), account: accountSchema, sealed: sealedSchema }, closed),
  Type.Object(
    { t: Type.Literal('removed'), why: Type.Enum(['disconnected', 'removed', 'revoked', 'invalid_grant']) },
    closed,
  ),
])

export type Owner = Pick<Account, keyof typeof ownerMembers>

/** The public part of an account. */
export type Account = Readonly<Static<typeof accountSchema>>
export type Sealed = Readonly<Static<typeof sealedSchema>>
/** The secret part of an account, for the provider and the allowed servers only. */
export type Tokens = Readonly<Static<typeof tokensSchema>>
export type LoginTokens = NonNullable<Tokens['login']>

export type VaultEvent = Static<typeof eventSchema>
/** Why an account was removed: by its user, an admin, a revocation, or the provider. */
export type RemovedWhy = Extract<VaultEvent, { t: 'removed' }>['why']

/** A JSON array, so that parts cannot run into each other. */
export function ownerKey({ tenant, realm, user, provider }: Owner): string {
  return JSON.stringify([tenant, realm, user, provider])
}

/** Journal key and admin API id of an account. Does not reveal its owner. */
export function accountId(owner: Owner): string {
  return hash('sha256', ownerKey(owner), 'base64url')
}

/** Reads an event from the journal. Throws for one that this version does not know. */
export function decodeEvent(value: unknown): VaultEvent {
  if (Check(eventSchema, value)) return value
  throw unknownEvent('an event of the token vault', value)
}

export function isTokens(value: unknown): value is Tokens {
  return Check(tokensSchema, value)
}
