import {
  type Call,
  type Denial,
  deny,
  earlierContent,
  type Identity,
  type StoredContent,
  storedContent,
} from '../../../call/index.ts'
import type { RouteEndpoint } from '../endpoint.ts'

/** Owners of what providers store. */
export interface Owners {
  owns(identity: Identity, account: string, id: string): boolean
  /** Returns the taint labels of stored content. */
  labelsOf(account: string, id: string): readonly string[]
}

/** Stored content that a request names. */
export interface Named {
  /** Accounts of the route in which the caller owns all of it; null: nothing is named. */
  readonly accounts: ReadonlySet<string> | null
  /** Taint labels of it. */
  readonly labels: readonly string[]
}

const NOTHING: Named = { accounts: null, labels: [] }

/** Most names in one request: their owners and labels are looked up at once, in each account of the route. */
export const MAX_NAMES = 1000

/** Returns what a request names, or the first name that the caller does not own; a denial for too many names. */
export function namedIn(
  call: Call<'identity'>,
  { endpoints }: { readonly endpoints: readonly Pick<RouteEndpoint, 'account'>[] },
  owners: Owners,
): Named | StoredContent | Denial {
  const { body, method } = call
  const { identity } = call.facts
  const names = distinct([...storedContent(body?.nested ?? body?.value), ...earlierContent(body?.value, method)])
  if (names.length === 0) return NOTHING
  const excess = names[MAX_NAMES]
  if (excess !== undefined) return tooMany(excess)
  let accounts = [...new Set(endpoints.map(({ account }) => account))]
  const labels = new Set<string>()
  for (const named of names) {
    accounts = accounts.filter((account) => owners.owns(identity, account, named.id))
    if (accounts.length === 0) return named
    for (const account of accounts) for (const label of owners.labelsOf(account, named.id)) labels.add(label)
  }
  return { accounts: new Set(accounts), labels: [...labels] }
}

function distinct(names: readonly StoredContent[]): readonly StoredContent[] {
  const byId = new Map<string, StoredContent>()
  for (const named of names) if (!byId.has(named.id)) byId.set(named.id, named)
  return [...byId.values()]
}

function tooMany({ param }: StoredContent): Denial {
  const reason = `${param} names more content at the provider than the ${MAX_NAMES} pieces that one request may name: send the content itself`
  return deny('invalid_request', reason, { data: { param } })
}
