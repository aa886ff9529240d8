import { createInterface } from 'node:readline'
import { isObject, readJsonObject, reasonOf } from '@plat/core'
import type { Pkcs11Uri } from '@plat/keys'
import { perform } from './operations.ts'
import { HELLO, type HelperOperation, type HelperRequest, type HelperResponse } from './protocol.ts'
import { RefusedError } from './tool.ts'

const MAX_TOOLS = 4
const waiting: HelperRequest[] = []
let running = 0

/**
 * The helper for PKCS#11 tokens that plat has: reads requests from standard input and runs `pkcs11-tool` of OpenSC for each
 * (docs/pkcs11-helper.md). Ends with its input.
 */
process.stdout.write(`${HELLO}\n`)
createInterface({ input: process.stdin }).on('line', (line) => {
  const request = readRequest(line)
  if (request === null) return
  waiting.push(request)
  next()
})

/** Runs as many tools at a time as the lock of a token in software bears; plat bounds how many requests wait. */
function next(): void {
  if (running >= MAX_TOOLS) return
  const request = waiting.shift()
  if (request === undefined) return
  running++
  respond(request).finally(() => {
    running--
    next()
  })
}

async function respond(request: HelperRequest): Promise<void> {
  const { id } = request
  const response: HelperResponse = await perform(request, process.env).then(
    (result) => ({ id, result }),
    (error: unknown) => {
      const kind = error instanceof RefusedError ? 'refused' : 'unavailable'
      return { id, error: { kind, message: reasonOf(error) } }
    },
  )
  process.stdout.write(`${JSON.stringify(response)}\n`)
}

const OPERATIONS: readonly HelperOperation[] = ['describe', 'sign', 'wrap', 'unwrap']

function readRequest(line: string): HelperRequest | null {
  const value = readJsonObject(Buffer.from(line))
  const operation = OPERATIONS.find((name) => name === value?.operation)
  if (value === null || operation === undefined || typeof value.id !== 'number' || !isObject(value.key)) return null
  const text = (name: string) => (typeof value[name] === 'string' ? { [name]: value[name] } : {})
  const members = value.key
  const of = (name: keyof Pkcs11Uri) => (typeof members[name] === 'string' ? members[name] : null)
  return {
    id: value.id,
    operation,
    key: {
      ...{ token: of('token'), serial: of('serial'), object: of('object') },
      ...{ id: of('id'), modulePath: of('modulePath'), pinFile: of('pinFile') },
    },
    purpose: value.purpose === 'encrypt' ? 'encrypt' : 'sign',
    ...text('algorithm'),
    ...text('data'),
  }
}
