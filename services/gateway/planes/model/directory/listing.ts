import { type Clock, member } from '@plat/core'
import { type Call, type Denial, isDenial, type Reply, type Snapshot } from '../../../call/index.ts'
import { dialectOfRequest } from '../dialects/all.ts'
import type { ModelEndpoint } from '../upstream/endpoint.ts'
import type { Forwarding } from '../upstream/forward.ts'
import type { CallersModels } from './address.ts'
import { listReply, modelReply } from './list.ts'

export type { CallersModels } from './address.ts'
export { type FileLists, listFiles } from './files.ts'

/** Time for the list of a provider, in milliseconds: without it the list has the models that the gateway knows. */
const PROVIDER_MS = 5_000
/** Most providers whose lists are requested for one call. */
const MAX_PROVIDERS = 8
/** Most models of one provider in a list, and the longest name. */
const MAX_MODELS = 1000
const MAX_NAME_CHARS = 256

/** Dependencies of lists. */
export interface ModelLists {
  readonly clock: Clock
  models(call: Call<'identity'>): CallersModels
  /** Returns the first endpoint of a route; null: the route no longer exists. */
  endpoint(snapshot: Snapshot, route: string): ModelEndpoint | null
  /** Returns a request that is not sent yet; null: the endpoint has no list, or no request may be sent to it now. */
  request(call: Call<'identity' | 'target' | 'hold'>, endpoint: ModelEndpoint): Promise<Forwarding | null>
}

type ListCall = Call<'identity' | 'target' | 'hold'>

/** Returns the models of all routes that the caller may use, or the one that it names. */
export async function listModels(lists: ModelLists, call: ListCall): Promise<Reply | Denial> {
  const models = lists.models(call)
  const dialect = dialectOfRequest(call.wire)
  if (call.name !== null) {
    const found = models.find(call.name)
    return isDenial(found) ? found : modelReply({ ...found, id: call.name }, dialect)
  }
  const routes = models.open.slice(0, MAX_PROVIDERS)
  const served = await Promise.all(routes.map((route) => servedBy(lists, call, route)))
  const ids = new Map(models.list().map((one) => [one.id, one]))
  for (const { route, provider, names } of served) {
    for (const name of names) {
      const id = models.nameOf(route, name)
      if (!ids.has(id)) ids.set(id, { id, provider })
    }
  }
  return listReply([...ids.values()], dialect, call.wire.query)
}

interface Served {
  readonly route: string
  readonly provider: string
  readonly names: readonly string[]
}

/** The models that the provider of a route lists; none while it does not respond. */
async function servedBy(lists: ModelLists, call: ListCall, route: string): Promise<Served> {
  const endpoint = lists.endpoint(call.snapshot, route)
  const nothing = { route, provider: endpoint?.provider ?? '', names: [] }
  const forwarding = endpoint === null ? null : await lists.request(call, endpoint)
  if (forwarding === null) return nothing
  const cancel = lists.clock.after(PROVIDER_MS, () => forwarding.expire())
  const reply = await forwarding.run().finally(cancel)
  return isDenial(reply) ? nothing : { ...nothing, names: namesIn(reply) }
}

function namesIn(reply: Reply): readonly string[] {
  if (reply.kind !== 'frames' || reply.head.status !== 200 || !Array.isArray(reply.frames)) return []
  const data = member(reply.frames[0]?.value, 'data')
  if (!Array.isArray(data)) return []
  return data.slice(0, MAX_MODELS).flatMap((one: unknown) => {
    const id = member(one, 'id')
    return typeof id === 'string' && id.length <= MAX_NAME_CHARS ? [id] : []
  })
}
