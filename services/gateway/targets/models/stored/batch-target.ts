import {
  type Call,
  classOfSession,
  type Denial,
  deny,
  labelsByTrust,
  type Target,
  unresolved,
} from '../../../call/index.ts'
import type { Route } from '../registry.ts'
import type { FileOwners } from './file-target.ts'

interface BatchCall {
  readonly route: Route
  readonly owners: FileOwners
  /** Taint labels of the session. */
  readonly labels: readonly string[]
}

/** Resolves a request for batches: to the account that executes the batch. Policies see the endpoint as the tool. */
export function batchTarget(call: Call<'identity'>, { route, owners, labels }: BatchCall): Target | Denial {
  const { method, name, body } = call
  const { identity } = call.facts
  const able = route.endpoints.filter(({ wire }) => wire.native.has(method))
  const [first] = able
  if (first === undefined)
    return deny(
      'not_built',
      `${method} is not built yet in this version for the provider ${route.endpoints[0].provider}`,
    )
  const isCreated = method === 'batches' || method === 'messages/batches'
  const batch = body?.batch
  if (isCreated && batch === undefined) return deny('internal', 'the requests of the batch were not judged')
  // Its requests are judged when it is read, and not again after an approval.
  if (batch !== undefined && batch.snapshot !== call.snapshot)
    return deny('approval_stale', 'policies or configuration have changed since the batch was sent: send it again')
  const full = batch === undefined ? null : owners.refusalFor(identity)
  if (full !== null) return full
  const isOwner = ({ account }: (typeof able)[number]) =>
    batch === undefined ? name === null || owners.ownsBatch(identity, account, name) : account === batch.account
  const storing = able.find(isOwner)
  // The same for a batch of another caller, so that ids cannot be found out.
  if (storing === undefined) return deny('not_found', 'no such batch')
  const isResults = method === 'messages/batches/results'
  const brought = isResults && name !== null ? owners.labelsOfBatch(storing.account, name) : []
  const dataClass = classOfSession(batch?.dataClass ?? route.dataClass, [...labels, ...brought])
  return {
    ...unresolved,
    kind: 'model',
    key: route.name,
    server: route.server,
    tool: method,
    trust: 'trusted',
    labels: { ...labelsByTrust.trusted, taints: brought },
    dataClass,
    jurisdiction: batch?.jurisdiction ?? storing.jurisdictionFor(null),
    accounts: new Set([storing.account]),
    ...(isResults && { results: true as const }),
    ...(batch !== undefined && {
      requirements: { approval: null, presentedArguments: null, holds: batch.holds },
    }),
  }
}
