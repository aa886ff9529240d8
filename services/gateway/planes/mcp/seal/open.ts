import type { JsonObject } from '@plat/core'
import { type Denial, deny } from '../../../call/index.ts'
import { member } from '../../wire/json.ts'
import type { Era } from '../classify.ts'
import type { McpRequest, Replacement } from '../message.ts'
import type { Sealed, SealKind } from './seal.ts'

export interface Unsealer {
  /** Opens a value that was sealed for this caller and this server; null when it was not. */
  open(kind: SealKind, text: string): Sealed | null
}

/** Opened sealed values of a message, and the changes to make before it is forwarded. */
export type Unsealed = Pick<McpRequest, 'opened' | 'replaced' | 'withheld'>

/** A message without sealed values. */
export const NOTHING_SEALED: Unsealed = { opened: [], replaced: [], withheld: [] }

/** The methods whose results may request another round (revision 2026-07-28). */
export const ROUNDS: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

/** A member of a message that the gateway sealed. */
interface SealedMember {
  readonly kind: SealKind
  readonly path: readonly string[]
  readonly text: string
}

/** Opens the sealed member of a message, if it has one. Returns a denial if it was not sealed for this caller. */
export function openMessage(message: JsonObject, about: About, opener: Unsealer): Unsealed | Denial {
  const place = placeIn(message, about)
  if (place === null) return NOTHING_SEALED
  const sealed = opener.open(place.kind, place.text)
  if (sealed === null) return deny('not_found', `no such ${place.path.at(-1)}`)
  const opened = [sealed]
  // The server sent no state, so the gateway had added one to identify the rounds of a call. The server must not see it.
  if (sealed.id === '') return { opened, replaced: [], withheld: [place.path] }
  const replacement: Replacement = { path: place.path, with: Buffer.from(sealed.id) }
  return { opened, replaced: [replacement], withheld: [] }
}

/** Properties of a message that determine its sealed member. */
export interface About {
  readonly kind: McpRequest['kind']
  readonly era: Era
  readonly method: string
  /** Whether it was sent to the address of all servers. */
  readonly isShared: boolean
}

function placeIn(message: JsonObject, { kind, era, method, isShared }: About): SealedMember | null {
  if (kind === 'answer') return { kind: 'mcp-request', path: ['id'], text: String(message.id) }
  if (isShared && method === 'notifications/progress') return textAt(message, 'mcp-progress', 'progressToken')
  if (kind !== 'request') return null
  if (method.endsWith('/list')) return textAt(message, 'mcp-cursor', 'cursor')
  return era === 'modern' && ROUNDS.has(method) ? textAt(message, 'mcp-state', 'requestState') : null
}

function textAt(message: JsonObject, kind: SealKind, name: string): SealedMember | null {
  const text = member(message.params, name)
  return typeof text === 'string' ? { kind, path: ['params', name], text } : null
}
