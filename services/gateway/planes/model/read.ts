import { type Arrival, type Denial, deny, isDenial, type Parsed } from '../../call/index.ts'
import { type BodyLimits, useJsonBytes } from '../wire/body.ts'
import { readModelBody } from './request.ts'

/** `/llm/<route>/v1/<endpoint>`; names of routes are those of document 3 and `<ns>.<agent>`. */
const PATH = /^\/llm\/([A-Za-z0-9][A-Za-z0-9._-]{0,316})\/v1\/([A-Za-z0-9/._:-]{1,256})$/

/** Endpoints of OpenAI's and Anthropic's APIs that clients may ask for and this version does not serve. */
const UNBUILT: ReadonlySet<string> = new Set([
  'completions',
  'responses',
  'embeddings',
  'messages',
  'messages/count_tokens',
])

const nothing = { name: null, body: null, parent: null } as const

/** Names route, operation and model of a request. */
export function read(arrival: Arrival, limits: BodyLimits): Parsed | Denial | Promise<Parsed | Denial> {
  const { method, path } = arrival.wire
  const [, server, endpoint] = PATH.exec(path) ?? []
  if (server === undefined || endpoint === undefined)
    return deny('unknown_route', 'the path is /llm/<route>/v1/ and an endpoint such as chat/completions')
  if (endpoint === 'chat/completions')
    return method === 'POST' ? readChat(arrival, server, limits) : only('POST', method)
  if (endpoint === 'models' || endpoint.startsWith('models/')) {
    if (method !== 'GET') return only('GET', method)
    const name = endpoint === 'models' ? null : endpoint.slice('models/'.length)
    if (name !== null && !isModelId(name)) return deny('not_found', 'no such model')
    return { ...nothing, operation: 'model.info', method: 'models', server, name }
  }
  if (UNBUILT.has(endpoint))
    return deny('not_built', `${endpoint} is not built yet in this version: use chat/completions`)
  return deny('not_found', `no endpoint ${endpoint}`)
}

/** The name becomes a path upstream, under the gateway's key: it must not lead out of `/models/`. */
function isModelId(name: string): boolean {
  return name.split('/').every((part) => part !== '' && !/^\.+$/.test(part))
}

function only(allow: string, method: string): Denial {
  return deny('method_not_allowed', `${method} is not a method of this endpoint`, { data: { allow } })
}

function readChat(arrival: Arrival, server: string, limits: BodyLimits): Denial | Promise<Parsed | Denial> {
  return useJsonBytes(arrival, limits, (bytes) => chatOf(server, bytes))
}

function chatOf(server: string, bytes: Uint8Array): Parsed | Denial {
  const body = readModelBody(bytes)
  if (isDenial(body)) return body
  const { model } = body.request
  return { operation: 'model.generate', method: 'chat/completions', server, name: model, body, parent: null }
}
