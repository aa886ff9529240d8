import {
  type Call,
  classOfSession,
  type Denial,
  deny,
  type Identity,
  labelsByTrust,
  type Target,
  unresolved,
} from '../../../call/index.ts'
import type { Route } from '../registry.ts'
import type { Owners } from './named.ts'

/** Owners of files. */
export interface FileOwners extends Owners {
  /** Returns why the caller could store no file now, or null. */
  refusalFor(identity: Identity): Denial | null
  ownsBatch(identity: Identity, account: string, id: string): boolean
  ownsResults(identity: Identity, account: string, id: string): boolean
  labelsOfBatch(account: string, id: string): readonly string[]
}

interface FileCall {
  readonly route: Route
  readonly owners: FileOwners
  /** Taint labels of the session. */
  readonly labels: readonly string[]
}

/** Resolves a request for files: to the first account of the route, or the one that stores the file. Policies see the endpoint as the tool. */
export function fileTarget(call: Call<'identity'>, { route, owners, labels }: FileCall): Target | Denial {
  const { method, name } = call
  const able = route.endpoints.filter(({ wire }) => wire.methods.has(method))
  const [first] = able
  if (first === undefined)
    return deny(
      'not_built',
      `${method} is not built yet in this version for the provider ${route.endpoints[0].provider}`,
    )
  const { identity } = call.facts
  const isResult = (account: string) => name !== null && owners.ownsResults(identity, account, name)
  const isOwned = (account: string, id: string) => owners.owns(identity, account, id) || isResult(account)
  const full = method === 'files' ? owners.refusalFor(identity) : null
  if (full !== null) return full
  const batch = call.body?.batch
  if (batch === undefined && isForBatches(call.body?.value))
    return deny('internal', 'the requests in the file were not judged')
  const storing = able.find(({ account }) =>
    batch === undefined ? name === null || isOwned(account, name) : account === batch.account,
  )
  // The same for a file of another caller, so that ids cannot be found out.
  if (storing === undefined) return deny('not_found', 'no such file')
  const brought = method === 'files/content' && name !== null ? owners.labelsOf(storing.account, name) : []
  return {
    ...unresolved,
    kind: 'model',
    key: route.name,
    server: route.server,
    tool: method,
    trust: 'trusted',
    labels: { ...labelsByTrust.trusted, taints: brought },
    dataClass: classOfSession(route.dataClass, [...labels, ...brought]),
    jurisdiction: storing.jurisdictionFor(null),
    accounts: new Set([storing.account]),
    ...(method === 'files/content' && isResult(storing.account) && { results: true as const }),
  }
}

function isForBatches(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'purpose' in value && value.purpose === 'batch'
}
