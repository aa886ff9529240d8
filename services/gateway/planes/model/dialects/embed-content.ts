import { isObject, type JsonObject, member } from '@plat/core'
import type { Denial } from '../../../call/index.ts'
import { wrong } from './checks.ts'
import { type Dialect, inputOnly } from './dialect.ts'
import { generateContent, UNKNOWN, unknownIn } from './generate.ts'
import type { ShapeFault } from './shapes.ts'

/** Members of a request for one vector. Google reads each under a second name as well, which would pass by redaction and limits. */
const REQUEST = new Set(['model', 'content', 'taskType', 'title', 'outputDimensionality'])
const CONTENT = new Set(['role', 'parts'])
const BATCH = new Set(['requests'])
/** Most requests of a batch, as Google limits it. */
const MAX_REQUESTS = 100

const { withLimit: _, ...google } = generateContent

/** `embedContent` of Google's API: one vector. The path names the model. */
export const embedContent: Dialect = {
  ...google,
  method: 'embedContent',
  operation: 'model.embed',
  fault: (value) => requestFault(value, ''),
  request: (bytes) => inputOnly(null, bytes),
  answerFault: ({ embedding }) => vectorFault(embedding),
}

/** `batchEmbedContents`: a vector for each request. */
export const batchEmbedContents: Dialect = {
  ...embedContent,
  method: 'batchEmbedContents',
  fault({ requests, ...others }) {
    const unknown = unknownIn(others, BATCH)
    if (unknown !== null) return wrong(unknown, UNKNOWN)
    if (!Array.isArray(requests) || requests.length === 0 || requests.length > MAX_REQUESTS)
      return wrong('requests', `must be a list of 1 to ${MAX_REQUESTS} requests`)
    for (const [index, request] of requests.entries()) {
      const at = `requests[${index}]`
      const fault = isObject(request) ? requestFault(request, `${at}.`) : wrong(at, 'must be an object')
      if (fault !== null) return fault
    }
    return null
  },
  answerFault({ embeddings }) {
    if (!Array.isArray(embeddings)) return 'embeddings without valid vectors'
    return embeddings.map(vectorFault).find((fault) => fault !== null) ?? null
  },
}

/** `at`: where the request is, with a dot at its end; empty for the whole body. */
function requestFault(request: JsonObject, at: string): Denial | null {
  const unknown = unknownIn(request, REQUEST)
  if (unknown !== null) return wrong(at + unknown, UNKNOWN)
  const { content } = request
  const parts = member(content, 'parts')
  if (!isObject(content) || !Array.isArray(parts)) return wrong(`${at}content.parts`, 'must be a list')
  const second = unknownIn(content, CONTENT)
  return second === null ? null : wrong(`${at}content.${second}`, UNKNOWN)
}

function vectorFault(embedding: unknown): ShapeFault {
  return Array.isArray(member(embedding, 'values')) ? null : 'embeddings without valid vectors'
}
