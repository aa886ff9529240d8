import { isObject, type JsonObject } from '@plat/core'
import type { Denial } from '../../../call/index.ts'
import { isSet, objectFault, wrong } from './checks.ts'
import type { Dialect } from './dialect.ts'
import { messages } from './messages.ts'
import { openai } from './openai.ts'
import type { ShapeFault } from './shapes.ts'

/** Members of a batch of OpenAI's API. */
const MEMBERS: ReadonlySet<string> = new Set([
  'input_file_id',
  'endpoint',
  'completion_window',
  'metadata',
  'output_expires_after',
])

const common = {
  operation: 'model.batch',
  asksUsage: false,
  request: (bytes: Uint8Array) => ({
    model: null,
    stream: false,
    usageAsked: false,
    maxTokens: null,
    maxTokensMember: null,
    choices: 1,
    inputTokensAtMost: bytes.byteLength,
    bounded: true,
  }),
  maxTokensMember: () => null,
  answerFault: batchFault,
  report: () => null,
  hides: () => false,
} satisfies Partial<Dialect>

/** `batches` of OpenAI's API: its requests are in a file. */
export const batches: Dialect = {
  ...openai,
  ...common,
  method: 'batches',
  generated: ['metadata', 'errors', 'error'],
  fault: (value) => memberFault(value) ?? objectFault(value, 'metadata') ?? objectFault(value, 'output_expires_after'),
}

/** `messages/batches` of Anthropic's API: its requests are in the body, of which the gateway keeps their number and digest. */
export const messageBatches: Dialect = {
  ...messages,
  ...common,
  method: 'messages/batches',
  generated: ['error'],
  fault: () => null,
}

/** The dialect of the requests for batches. */
export function dialectOfBatch(method: string): Dialect {
  return method.startsWith(messageBatches.method) ? messageBatches : batches
}

function memberFault(value: JsonObject): Denial | null {
  const other = Object.keys(value).find((name) => !MEMBERS.has(name))
  if (other !== undefined) return wrong(other.slice(0, 64), 'is not a member of a batch')
  if (typeof value.input_file_id !== 'string') return wrong('input_file_id', 'must name a file of the purpose batch')
  if (typeof value.endpoint !== 'string') return wrong('endpoint', 'must be a text')
  return isSet(value.completion_window) && typeof value.completion_window !== 'string'
    ? wrong('completion_window', 'must be a text')
    : null
}

/** A batch, or what says that it was deleted. */
function batchFault(value: JsonObject): ShapeFault {
  return isObject(value) && typeof value.id === 'string' && value.id !== '' ? null : 'a batch without an id'
}
