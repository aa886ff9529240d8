import { type Call, earlierContent, type Identity, type StoredContent, storedContent } from '../../../call/index.ts'
import type { Route } from '../registry.ts'

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

/** Returns what a request names, or the first name that the caller does not own. */
export function namedIn(call: Call<'identity'>, { endpoints }: Route, owners: Owners): Named | StoredContent {
  const { body, method } = call
  const { identity } = call.facts
  const earlier = earlierContent(body?.value, method)
  const stored = storedContent(body?.nested ?? body?.value)
  const [first] = stored.length > 0 ? stored : earlier
  if (first === undefined) return NOTHING
  let accounts = [...new Set(endpoints.map(({ account }) => account))]
  const labels = new Set<string>()
  for (const named of [...stored, ...earlier]) {
    accounts = accounts.filter((account) => owners.owns(identity, account, named.id))
    if (accounts.length === 0) return named
    for (const account of accounts) for (const label of owners.labelsOf(account, named.id)) labels.add(label)
  }
  return { accounts: new Set(accounts), labels: [...labels] }
}
