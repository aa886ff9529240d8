import { whenReady } from '@plat/core'
import {
  type Denial,
  deny,
  type Identity,
  isDenial,
  modelScopeOf,
  type Parsed,
  type RequestContext,
} from '../../call/index.ts'
import { type BatchReader, isBatchEndpoint, judgedUpload, readBatches } from './batches/read.ts'
import { dialectOf } from './dialects/all.ts'
import {
  type CallersModels,
  googleAddress,
  noEndpoint,
  only,
  readGoogle,
  readShared,
  sharedEndpoint,
} from './directory/address.ts'
import { isFilesEndpoint, readFiles } from './stored/read.ts'
import { scopeFault, useModelBody } from './uploads/request.ts'
import type { UploadLimits } from './uploads/spool.ts'

export { type BatchReader, createBatchReader, type JudgeOptions, type JudgingPlane } from './batches/reader.ts'

/** `/llm/<route>/v1/<endpoint>`; names of routes are those of docs/spec/gateway.md and `<ns>.<agent>`. */
const PATH = /^\/llm\/([A-Za-z0-9][A-Za-z0-9._-]{0,316})\/v1\/([A-Za-z0-9/._:-]{1,256})$/

/** Last part of the address of all routes for Anthropic's clients, which may be the name of a route. */
const ANTHROPIC = 'anthropic'

const nothing = { name: null, body: null, parent: null } as const

interface ReadOptions {
  readonly limits: UploadLimits
  readonly models: (scope: string) => CallersModels
  /** Null: batches are refused. */
  readonly batches: BatchReader | null
}

/** Names route, operation and model of a request. A route named `anthropic` keeps its address for callers that may use it. */
export function read(
  arrival: RequestContext,
  identity: Identity,
  { limits, models, batches }: ReadOptions,
): Parsed | Denial | Promise<Parsed | Denial> {
  const { method, path } = arrival.wire
  const unread = { arrival, identity, limits }
  const chats = () => models(modelScopeOf('model.generate'))
  const readStored = (at: { readonly endpoint: string; readonly route: string | null }) => {
    if (isBatchEndpoint(at.endpoint))
      return batches === null
        ? deny('not_built', 'batches cannot be judged here')
        : readBatches(unread, at, { models, reader: batches })
    if (!isFilesEndpoint(at.endpoint)) return null
    const judged = (parsed: Parsed | Denial) =>
      isDenial(parsed) || batches === null ? parsed : judgedUpload(unread, parsed, batches)
    return whenReady(readFiles(unread, at, models), judged)
  }
  const google = googleAddress(path)
  if (google !== null) return readGoogle(unread, google, chats)
  const [, server, endpoint] = PATH.exec(path) ?? []
  const shared = server === undefined || server === ANTHROPIC ? sharedEndpoint(path) : null
  if (shared !== null) {
    if (server === undefined || !chats().has(server))
      return readStored({ endpoint: shared, route: null }) ?? readShared(unread, shared, models)
  }
  if (server === undefined || endpoint === undefined)
    return deny('unknown_route', 'the path is /llm/v1/ or /llm/<route>/v1/ and an endpoint such as chat/completions')
  const stored = readStored({ endpoint, route: server })
  if (stored !== null) return stored
  const dialect = dialectOf(endpoint)
  if (dialect !== null) {
    if (method !== 'POST') return only('POST', method)
    const { operation, method: named } = dialect
    return (
      scopeFault(identity, dialect, server) ??
      useModelBody(unread, dialect, (body) => {
        return { operation, method: named, server, name: body.request.model, body, parent: null }
      })
    )
  }
  if (endpoint === 'models' || endpoint.startsWith('models/')) {
    if (method !== 'GET') return only('GET', method)
    const name = endpoint === 'models' ? null : endpoint.slice('models/'.length)
    if (name !== null && !isModelId(name)) return deny('not_found', 'no such model')
    return { ...nothing, operation: 'model.info', method: 'models', server, name }
  }
  return noEndpoint(endpoint)
}

/** The name becomes a path upstream, under the gateway's key: it must not lead out of `/models/`. */
function isModelId(name: string): boolean {
  return name.split('/').every((part) => part !== '' && !/^\.+$/.test(part))
}
