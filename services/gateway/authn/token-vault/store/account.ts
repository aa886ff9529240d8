import { hash } from 'node:crypto'
import Type, { type Static } from 'typebox'
import { Check } from 'typebox/value'

const closed = { additionalProperties: false } as const
const orNull = <T extends Type.TSchema>(of: T) => Type.Union([of, Type.Null()])

/** Whose account it is, and where. `realm` says whose names of users these are. */
const ownerMembers = {
  tenant: Type.String(),
  realm: Type.String(),
  user: Type.String(),
  provider: Type.String(),
}

const accountSchema = Type.Object(
  {
    ...ownerMembers,
    /** What the provider has granted. */
    scopes: Type.Array(Type.String()),
    /** When the access token ends, in milliseconds since the epoch; null: the provider does not say. */
    expiresAt: orNull(Type.Number()),
    /** When its user consented, in milliseconds since the epoch. */
    connectedAt: Type.Number(),
  },
  closed,
)

/** Tokens under a key of their own, which is wrapped by the key `kid`; texts are base64url. */
const sealedSchema = Type.Object(
  { kid: Type.String(), key: Type.String(), nonce: Type.String(), data: Type.String() },
  closed,
)

const tokensSchema = Type.Object(
  {
    accessToken: Type.String({ minLength: 1 }),
    refreshToken: orNull(Type.String()),
    /** Milliseconds since the epoch; null: the provider does not say. */
    expiresAt: orNull(Type.Number()),
    /** Milliseconds since the epoch. */
    obtainedAt: Type.Number(),
    scopes: Type.Array(Type.String()),
    /** What the identity provider knows the user by: from it the next token is got (grant `id-jag`); null for every other grant. */
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

export interface Owner {
  readonly tenant: string
  readonly realm: string
  readonly user: string
  readonly provider: string
}

/** What may be told of an account. */
export type Account = Readonly<Static<typeof accountSchema>>
export type Sealed = Readonly<Static<typeof sealedSchema>>
/** What may be told to nobody but the provider and the servers that it is for. */
export type Tokens = Readonly<Static<typeof tokensSchema>>
export type LoginTokens = NonNullable<Tokens['login']>

/** What happened to one account, in the order of its journal key. */
export type VaultEvent = Static<typeof eventSchema>
/** Why an account is gone: its user, an admin, a kill switch, or the provider said so. */
export type RemovedWhy = Extract<VaultEvent, { t: 'removed' }>['why']

/** As a list in JSON the parts cannot be shifted into each other. */
export function ownerKey({ tenant, realm, user, provider }: Owner): string {
  return JSON.stringify([tenant, realm, user, provider])
}

/** The journal key of an account, and its name in the admin API: says nothing of whose it is. */
export function accountId(owner: Owner): string {
  return hash('sha256', ownerKey(owner), 'base64url')
}

/** Reads an event from the journal. Throws for one that this version does not know. */
export function decodeEvent(value: unknown): VaultEvent {
  if (Check(eventSchema, value)) return value
  throw new Error('the journal holds an event of the token vault that is not known in this version')
}

export function isTokens(value: unknown): value is Tokens {
  return Check(tokensSchema, value)
}
