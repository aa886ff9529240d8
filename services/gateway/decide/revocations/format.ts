import { hash } from 'node:crypto'
import { isObject, parseStrict } from '@plat/core'
import { type JournalSpec, unknownEvent } from '@plat/state'
import Type, { type Static, type TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { Errors } from 'typebox/value'

/**
 * Maximum number of entries, in the file and of break-glass entries: far above the need while tokens live for hours, and small in
 * memory.
 */
export const MAX_REVOCATIONS = 100_000
/** Maximum number of reported problems of a file. */
const PROBLEMS_TOLD = 20
/** Longest name of a member that a problem quotes; those of the format are far shorter. */
const NAME_CHARS_TOLD = 128

const closed = { additionalProperties: false } as const
/** As long as a token can state it: a session that cannot be named could not be revoked. */
const NAME = '[A-Za-z0-9._-]{1,2048}'
const named = (pattern: string) => Type.Optional(Type.String({ pattern: `^${pattern}$` }))
const anyText = () => Type.Optional(Type.String({ minLength: 1, maxLength: 512 }))
const time = () =>
  Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,9})?(Z|[+-]\\d{2}:\\d{2})$' })

/**
 * Target of a revocation: exactly one member. `session` is `<ns>/<agent>/<session>`, `agent` is `<ns>/<agent>`; `jti` matches the token
 * and all tokens delegated or exchanged from it.
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

/** Optional members. Defaults: mode revoke, empty reason, no end. */
const askedMembers = {
  target: targetSchema,
  mode: Type.Optional(Type.Enum(['revoke', 'suspend'])),
  reason: Type.Optional(Type.String({ maxLength: 1024 })),
  expiresAt: Type.Optional(Type.Union([time(), Type.Null()])),
}

/** Body of `POST /v1/revocations`: an entry without `id` and `createdAt`. */
export const revocationRequestSchema = Type.Object(askedMembers, closed)

/** Body of `POST /v1/revocations/preview`. */
export const previewSchema = Type.Object({ target: targetSchema }, closed)

const entrySchema = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 256 }), createdAt: time(), ...askedMembers },
  closed,
)

/** Format `revocationsFile` without its entries, which are checked one by one to bound the cost of many invalid ones. */
const fileSchema = Type.Object(
  { version: Type.Literal(1), revocations: Type.Array(Type.Unknown(), { maxItems: MAX_REVOCATIONS }) },
  closed,
)

const eventSchema = Type.Union([
  Type.Object({ t: Type.Literal('revoked'), revocation: entrySchema }, closed),
  Type.Object({ t: Type.Literal('lifted') }, closed),
])

const isFile = compiled(fileSchema)
const isEntry = compiled(entrySchema)
const isEvent = compiled(eventSchema)

export type RevocationTarget = Static<typeof targetSchema>

/** One entry with all defaults applied. */
export interface Revocation {
  readonly id: string
  readonly target: RevocationTarget
  /** `suspend` is meant to be lifted; callers get a different error code. */
  readonly mode: 'revoke' | 'suspend'
  /** For readers of the list; never sent to the caller. */
  readonly reason: string
  /** RFC 3339. */
  readonly createdAt: string
  /** RFC 3339; null: until it is lifted. */
  readonly expiresAt: string | null
}

/** An event of one break-glass entry. The journal key is the entry's id; who caused it is in the ledger. */
export type RevocationEvent = { readonly t: 'revoked'; readonly revocation: Revocation } | { readonly t: 'lifted' }

/** Content of a valid file. */
export interface DecodedFile {
  readonly entries: readonly Revocation[]
  /** Hex digest of its bytes, which identifies the list in the ledger. */
  readonly sha256: string
}

/**
 * Decodes a revocationsFile strictly; `bytes` is null if the file is missing. One problem rejects the whole file, because a partial list
 * would revoke too few.
 */
export function decodeFile(bytes: Uint8Array | null): DecodedFile | { readonly problems: string[] } {
  if (bytes === null) return { problems: ['no such file'] }
  let value: unknown
  try {
    value = parseStrict(bytes)
  } catch (error) {
    return { problems: [error instanceof Error ? error.message : 'is not JSON'] }
  }
  if (!isFile(value)) return { problems: fileProblems(value) }
  const byId = new Map<string, Revocation>()
  const problems: string[] = []
  for (const [at, entry] of value.revocations.entries()) {
    const path = `revocations[${at}]`
    if (!isEntry(entry)) problems.push(...entryProblems(entry, path))
    else if (isNoTime(entry.createdAt)) problems.push(`${path}.createdAt: not a valid time`)
    else if (isNoTime(entry.expiresAt)) problems.push(`${path}.expiresAt: not a valid time`)
    else if (byId.has(entry.id)) problems.push(`${path}.id: ${JSON.stringify(entry.id)} is a duplicate`)
    else byId.set(entry.id, whole(entry))
    if (problems.length >= PROBLEMS_TOLD) break
  }
  if (problems.length > 0) return { problems }
  return { entries: [...byId.values()], sha256: hash('sha256', bytes, 'hex') }
}

/** Decodes a journal event. Throws for one that this version does not know: an incomplete history revokes too few. */
export function decodeEvent(value: unknown): RevocationEvent {
  if (isEvent(value)) return value.t === 'lifted' ? value : { ...value, revocation: whole(value.revocation) }
  throw unknownEvent('a revocation event', value)
}

/** Applies the defaults. */
export function whole(entry: Static<typeof entrySchema>): Revocation {
  const { id, target, mode = 'revoke', reason = '', createdAt, expiresAt = null } = entry
  return { id, target, mode, reason, createdAt, expiresAt }
}

/** Whether a well-formed text is not a valid time, such as the 99th of a month. */
export function isNoTime(text: string | null | undefined): boolean {
  return typeof text === 'string' && Number.isNaN(Date.parse(text))
}

/** Compiles a check on first use. Long lists are decoded while calls wait, and a compiled check takes 1 µs instead of 20. */
function compiled<const T extends TSchema>(schema: T): (value: unknown) => value is Static<T> {
  let check: Validator<Record<never, never>, T> | null = null
  return (value): value is Static<T> => {
    check ??= Compile(schema)
    return check.Check(value)
  }
}

/** Problems of a file. Values with many members or entries, or with long names, are not described individually. */
function fileProblems(value: unknown): string[] {
  const object: { readonly revocations?: unknown } = isObject(value) ? value : {}
  const strange = strangeness(object)
  if (strange !== null) return [`must be an object of version and revocations, and ${strange}`]
  const entries = Array.isArray(object.revocations) ? object.revocations.length : 0
  return entries > MAX_REVOCATIONS
    ? [`revocations: must not have more than ${MAX_REVOCATIONS} items, and has ${entries}`]
    : problemsOf(fileSchema, Array.isArray(value) ? [] : value, '')
}

function entryProblems(entry: unknown, path: string): string[] {
  const { target }: { readonly target?: unknown } = typeof entry === 'object' && entry !== null ? entry : {}
  const strange = strangeness(entry)
  if (strange !== null) return [`${path}: ${strange}`]
  const strangeTarget = strangeness(target)
  return strangeTarget === null ? problemsOf(entrySchema, entry, path) : [`${path}.target: ${strangeTarget}`]
}

/** Why the members of a value are not described; null: they can be. */
function strangeness(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) return null
  if (Array.isArray(value)) return value.length > PROBLEMS_TOLD ? `is a list of ${value.length} elements` : null
  const names = Object.keys(value)
  if (names.length > PROBLEMS_TOLD) return `has ${names.length} members`
  const longest = names.reduce((most, { length }) => Math.max(most, length), 0)
  return longest > NAME_CHARS_TOLD ? `has a member whose name has ${longest} characters` : null
}

/** Problems of a value, each with its path below `path`. */
function problemsOf(schema: TSchema, value: unknown, path: string): string[] {
  return Errors(schema, value).map(({ instancePath, message }) => {
    const below = `${path}${instancePath.replaceAll('/', '.')}`
    return below === '' ? message : `${below.replace(/^\./, '')}: ${message}`
  })
}

/** The journal of break-glass revocations. */
export function revocationsJournal({
  revocationsJournalPath,
  auditPath,
}: {
  readonly revocationsJournalPath: string
  readonly auditPath: string
}): JournalSpec<RevocationEvent> {
  const path = revocationsJournalPath || `${auditPath}.revocations.jsonl`
  return { name: 'revocations', path, decode: decodeEvent }
}
