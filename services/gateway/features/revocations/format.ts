import { hash } from 'node:crypto'
import { parseStrict } from '@plat/core'
import Type, { type Static, type TSchema } from 'typebox'
import { Check, Errors } from 'typebox/value'

/** Entries of the file, and break-glass entries; far above what is needed while tokens live for hours, and small in memory. */
export const MAX_REVOCATIONS = 100_000
/** Problems of a file that are told; more of them say nothing new. */
const PROBLEMS_TOLD = 20

const closed = { additionalProperties: false } as const
const NAME = '[A-Za-z0-9._-]{1,253}'
const named = (pattern: string) => Type.Optional(Type.String({ pattern: `^${pattern}$` }))
const anyText = () => Type.Optional(Type.String({ minLength: 1, maxLength: 512 }))
const time = () =>
  Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,9})?(Z|[+-]\\d{2}:\\d{2})$' })

/**
 * Who is meant: exactly one member. `session` is `<ns>/<agent>/<session>`, `agent` is `<ns>/<agent>`; a `jti` matches the token and
 * every token that was delegated or exchanged from it.
 */
const targetSchema = Type.Object(
  {
    jti: anyText(),
    session: named(`${NAME}/${NAME}/${NAME}`),
    agent: named(`${NAME}/${NAME}`),
    namespace: named(NAME),
    user: anyText(),
    tenant: anyText(),
    all: Type.Optional(Type.Literal(true)),
  },
  { ...closed, minProperties: 1, maxProperties: 1 },
)

/** What people may leave out: it is revoked, without words, until it is lifted. */
const askedMembers = {
  target: targetSchema,
  mode: Type.Optional(Type.Enum(['revoke', 'suspend'])),
  reason: Type.Optional(Type.String({ maxLength: 1024 })),
  expiresAt: Type.Optional(Type.Union([time(), Type.Null()])),
}

/** Body of `POST /v1/revocations`: an entry without `id` and `createdAt`. */
export const askedSchema = Type.Object(askedMembers, closed)

const entrySchema = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 256 }), createdAt: time(), ...askedMembers },
  closed,
)

/** Format `revocationsFile`. */
const fileSchema = Type.Object(
  { version: Type.Literal(1), revocations: Type.Array(entrySchema, { maxItems: MAX_REVOCATIONS }) },
  closed,
)

const eventSchema = Type.Union([
  Type.Object({ t: Type.Literal('revoked'), revocation: entrySchema }, closed),
  Type.Object({ t: Type.Literal('lifted') }, closed),
])

export type RevocationTarget = Static<typeof targetSchema>

/** One entry, with nothing left open. */
export interface Revocation {
  readonly id: string
  readonly target: RevocationTarget
  /** `suspend` is meant to be lifted; the caller is told so by another code. */
  readonly mode: 'revoke' | 'suspend'
  /** For people who read the list; never told to the caller. */
  readonly reason: string
  /** RFC 3339. */
  readonly createdAt: string
  /** RFC 3339; null: until it is lifted. */
  readonly expiresAt: string | null
}

/** What happened to one break-glass entry, in the order of its journal key: the entry's id. Who did it stands in the ledger. */
export type RevocationEvent = { readonly t: 'revoked'; readonly revocation: Revocation } | { readonly t: 'lifted' }

/** What a good file says. */
export interface DecodedFile {
  readonly entries: readonly Revocation[]
  /** Of its bytes, in hex: names the list in the ledger. */
  readonly sha256: string
}

/** Decodes a revocationsFile strictly; null is a missing one. One thing that is wrong refuses it as a whole, since half a list revokes too few. */
export function decodeFile(bytes: Uint8Array | null): DecodedFile | { readonly problems: string[] } {
  if (bytes === null) return { problems: ['no such file'] }
  let value: unknown
  try {
    value = parseStrict(bytes)
  } catch (error) {
    return { problems: [error instanceof Error ? error.message : 'is not JSON'] }
  }
  if (!Check(fileSchema, value)) return { problems: problemsOf(fileSchema, value) }
  const problems: string[] = []
  const ids = new Set<string>()
  for (const [at, { id, createdAt, expiresAt }] of value.revocations.entries()) {
    if (ids.has(id)) problems.push(`revocations[${at}].id: ${JSON.stringify(id)} stands twice`)
    if (isNoTime(createdAt)) problems.push(`revocations[${at}].createdAt: there is no such time`)
    if (isNoTime(expiresAt)) problems.push(`revocations[${at}].expiresAt: there is no such time`)
    ids.add(id)
  }
  if (problems.length > 0) return { problems: problems.slice(0, PROBLEMS_TOLD) }
  return { entries: value.revocations.map(whole), sha256: hash('sha256', bytes, 'hex') }
}

/** Reads an event from the journal. Throws for one that this version does not know: half a history revokes too few. */
export function decodeEvent(value: unknown): RevocationEvent {
  if (Check(eventSchema, value)) return value.t === 'lifted' ? value : { ...value, revocation: whole(value.revocation) }
  throw new Error('the journal holds a revocation event that is not known in this version')
}

/** Fills in what was left out. */
export function whole(entry: Static<typeof entrySchema>): Revocation {
  const { id, target, mode = 'revoke', reason = '', createdAt, expiresAt = null } = entry
  return { id, target, mode, reason, createdAt, expiresAt }
}

/** A text of the right form that names no time, such as the 99th of a month. */
export function isNoTime(text: string | null | undefined): boolean {
  return typeof text === 'string' && Number.isNaN(Date.parse(text))
}

function problemsOf(schema: TSchema, value: unknown): string[] {
  return Errors(schema, value)
    .slice(0, PROBLEMS_TOLD)
    .map(({ instancePath, message }) => {
      const path = instancePath
        .slice(1)
        .replaceAll(/\/(\d+)(?=\/|$)/g, '[$1]')
        .replaceAll('/', '.')
      return path === '' ? message : `${path}: ${message}`
    })
}
