import { withoutMembers } from '@plat/core'
import type { Failure } from '../http/reply.ts'
import { literalAt, type Message, readMessage, replaced } from '../message.ts'
import type { Link } from './link.ts'

/** The revision that a shared process speaks with its clients: the last one with a handshake. */
const SHARED_REVISION = '2025-11-25'

/** The handshake of a shared process offers no capabilities: none of its requests could be attributed to a session. */
export const SHARED_HANDSHAKE = Buffer.from(
  JSON.stringify({
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: {
      protocolVersion: SHARED_REVISION,
      capabilities: {},
      clientInfo: { name: 'plat-stdio', version: '1' },
    },
  }),
)

const INITIALIZED = Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}')

/** Capabilities that would change or reveal what other sessions of a shared process do. */
const NOT_SHARED = [
  ['result', 'capabilities', 'logging'],
  ['result', 'capabilities', 'resources', 'subscribe'],
  ['result', 'capabilities', 'tasks'],
]

/** Methods of these capabilities. */
export const NOT_SHARED_METHODS: ReadonlySet<string> = new Set([
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
])

/**
 * Revisions that a client of a shared process may have instead: it refuses a newer one than it requested, and reads the messages of the
 * newer one, which only has more members.
 */
const OLDER_REVISIONS: ReadonlySet<string> = new Set(['"2025-03-26"', '"2025-06-18"'])

/** Returns the response to the handshake of a shared process, as the client gets it that sent `initialize`. */
export function sharedHandshakeResponse({ bytes }: Message, initialize: Message): Uint8Array {
  const response = withoutMembers(bytes, NOT_SHARED)
  const requested = revisionAt(initialize.bytes, ['params', 'protocolVersion'])
  const isOlder = OLDER_REVISIONS.has(requested) && requested < revisionAt(response, REVISION)
  return isOlder ? replaced(response, REVISION, requested) : response
}

const REVISION = ['result', 'protocolVersion']

/** Returns a revision as JSON. Quoted dates sort like the dates. */
function revisionAt(bytes: Uint8Array, path: readonly string[]): string {
  return Buffer.from(literalAt(bytes, path) ?? '').toString()
}

/** Sends `initialize`, and after its response `notifications/initialized`. Resolves with the response, or why there is none. */
export function shakeHands(link: Link, initialize: Uint8Array, completes: boolean): Promise<Message | Failure> {
  const message = readMessage(initialize)
  if (message === null) return Promise.resolve({ status: 502, reason: 'the handshake cannot be repeated' })
  return new Promise((resolve) => {
    const open = {
      owner: '',
      method: 'initialize',
      reply: null,
      id: Buffer.from('0'),
      token: null,
      failed: resolve,
      done(response: Message) {
        if (response.value.error !== undefined) {
          resolve({ status: 502, reason: 'it refused the handshake' })
          return
        }
        const initialized = completes ? readMessage(INITIALIZED) : null
        if (initialized !== null) link.forward(initialized, '')
        resolve(response)
      },
    }
    link.send(message, open)
  })
}
