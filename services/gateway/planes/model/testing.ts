import { readFile } from 'node:fs/promises'
import { SharedPool, systemClock, systemIds } from '@plat/core'
import { deny, isDenial } from '../../call/index.ts'
import { chat } from './dialects/chat.ts'
import type { Dialect } from './dialects/dialect.ts'
import type { CallersModels } from './directory/address.ts'
import type { ModelRoute } from './index.ts'
import { type ModelBody, readModelBody } from './request.ts'
import { Spool } from './uploads/spool.ts'
import type { Credentials, EndpointWire, ModelEndpoint } from './upstream/endpoint.ts'
import type { LatencyMeter } from './upstream/failover.ts'
import type { Circuits } from './upstream/forward.ts'

/** A provider with OpenAI's API. */
export const openaiWire: EndpointWire = {
  methods: new Set(['chat/completions', 'models']),
  native: new Set(['chat/completions', 'models']),
  speaks: 'openai',
  headers: {},
  defaults: {},
  perModel: false,
  pathOf: (method) => `/${method}`,
}

/** An endpoint without a key that serves every model under the name that the caller uses. */
export function endpointAt(upstream: string): ModelEndpoint {
  return {
    key: upstream,
    account: upstream,
    label: upstream,
    route: 'r',
    provider: 'openai',
    upstream,
    priceScopes: [],
    requestsPerMinute: null,
    wire: openaiWire,
    region: null,
    isReasoning: () => false,
    modelFor: (name) => name,
    jurisdictionFor: () => null,
  }
}

/** A route whose endpoints are tried in their order, without retries. */
export function routeTo(...endpoints: ModelRoute['endpoints']): ModelRoute {
  return { endpoints, balancing: 'order', retries: null, cache: null }
}

/** Measures nothing. */
export const noLatencies: LatencyMeter = { started() {}, ended() {} }

/** A caller that may use no route. */
export const noModels: CallersModels = {
  open: [],
  has: () => false,
  list: () => [],
  nameOf: (_, model) => model,
  find: () => deny('unknown_route', 'no such model'),
}

/** For endpoints without credentials. */
export const noCredentials: Credentials = { isReady: () => true, headers: () => ({}) }

/** Circuits that never open. */
export const alwaysClosed: Circuits = { isOpen: () => false, enter() {}, succeeded() {}, failed() {} }

/** The body of a valid request. */
export function bodyOf(value: object, dialect: Dialect = chat): ModelBody {
  const body = readModelBody(Buffer.from(JSON.stringify(value)), dialect)
  if (isDenial(body)) throw new Error(body.reason)
  return body
}

/** The outcomes in a ledger, in their order. */
export async function outcomesOf(auditPath: string) {
  const lines = (await readFile(auditPath, 'utf8')).split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line).rec).filter((record) => record.kind === 'outcome')
}

/** Every request with files is too large. */
export const noUploads = {
  spool: new Spool({ dir: '', pool: new SharedPool({ name: 'upload_bytes', total: 0 }), ids: systemIds(systemClock) }),
  maxUploadBytes: 0,
  onSpoolFault() {},
  files: { filesOf: () => [], batchesOf: () => [] },
}
