import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import { type Clock, canonicalJson, decodeBase64url, encodeBase64url, type Ids, member, parseStrict } from '@plat/core'
import type { Identity, Operation } from '../../../call/index.ts'

export const SEAL_KEY_BYTES = 32

const VERSION = 'p1.'
const KID_BYTES = 4
const NONCE_BYTES = 12
const TAG_BYTES = 16
const NO_SALT = new Uint8Array(0)

/**
 * Kinds of sealed values: ids of sessions, server requests and events, progress tokens, cursors of lists, states between two rounds of a
 * call; the state of an OAuth consent in a browser; logins and links of the console; page tokens of agents' lists; and permissions to
 * apply a plan.
 */
export const SEAL_KINDS = [
  'mcp-session',
  'mcp-request',
  'mcp-progress',
  'mcp-event',
  'mcp-cursor',
  'mcp-state',
  'connect-flow',
  'console-login',
  'console-link',
  'a2a-page',
  'infra-authorization',
] as const
export type SealKind = (typeof SEAL_KINDS)[number]

/** The session and server for which a sealed text is valid. Authenticated as additional data, so it is not part of the text. */
export interface SealBinding {
  readonly kind: SealKind
  readonly tenant: string
  /** `<ns>/<agent>/<session>`. */
  readonly session: string
  /** The name of the server that the caller uses. */
  readonly server: string
}

/** Returns the binding of a value that a server issued to a caller. */
export function bindingOf(kind: SealKind, caller: Identity, server: string): SealBinding {
  const session = `${caller.namespace}/${caller.agent}/${caller.session}`
  return { kind, tenant: caller.tenant, session, server }
}

/** The call that issued a sealed value, for the calls that continue it on any replica. */
export interface Origin {
  /** `x-plat-decision-id` of that call. */
  readonly call: string
  readonly operation: Operation
  /** The method of the protocol, such as `tools/call`. */
  readonly method: string
  readonly tool: string | null
}

/** An id of an upstream, and the `target.key` of that upstream. */
export interface Sealed {
  readonly id: string
  readonly target: string
  /** The call that issued it; absent for sessions and cursors. */
  readonly origin?: Origin
  /** For an event: the JSON-RPC id of the request of its stream, as the client wrote it; absent for streams without a request. */
  readonly awaits?: string
  /** For values issued at the address of all servers: the server's session and its revision, without which the value cannot be used. */
  readonly session?: string
  readonly revision?: string
}

/** Encrypts an upstream's id into a text that only the same session can use at the same server, on any replica with the key. */
export interface Sealer {
  seal(binding: SealBinding, content: Sealed): string
  /** Returns null for a text that was not sealed for this binding with one of the keys. */
  open(binding: SealBinding, text: string): Sealed | null
}

interface Derived {
  readonly kid: Buffer
  readonly key: Buffer
}

/**
 * Creates a sealer. Text = `p1.` + base64url(kid 4 ‖ nonce 12 ‖ AES-256-GCM(canonical {id, target, at, origin?, awaits?})). The first key
 * seals, all keys open. Throws if there is no key, or one that does not have 32 bytes.
 */
export function createSealer(keys: readonly Uint8Array[], clock: Clock, ids: Ids): Sealer {
  if (keys.length === 0) throw new Error('a sealer needs at least one key')
  const derived = new Map(SEAL_KINDS.map((kind) => [kind, keys.map((key) => derive(key, kind))]))
  return {
    seal(binding, content) {
      const first = derived.get(binding.kind)?.[0]
      if (first === undefined) throw new Error(`no key for ${binding.kind}`)
      const nonce = ids.random(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', first.key, nonce).setAAD(additional(binding))
      const plain = canonicalJson({ at: clock.now(), ...content })
      const sealed = [first.kid, nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]
      return VERSION + encodeBase64url(Buffer.concat(sealed))
    },
    open(binding, text) {
      const bytes = text.startsWith(VERSION) ? decodeBase64url(text.slice(VERSION.length)) : null
      if (bytes === null || bytes.length < KID_BYTES + NONCE_BYTES + TAG_BYTES) return null
      const key = derived.get(binding.kind)?.find((one) => one.kid.equals(bytes.subarray(0, KID_BYTES)))
      return key === undefined ? null : unseal(key.key, binding, bytes.subarray(KID_BYTES))
    },
  }
}

function derive(key: Uint8Array, kind: SealBinding['kind']): Derived {
  if (key.length !== SEAL_KEY_BYTES) throw new Error(`a seal key has ${SEAL_KEY_BYTES} bytes, this one ${key.length}`)
  return {
    kid: Buffer.from(hkdfSync('sha256', key, NO_SALT, 'plat/kid/v1', KID_BYTES)),
    key: Buffer.from(hkdfSync('sha256', key, NO_SALT, `plat/${kind}/v1`, SEAL_KEY_BYTES)),
  }
}

/** Serialized as a JSON array, so that no two bindings have the same bytes. */
function additional(binding: SealBinding): Buffer {
  return Buffer.from(JSON.stringify([binding.kind, binding.tenant, binding.session, binding.server]))
}

function unseal(key: Buffer, binding: SealBinding, bytes: Uint8Array): Sealed | null {
  const end = bytes.length - TAG_BYTES
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
  decipher.setAAD(additional(binding)).setAuthTag(bytes.subarray(end))
  try {
    const plain = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, end)), decipher.final()])
    return decoded(parseStrict(plain))
  } catch {
    // Tampered with, or sealed for another session: both are reported as if the id did not exist.
    return null
  }
}

function decoded(value: unknown): Sealed | null {
  const id = member(value, 'id')
  const target = member(value, 'target')
  if (typeof id !== 'string' || typeof target !== 'string') return null
  const origin = originIn(member(value, 'origin'))
  const awaits = member(value, 'awaits')
  const session = member(value, 'session')
  const revision = member(value, 'revision')
  return {
    id,
    target,
    ...(origin !== null && { origin }),
    ...(typeof awaits === 'string' && { awaits }),
    ...(typeof session === 'string' && { session }),
    ...(typeof revision === 'string' && { revision }),
  }
}

/** The operations whose responses can contain sealed values. */
const ORIGINS: readonly Operation[] = ['mcp.call', 'mcp.list', 'mcp.get', 'mcp.task', 'mcp.control', 'mcp.listen']

function originIn(value: unknown): Origin | null {
  const operation = ORIGINS.find((one) => one === member(value, 'operation'))
  const call = member(value, 'call')
  const method = member(value, 'method')
  const tool = member(value, 'tool')
  if (operation === undefined || typeof call !== 'string' || typeof method !== 'string') return null
  return { call, operation, method, tool: typeof tool === 'string' ? tool : null }
}
